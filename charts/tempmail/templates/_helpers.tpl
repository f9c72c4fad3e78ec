{{- define "tempmail.name" -}}
{{ .Values.nameOverride | default .Chart.Name }}
{{- end }}

{{- /*
What the names of all objects begin with; 40 characters leave room for the rest of a name. A longer one ends in a
digest, so that releases whose names begin alike have objects of their own.
*/ -}}
{{- define "tempmail.fullname" -}}
{{- $name := .Values.fullnameOverride | default .Release.Name -}}
{{ gt (len $name) 40 | ternary (printf "%s-%s" (trunc 31 $name | trimSuffix "-") (sha256sum $name | trunc 8)) (trimSuffix "-" $name) }}
{{- end }}

{{- define "tempmail.operator" -}}
{{ include "tempmail.fullname" . }}-operator
{{- end }}

{{- define "tempmail.labels" -}}
app.kubernetes.io/name: {{ include "tempmail.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: tempmail
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* Name, namespace and labels of an object of (dict "root" $ "component" …). */ -}}
{{- define "tempmail.metadata" -}}
name: {{ include "tempmail.fullname" .root }}-{{ .component }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "tempmail.labels" .root | nindent 2 }}
  app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- /* What the pods of (dict "root" $ "component" …) are selected by. */ -}}
{{- define "tempmail.selector" -}}
app.kubernetes.io/name: {{ include "tempmail.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- /* The families of IP addresses of a Service: those of (dict "root" $ "service" …), whose service may be empty. */ -}}
{{- define "tempmail.ipFamilies" -}}
{{- with .service.ipFamilyPolicy | default .root.Values.ipFamilyPolicy }}
ipFamilyPolicy: {{ . }}
{{- end }}
{{- with .service.ipFamilies | default .root.Values.ipFamilies }}
ipFamilies: {{ toJson . }}
{{- end }}
{{- end }}

{{- define "tempmail.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{- /* The Secret with the installation's keys. */ -}}
{{- define "tempmail.keysSecret" -}}
{{ .Values.keys.existingSecret | default (printf "%s-keys" (include "tempmail.fullname" .)) }}
{{- end }}

{{- /* The host of `http.base_url`. */ -}}
{{- define "tempmail.host" -}}
{{- $url := dig "http" "base_url" "" .Values.config -}}
{{- required "config.http.base_url is needed: Ingress and HTTPRoute serve its host" (urlParse $url).hostname -}}
{{- end }}

{{- /* `config`, with the limits that fit the evaluation's disk. */ -}}
{{- define "tempmail.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- if .Values.evaluation.enabled -}}
{{- $limits := dict "store_bytes" 4294967296 "shared_bytes" 2147483648 -}}
{{- $config = mergeOverwrite (dict "limits" $limits) $config -}}
{{- end -}}
{{ toYaml $config }}
{{- end }}

{{- /* Environment variables of the settings under (dict "prefix" … "settings" …): a name and a value each. */ -}}
{{- define "tempmail.settings" -}}
{{- range $key, $value := .settings }}
{{- $name := printf "%s%s" $.prefix (upper $key) }}
{{- if kindIs "map" $value }}
{{- include "tempmail.settings" (dict "prefix" (printf "%s__" $name) "settings" $value) }}
{{- else if not (kindIs "invalid" $value) }}
- name: {{ $name }}
  value: {{ kindIs "string" $value | ternary $value (toJson $value) | quote }}
{{- end }}
{{- end }}
{{- end }}

{{- define "tempmail.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "tempmail.podSecurityContext" -}}
runAsNonRoot: true
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- /* The operator's rights on what it makes for objects in namespaces. */ -}}
{{- define "tempmail.operatorRules" -}}
# Secrets of objects, each by its name; the garbage collector deletes them.
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, create, update]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end }}

{{- /* The ports of the drop-in surfaces that are on, by their names; a surface that was removed has none. */ -}}
{{- define "tempmail.dropIns" -}}
{{- range $name, $surface := pick (.Values.config.compat | default dict) "mailpit" "mailhog" "mailosaur" }}
{{- with $surface.listen }}
{{ $name }}: {{ regexFind "[0-9]+$" . }}
{{- end }}
{{- end }}
{{- end }}
