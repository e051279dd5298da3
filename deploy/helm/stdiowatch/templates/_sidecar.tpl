{{- /*
What stdiowatch adds to a pod. A chart of your own that depends on this one includes these in its Deployment, with
deployment.enabled=false and podSelector set:

    initContainers:
      {{- include "stdiowatch.initContainers" .Subcharts.stdiowatch | nindent 8 }}
    containers:
      {{- include "stdiowatch.containers" .Subcharts.stdiowatch | nindent 8 }}
    volumes:
      {{- include "stdiowatch.volumes" .Subcharts.stdiowatch | nindent 8 }}

`stdiowatch.initContainer` and `stdiowatch.sidecar` are one container each.
*/ -}}

{{- /* Copies the static binary to where the sidecar, which has another image, finds it. */ -}}
{{- define "stdiowatch.initContainer" -}}
name: stdiowatch-copy
image: {{ include "stdiowatch.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
command: [/stdiowatch]
args: [copy-self, /opt/stdiowatch]
resources:
  requests: {cpu: 10m, memory: 16Mi}
  limits: {memory: 32Mi}
{{- with .Values.securityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumeMounts:
  - {name: stdiowatch-bin, mountPath: /opt/stdiowatch}
{{- end -}}

{{- /* The server's own image with stdiowatch as its command, so that a probe launches the server as in production. */ -}}
{{- define "stdiowatch.sidecar" -}}
{{- include "stdiowatch.checks" . -}}
{{- $scheme := include "stdiowatch.scheme" . | upper -}}
name: stdiowatch
{{ include "stdiowatch.serverImage" . }}
{{- if include "stdiowatch.isNative" . }}
restartPolicy: Always
{{- end }}
command: [/opt/stdiowatch/stdiowatch]
args:
  - serve
  - --listen
  - {{ printf ":%d" (int .Values.sidecar.port) | quote }}
  - --state-dir
  - /var/lib/stdiowatch
  - --config
  - {{ printf "/etc/stdiowatch/%s" .Values.config.key }}
  - --watch-config
  {{- if .Values.webConfig.existingSecret }}
  - --web-config
  - {{ printf "%s/%s" .Values.webConfig.mountPath .Values.webConfig.key }}
  {{- end }}
  {{- with .Values.extraArgs }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- $named := dict }}
{{- range .Values.extraEnv }}{{ $_ := set $named .name true }}{{ end }}
{{- if or .Values.extraEnv (not $named.HOME) }}
env:
  {{- if not $named.HOME }}
  - name: HOME
    value: /tmp
  {{- end }}
  {{- with .Values.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{- if or .Values.secrets.env .Values.extraEnvFrom }}
envFrom:
  {{- range .Values.secrets.env }}
  - secretRef:
      name: {{ . }}
  {{- end }}
  {{- with .Values.extraEnvFrom }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
ports:
  - name: stdiowatch
    containerPort: {{ .Values.sidecar.port }}
# Never /health: restarting the sidecar mends no server, and a server that fails is for an alert to tell, not for taking
# the agent out of service.
{{- with .Values.sidecar.livenessProbe }}
livenessProbe:
  httpGet: {path: /livez, port: stdiowatch, scheme: {{ $scheme }}}
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.sidecar.readinessProbe }}
readinessProbe:
  httpGet: {path: /readyz, port: stdiowatch, scheme: {{ $scheme }}}
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.sidecar.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.securityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumeMounts:
  - {name: stdiowatch-bin, mountPath: /opt/stdiowatch, readOnly: true}
  - {name: stdiowatch-config, mountPath: /etc/stdiowatch, readOnly: true}
  - {name: stdiowatch-state, mountPath: /var/lib/stdiowatch}
  - {name: stdiowatch-tmp, mountPath: /tmp}
  {{- if .Values.webConfig.existingSecret }}
  - {name: stdiowatch-web, mountPath: {{ .Values.webConfig.mountPath }}, readOnly: true}
  {{- end }}
  {{- range $i, $file := .Values.secrets.files }}
  - {name: stdiowatch-secret-{{ $i }}, mountPath: {{ $file.mountPath }}, readOnly: true}
  {{- end }}
  {{- with .Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- define "stdiowatch.serverImage" -}}
{{- if include "stdiowatch.isDemo" . -}}
image: {{ include "stdiowatch.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- else -}}
{{- $image := ternary .Values.server.image .Values.agent.image (ne .Values.server.image.repository "") -}}
image: {{ include "stdiowatch.reference" (dict "image" $image "tag" "latest") }}
imagePullPolicy: {{ $image.pullPolicy }}
{{- end -}}
{{- end -}}

{{- define "stdiowatch.initContainers" -}}
- {{ include "stdiowatch.initContainer" . | indent 2 | trim }}
{{- if include "stdiowatch.isNative" . }}
- {{ include "stdiowatch.sidecar" . | indent 2 | trim }}
{{- end }}
{{- end -}}

{{- define "stdiowatch.containers" -}}
{{- if not (include "stdiowatch.isNative" .) -}}
- {{ include "stdiowatch.sidecar" . | indent 2 | trim }}
{{- end -}}
{{- end -}}

{{- define "stdiowatch.volumes" -}}
- name: stdiowatch-bin
  emptyDir: {sizeLimit: 32Mi}
- name: stdiowatch-config
  configMap:
    name: {{ include "stdiowatch.configMapName" . }}
- name: stdiowatch-state
  {{- if .Values.state.persistentVolumeClaim.enabled }}
  persistentVolumeClaim:
    claimName: {{ default (printf "%s-state" (include "stdiowatch.fullname" .)) .Values.state.persistentVolumeClaim.existingClaim }}
  {{- else }}
  emptyDir: {sizeLimit: {{ .Values.state.sizeLimit }}}
  {{- end }}
- name: stdiowatch-tmp
  emptyDir: {sizeLimit: {{ .Values.sidecar.tmpSizeLimit }}}
{{- if .Values.webConfig.existingSecret }}
- name: stdiowatch-web
  secret:
    secretName: {{ .Values.webConfig.existingSecret }}
    defaultMode: 0440
{{- end }}
{{- range $i, $file := .Values.secrets.files }}
- name: stdiowatch-secret-{{ $i }}
  secret:
    secretName: {{ $file.secret }}
    defaultMode: 0440
{{- end }}
{{- end -}}
