{{- /* A duration of the configuration (1500ms, 5s, 2m, 1h) in seconds. */ -}}
{{- define "stdiowatch.seconds" -}}
{{- $text := toString . -}}
{{- if not (regexMatch "^[0-9]+(\\.[0-9]+)?(ms|s|m|min|h)$" $text) -}}
{{- fail (printf "config: shutdown: %q is no duration that can be added up here; write it as 1500ms, 5s or 2m, or set sidecar.shutdownSeconds" $text) -}}
{{- end -}}
{{- $number := regexFind "^[0-9.]+" $text | float64 -}}
{{- mulf $number (index (dict "ms" 0.001 "s" 1 "m" 60 "min" 60 "h" 3600) (regexFind "[a-z]+$" $text)) -}}
{{- end -}}

{{- /* How long the slowest server may take to be ended, in whole seconds: from end-of-file to SIGTERM, and on to SIGKILL. */ -}}
{{- define "stdiowatch.shutdownSeconds" -}}
{{- if not (kindIs "invalid" .Values.sidecar.shutdownSeconds) -}}
{{- int .Values.sidecar.shutdownSeconds -}}
{{- else -}}
{{- $defaults := dict "eof" "5s" "term" "5s" -}}
{{- $all := merge (dict) (default (dict) (default (dict) .Values.config.defaults).shutdown) $defaults -}}
{{- $slowest := 0 -}}
{{- range $name, $server := default (dict "" dict) .Values.config.servers -}}
{{- $own := merge (dict) (default (dict) $server.shutdown) $all -}}
{{- $slowest = max $slowest (ceil (addf (include "stdiowatch.seconds" $own.eof) (include "stdiowatch.seconds" $own.term))) -}}
{{- end -}}
{{- $slowest -}}
{{- end -}}
{{- end -}}

{{- /* The pod's time to end: the ladder's sum and room to sweep up. A native sidecar is told only after the agent has ended, and both share it. */ -}}
{{- define "stdiowatch.terminationGracePeriodSeconds" -}}
{{- $own := add 5 (include "stdiowatch.shutdownSeconds" . | int) -}}
{{- if not (include "stdiowatch.hasAgent" .) -}}
{{- $own -}}
{{- else if include "stdiowatch.isNative" . -}}
{{- add $own (int .Values.agent.terminationGraceSeconds) -}}
{{- else -}}
{{- max $own (int .Values.agent.terminationGraceSeconds) -}}
{{- end -}}
{{- end -}}
