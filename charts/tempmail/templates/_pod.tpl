{{- /*
The pods of tempmail. All of these take (dict "root" $ "component" … "values" …), whose values are those of
the role (or of `migration`).
*/ -}}

{{- /* Secrets that the component reads, as YAML: name of the volume, Secret, entries and their files. */ -}}
{{- define "tempmail.secrets" -}}
{{- $root := .root }}
{{- $evaluation := $root.Values.evaluation.enabled }}
{{- $login := get $root.Values.postgres.logins .component | default (dict) }}
{{- $postgres := merge (dict) $login $root.Values.postgres }}
{{- if $evaluation }}
{{- $postgres = dict "existingSecret" (printf "%s-evaluation" (include "tempmail.fullname" $root)) "key" (printf "postgres-url-%s" .component) }}
{{- end }}
- {volume: postgres, secret: {{ $postgres.existingSecret }}, entries: { {{ $postgres.key }}: url }}
{{- if and $root.Values.postgres.tls.caSecret (not $evaluation) }}
- {volume: postgres-ca, secret: {{ $root.Values.postgres.tls.caSecret }}, entries: { {{ $root.Values.postgres.tls.caKey }}: ca.crt }}
{{- end }}
{{- if has .component (list "api" "ingest" "worker") }}
{{- if $evaluation }}
- {volume: redis, secret: {{ include "tempmail.fullname" $root }}-evaluation, entries: {redis-url: url}}
{{- else if $root.Values.redis.existingSecret }}
- {volume: redis, secret: {{ $root.Values.redis.existingSecret }}, entries: { {{ $root.Values.redis.key }}: url }}
{{- end }}
{{- end }}
{{- if eq .component "api" }}
- {volume: key-rings, secret: {{ include "tempmail.keysSecret" $root }}, entries: {jwt.yaml: jwt.yaml, secrets.yaml: secrets.yaml}}
{{- else if or (eq .component "worker") (and (eq .component "operator") $root.Values.keys.existingSecret) }}
- {volume: key-rings, secret: {{ include "tempmail.keysSecret" $root }}, entries: {secrets.yaml: secrets.yaml}}
{{- end }}
{{- if and (eq .component "ingest") .values.tls.existingSecret }}
- {volume: smtp-tls, secret: {{ .values.tls.existingSecret }}, entries: {tls.crt: tls.crt, tls.key: tls.key}}
{{- end }}
{{- if and (eq .component "worker") .values.webhookCA.existingSecret }}
- {volume: webhook-ca, secret: {{ .values.webhookCA.existingSecret }}, entries: { {{ .values.webhookCA.key }}: ca.crt }}
{{- end }}
{{- end }}

