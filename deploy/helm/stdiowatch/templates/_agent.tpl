{{- /* The pod's main container: the agent, or in the demo one live server, as an agent would have it. */ -}}
{{- define "stdiowatch.agent" -}}
{{- $container := deepCopy (default (dict) .Values.agent.container) -}}
{{- if include "stdiowatch.isDemo" . -}}
{{- $_ := set $container "image" (include "stdiowatch.image" .) -}}
{{- $_ := set $container "imagePullPolicy" .Values.image.pullPolicy -}}
{{- $demo := dict "command" (list "/stdiowatch") "args" (list "sample-server" "sound") "stdin" true "resources" (dict "requests" (dict "cpu" "10m" "memory" "16Mi") "limits" (dict "memory" "32Mi")) -}}
{{- $container = merge $container $demo -}}
{{- else -}}
{{- $_ := set $container "image" (include "stdiowatch.reference" (dict "image" .Values.agent.image "tag" "latest")) -}}
{{- $_ := set $container "imagePullPolicy" .Values.agent.image.pullPolicy -}}
{{- end -}}
{{- $own := default (list) $container.volumeMounts -}}
{{- if include "stdiowatch.agentNeedsTmp" . -}}
{{- $_ := set $container "volumeMounts" (append $own (dict "name" "agent-tmp" "mountPath" "/tmp")) -}}
{{- end -}}
{{- if not $container.securityContext -}}
{{- $_ := set $container "securityContext" .Values.securityContext -}}
{{- end -}}
{{- toYaml (merge (dict "name" (default "agent" $container.name)) $container) -}}
{{- end -}}

{{- /* "yes" unless the agent mounts a /tmp of its own. */ -}}
{{- define "stdiowatch.agentNeedsTmp" -}}
{{- $has := false -}}
{{- range (default (dict) .Values.agent.container).volumeMounts -}}
{{- if eq .mountPath "/tmp" -}}{{- $has = true -}}{{- end -}}
{{- end -}}
{{- if and (include "stdiowatch.hasAgent" .) (not $has) -}}yes{{- end -}}
{{- end -}}
