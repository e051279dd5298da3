{{- define "stdiowatch.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "stdiowatch.fullname" -}}
{{- $name := include "stdiowatch.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "stdiowatch.selectorLabels" -}}
app.kubernetes.io/name: {{ include "stdiowatch.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "stdiowatch.labels" -}}
{{ include "stdiowatch.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- /* The labels of the pods that stdiowatch is in: ours, or those of the user's own workload. */ -}}
{{- define "stdiowatch.podSelector" -}}
{{- if .Values.deployment.enabled -}}
{{ include "stdiowatch.selectorLabels" . }}
{{- else if .Values.podSelector -}}
{{- toYaml .Values.podSelector -}}
{{- else -}}
{{- fail "podSelector: say which labels your own pods have, since deployment.enabled is false" -}}
{{- end -}}
{{- end -}}

{{- define "stdiowatch.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "stdiowatch.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "stdiowatch.configMapName" -}}
{{- default (include "stdiowatch.fullname" .) .Values.config.existingConfigMap -}}
{{- end -}}

{{- /* An image as REPOSITORY:TAG or REPOSITORY@DIGEST, of a dict with `image` and what its tag is by default. */ -}}
{{- define "stdiowatch.reference" -}}
{{- if .image.digest -}}
{{- printf "%s@%s" .image.repository .image.digest -}}
{{- else -}}
{{- printf "%s:%s" .image.repository (default .tag .image.tag) -}}
{{- end -}}
{{- end -}}

{{- define "stdiowatch.image" -}}
{{- include "stdiowatch.reference" (dict "image" .Values.image "tag" .Chart.AppVersion) -}}
{{- end -}}

{{- /* "yes" while no image of one's own is said: the built-in sample server is watched then. */ -}}
{{- define "stdiowatch.isDemo" -}}
{{- if not (or .Values.server.image.repository .Values.agent.image.repository) -}}yes{{- end -}}
{{- end -}}

{{- /* "yes" if the pod has a main container beside stdiowatch. */ -}}
{{- define "stdiowatch.hasAgent" -}}
{{- if or .Values.agent.image.repository (include "stdiowatch.isDemo" .) -}}yes{{- end -}}
{{- end -}}

{{- /* "yes" if the sidecar is an init container: it cannot be where it is alone. */ -}}
{{- define "stdiowatch.isNative" -}}
{{- if and .Values.sidecar.native (or (include "stdiowatch.hasAgent" .) (not .Values.deployment.enabled) .Values.extraContainers) -}}yes{{- end -}}
{{- end -}}

{{- define "stdiowatch.scheme" -}}
{{- if and .Values.webConfig.existingSecret .Values.webConfig.tls -}}https{{- else -}}http{{- end -}}
{{- end -}}