{{- /* The variables that name the files of Secrets, by volume. */ -}}
{{- define "tempmail.secretEnv" -}}
{{- $files := dict
  "postgres" (dict "TEMPMAIL_POSTGRES__URL_FILE" "url")
  "postgres-ca" (dict "PGSSLROOTCERT" "ca.crt")
  "redis" (dict "TEMPMAIL_REDIS__URL_FILE" "url")
  "key-rings" (dict "TEMPMAIL_JWT__KEYS_FILE" "jwt.yaml" "TEMPMAIL_SECRETS__KEYS_FILE" "secrets.yaml")
  "smtp-tls" (dict "TEMPMAIL_SMTP__TLS__CERT" "tls.crt" "TEMPMAIL_SMTP__TLS__KEY" "tls.key")
  "webhook-ca" (dict "TEMPMAIL_WEBHOOKS__CA_FILE" "ca.crt")
}}
{{- range .secrets }}
{{- $mounted := . }}
{{- range $variable, $file := get $files .volume }}
{{- if has $file (values $mounted.entries) }}
- {name: {{ $variable }}, value: /etc/tempmail/{{ $mounted.volume }}/{{ $file }}}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "tempmail.env" -}}
{{- $root := .root }}
{{- include "tempmail.settings" (dict "prefix" "TEMPMAIL_" "settings" (include "tempmail.config" $root | fromYaml)) }}
{{- include "tempmail.secretEnv" . }}
{{- if and $root.Values.postgres.tls.mode (not $root.Values.evaluation.enabled) }}
- {name: PGSSLMODE, value: {{ $root.Values.postgres.tls.mode }}}
{{- end }}
{{- if eq .component "operator" }}
- {name: TEMPMAIL_OPERATOR__LEASE_NAME, value: {{ .values.leaseName }}}
{{- with .values.watchNamespaces }}
- {name: TEMPMAIL_OPERATOR__WATCH_NAMESPACES, value: {{ join "," . | quote }}}
{{- end }}
- {name: TEMPMAIL_OPERATOR__POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
{{- if not $root.Values.keys.existingSecret }}
- {name: TEMPMAIL_OPERATOR__KEYS_SECRET, value: {{ include "tempmail.keysSecret" $root }}}
{{- end }}
{{- end }}
{{- with .values.extraEnv | default $root.Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* Labels and annotations of the pod. */ -}}
{{- define "tempmail.podMetadata" -}}
labels:
  {{- include "tempmail.selector" . | nindent 2 }}
  app.kubernetes.io/part-of: tempmail
  {{- with .root.Values.commonLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- with .values.podLabels | default .root.Values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .values.podAnnotations | default .root.Values.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* Where a pod runs, and what it gives way to. */ -}}
{{- define "tempmail.scheduling" -}}
{{- $root := .root }}
{{- with .values.priorityClassName | default $root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .values.nodeSelector | default $root.Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations | default $root.Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity | default $root.Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* The spec of the pod, without its restart policy. */ -}}
{{- define "tempmail.podSpec" -}}
{{- $root := .root }}
{{- $secrets := include "tempmail.secrets" . | fromYamlArray }}
{{- $serves := ne .component "migrate" }}
{{- $port := get (dict "api" 8080 "ingest" 2525) .component }}
serviceAccountName: {{ include "tempmail.fullname" $root }}{{ if eq .component "operator" }}-operator{{ end }}
automountServiceAccountToken: {{ eq .component "operator" }}
# Otherwise the Services of the release set variables that begin with TEMPMAIL_, as settings do.
enableServiceLinks: false
securityContext:
  {{- include "tempmail.podSecurityContext" . | nindent 2 }}
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- include "tempmail.scheduling" . }}
{{- if $serves }}
{{- with .values.topologySpreadConstraints | default $root.Values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- range . }}
  {{- $own := dict "labelSelector" (dict "matchLabels" (include "tempmail.selector" $ | fromYaml)) "matchLabelKeys" (list "pod-template-hash") }}
  - {{ ternary . (merge (dict) . $own) (hasKey . "labelSelector") | toYaml | nindent 4 | trim }}
  {{- end }}
{{- end }}
# 5 s before SIGTERM, 25 s of drain, and a margin.
terminationGracePeriodSeconds: 40
{{- end }}
containers:
  - name: {{ .component }}
    image: {{ include "tempmail.image" $root }}
    imagePullPolicy: {{ $root.Values.image.pullPolicy }}
    args: [{{ .component }}]
    env:
      {{- include "tempmail.env" (merge (dict "secrets" $secrets) .) | trim | nindent 6 }}
    {{- if $serves }}
    ports:
      {{- if $port }}
      - {name: {{ eq .component "api" | ternary "http" "smtp" }}, containerPort: {{ $port }}}
      {{- end }}
      {{- if eq .component "api" }}
      {{- range $name, $port := include "tempmail.dropIns" $root | fromYaml }}
      - {name: {{ $name }}, containerPort: {{ $port }}}
      {{- end }}
      {{- end }}
      - {name: admin, containerPort: 9090}
    livenessProbe:
      httpGet: {path: /livez, port: admin}
      periodSeconds: 10
      timeoutSeconds: 5
      failureThreshold: 6
    readinessProbe:
      httpGet: {path: /readyz, port: admin}
      periodSeconds: 3
      timeoutSeconds: 3
    {{- if $port }}
    # New connections go elsewhere before this pod refuses them.
    lifecycle:
      preStop: {sleep: {seconds: 5}}
    {{- end }}
    {{- end }}
    securityContext:
      {{- include "tempmail.containerSecurityContext" . | nindent 6 }}
    resources:
      {{- toYaml .values.resources | nindent 6 }}
    volumeMounts:
      {{- range $secrets }}
      - {name: {{ .volume }}, mountPath: /etc/tempmail/{{ .volume }}, readOnly: true}
      {{- end }}
      {{- with .values.extraVolumeMounts | default $root.Values.extraVolumeMounts }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
volumes:
  {{- range $secrets }}
  - name: {{ .volume }}
    secret:
      secretName: {{ .secret }}
      items:
        {{- range $entry, $file := .entries }}
        - {key: {{ $entry }}, path: {{ $file }}}
        {{- end }}
  {{- end }}
  {{- with .values.extraVolumes | default $root.Values.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- define "tempmail.deployment" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- include "tempmail.metadata" . | nindent 2 }}
spec:
  {{- if not (dig "autoscaling" "enabled" false .values) }}
  replicas: {{ .values.replicas }}
  {{- end }}
  revisionHistoryLimit: {{ .root.Values.revisionHistoryLimit }}
  # A new version that does not become ready leaves the pods of the former one.
  strategy:
    rollingUpdate: {maxSurge: 1, maxUnavailable: 0}
  # The Service knows a pod a moment after it is ready.
  minReadySeconds: 3
  selector:
    matchLabels:
      {{- include "tempmail.selector" . | nindent 6 }}
  template:
    metadata:
      {{- include "tempmail.podMetadata" . | nindent 6 }}
    spec:
      {{- include "tempmail.podSpec" . | trim | nindent 6 }}
{{- end }}

{{- define "tempmail.migrationSpec" -}}
{{- $migration := dict "root" . "component" "migrate" "values" .Values.migration }}
{{- $template := dict "metadata" (include "tempmail.podMetadata" $migration | fromYaml) "spec" (include "tempmail.podSpec" $migration | fromYaml) }}
{{- $_ := set $template.spec "restartPolicy" "Never" }}
{{- toYaml (dict "backoffLimit" (int .Values.migration.backoffLimit) "template" $template) }}
{{- end }}

{{- /*
A Job can't be changed, so its name has the version and, for the same version with other settings, a
digest of what it runs. Running a migration again changes nothing.
*/ -}}
{{- define "tempmail.migrationJob" -}}
{{- $version := .Chart.AppVersion | lower | replace "+" "-" | replace "." "-" -}}
{{ include "tempmail.fullname" . }}-migrate-{{ $version }}-{{ include "tempmail.migrationSpec" . | sha256sum | trunc 8 }}
{{- end }}
