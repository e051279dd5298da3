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
{{- include "stdiowatch.checkMounts" . -}}
{{- include "stdiowatch.checkNames" . -}}
{{- range $v.extraArgs -}}
{{- $option := first (splitList "=" .) -}}
{{- if has $option (list "--listen" "--state-dir" "--watch-config") -}}
{{- fail (printf "extraArgs: %s is said by the chart already (sidecar.port, state)" $option) -}}
{{- end -}}
{{- end -}}
{{- range $label, $_ := fromYaml (include "stdiowatch.selectorLabels" .) -}}
{{- if hasKey $v.podLabels $label -}}
{{- fail (printf "podLabels: the Deployment selects its pods by %s, so it cannot be another; see nameOverride" $label) -}}
{{- end -}}
{{- end -}}
{{- $budget := $v.podDisruptionBudget -}}
{{- if and $budget.enabled (not (kindIs "invalid" $budget.minAvailable)) (not (kindIs "invalid" $budget.maxUnavailable)) -}}
{{- fail "podDisruptionBudget: say minAvailable or maxUnavailable, and set the other one to null" -}}
{{- end -}}
{{- end -}}

{{- /* Nothing of the sidecar is mounted where something is already. */ -}}
{{- define "stdiowatch.checkMounts" -}}
{{- $v := .Values -}}
{{- $taken := dict "/" "the image" "/opt/stdiowatch" "the program" "/etc/stdiowatch" "the configuration" "/var/lib/stdiowatch" "the state" "/tmp" "sidecar.tmpSizeLimit" -}}
{{- $wanted := list -}}
{{- if $v.webConfig.existingSecret -}}
{{- $wanted = append $wanted (list "webConfig.mountPath" $v.webConfig.mountPath) -}}
{{- end -}}
{{- range $i, $file := $v.secrets.files -}}
{{- $wanted = append $wanted (list (printf "secrets.files[%d].mountPath" $i) $file.mountPath) -}}
{{- end -}}
{{- range $i, $mount := $v.extraVolumeMounts -}}
{{- $wanted = append $wanted (list (printf "extraVolumeMounts[%d].mountPath" $i) $mount.mountPath) -}}
{{- end -}}
{{- range $wanted -}}
{{- $path := clean (last .) -}}
{{- if hasKey $taken $path -}}
{{- fail (printf "%s: %s is taken, by %s; say another path" (first .) $path (get $taken $path)) -}}
{{- end -}}
{{- $_ := set $taken $path (first .) -}}
{{- end -}}
{{- end -}}

{{- /* No two containers have one name. */ -}}
{{- define "stdiowatch.checkNames" -}}
{{- $v := .Values -}}
{{- $taken := dict "stdiowatch" "the sidecar" "stdiowatch-copy" "the copy of the program" -}}
{{- $wanted := list -}}
{{- if include "stdiowatch.hasAgent" . -}}
{{- $wanted = append $wanted (list "agent.container.name" (default "agent" (default (dict) $v.agent.container).name)) -}}
{{- end -}}
{{- range $i, $container := $v.extraInitContainers -}}
{{- $wanted = append $wanted (list (printf "extraInitContainers[%d].name" $i) $container.name) -}}
{{- end -}}
{{- range $i, $container := $v.extraContainers -}}
{{- $wanted = append $wanted (list (printf "extraContainers[%d].name" $i) $container.name) -}}
{{- end -}}
{{- range $wanted -}}
{{- if hasKey $taken (last .) -}}
{{- fail (printf "%s: %s is the name of %s already" (first .) (last .) (get $taken (last .))) -}}
{{- end -}}
{{- $_ := set $taken (last .) (first .) -}}
{{- end -}}
{{- end -}}
