{{- define "tempmail.operator" -}}
{{ .Release.Name }}-operator
{{- end }}

{{- define "tempmail.labels" -}}
app.kubernetes.io/name: tempmail
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end }}
