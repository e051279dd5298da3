{{- /* How one endpoint is scraped, of a dict with `monitor` (the values of its kind) and `top`. */ -}}
{{- define "stdiowatch.endpoint" -}}
{{- $extra := deepCopy .monitor.endpoint -}}
{{- /* One name for the scrape job, whatever this object is called. */ -}}
{{- $ours := list (dict "targetLabel" "job" "replacement" "stdiowatch") -}}
{{- $fields := dict "port" "stdiowatch" "path" "/metrics" "scheme" (include "stdiowatch.scheme" .top) "relabelings" (concat $ours (default (list) $extra.relabelings)) -}}
{{- with .monitor.interval }}{{ $_ := set $fields "interval" . }}{{ end -}}
{{- with .monitor.scrapeTimeout }}{{ $_ := set $fields "scrapeTimeout" . }}{{ end -}}
{{- toYaml (merge $fields $extra) -}}
{{- end -}}
