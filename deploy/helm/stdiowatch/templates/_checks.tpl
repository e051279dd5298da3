{{- /* What no schema can say: values that contradict each other. */ -}}
{{- define "stdiowatch.checks" -}}
{{- $v := .Values -}}
{{- $own := or $v.config.servers $v.config.defaults $v.config.show_private -}}
{{- if and $v.config.existingConfigMap $own -}}
{{- fail "config: say either servers, defaults and show_private, or existingConfigMap; not both" -}}
{{- end -}}
{{- if include "stdiowatch.isDemo" . -}}
{{- if or $own $v.config.existingConfigMap -}}
{{- fail "server.image.repository: say which image the configured servers are launched from (or agent.image.repository)" -}}
{{- end -}}
{{- else if not (or $v.config.servers $v.config.existingConfigMap) -}}
{{- fail "config.servers: say what to launch in that image, or name an existingConfigMap" -}}
{{- end -}}
{{- if and (include "stdiowatch.isNative" .) (semverCompare "<1.29.0-0" .Capabilities.KubeVersion.Version) -}}
{{- fail (printf "sidecar.native: needs Kubernetes 1.29, and this is %s; set sidecar.native=false" .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- if and $v.state.persistentVolumeClaim.enabled (gt (int $v.deployment.replicas) 1) -}}
{{- fail "deployment.replicas: two pods cannot share one state; use one replica, or no state.persistentVolumeClaim" -}}
{{- end -}}
{{- if and $v.podMonitor.enabled $v.serviceMonitor.enabled -}}
{{- fail "podMonitor, serviceMonitor: enable one of them, or everything is scraped twice" -}}
{{- end -}}
{{- if and $v.serviceMonitor.enabled (not $v.service.enabled) -}}
{{- fail "serviceMonitor: needs service.enabled" -}}
{{- end -}}
{{- if and $v.webConfig.tls (not $v.webConfig.existingSecret) -}}
{{- fail "webConfig.tls: needs webConfig.existingSecret, with the certificate" -}}
{{- end -}}
{{- $budget := $v.podDisruptionBudget -}}
{{- if and $budget.enabled (not (kindIs "invalid" $budget.minAvailable)) (not (kindIs "invalid" $budget.maxUnavailable)) -}}
{{- fail "podDisruptionBudget: say minAvailable or maxUnavailable, and set the other one to null" -}}
{{- end -}}
{{- end -}}
