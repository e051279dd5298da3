{{- /* How one endpoint is scraped, of a dict with `monitor` (the values of its kind) and `top`. */ -}}
{{- define "stdiowatch.endpoint" -}}
{{- $extra := deepCopy .monitor.endpoint -}}
{{- /* One name for the scrape job, whatever this object is called. */ -}}
{{- $ours := list (dict "targetLabel" "job" "replacement" "stdiowatch") -}}
{{- $fields := dict "port" "stdiowatch" "path" "/metrics" "scheme" (include "stdiowatch.scheme" .top) "relabelings" (concat $ours (default (list) $extra.relabelings)) -}}
{{- with .monitor.interval }}{{ $_ := set $fields "interval" . }}{{ end -}}
{{- with .monitor.scrapeTimeout }}{{ $_ := set $fields "scrapeTimeout" . }}{{ end -}}
{{- with .monitor.basicAuth }}{{ $_ := set $fields "basicAuth" . }}{{ end -}}
{{- if eq $fields.scheme "https" -}}
{{- /* Pods are scraped by their address, which no certificate has: it is held against the Service's name. */ -}}
{{- $web := .top.Values.webConfig -}}
{{- $tls := dict "serverName" (include "stdiowatch.fullname" .top) -}}
{{- with $web.caKey }}{{ $_ := set $tls "ca" (dict "secret" (dict "name" $web.existingSecret "key" .)) }}{{ end -}}
{{- $_ := set $fields "tlsConfig" (merge (default (dict) $extra.tlsConfig) $tls) -}}
{{- end -}}
{{- toYaml (merge $fields $extra) -}}
{{- end -}}
