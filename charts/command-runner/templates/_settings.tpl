{{- /* Generated from charts/_shared by `cargo xtask charts`. Do not edit. */ -}}
{{/*
The ConfigMap that the controller reads its settings from: `settings`, of the chart whose context is `chart`, with the rights that
they need: `rules` in all namespaces, as text, and `namespaced`, a list of namespaces with their rules, as text. `files` are more files. Helm writes it before
the roles, so that the controller takes the settings once it has these rights, and keeps the former ones until then.
*/}}
{{- define "catena.configMap" -}}
{{- $settings := .settings }}
{{- $files := default dict .files }}
{{- $rights := list (dict "rules" (fromYamlArray .rules)) }}
{{- range default "[]" .namespaced | fromYamlArray }}
{{- $rights = append $rights (omit . "name") }}
{{- end }}
{{- with .chart -}}
# The controller reads these files again when they change: no pod is restarted for it.
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "catena.fullname" . }}
  namespace: {{ .Release.Namespace | quote }}
  labels:
    {{- include "catena.labels" . | nindent 4 }}
  annotations:
    # As the controller computes it from the text that it has taken.
    catena.dev/settings-version: {{ toYaml $settings | trim | sha256sum }}
data:
  settings.yaml: |
    {{- toYaml $settings | nindent 4 }}
  {{- if .Values.rbac.create }}
  rights.yaml: |
    {{- toYaml $rights | nindent 4 }}
  {{- end }}
  {{- range $name, $text := $files }}
  {{ $name }}: |
    {{- $text | nindent 4 }}
  {{- end }}
{{- end }}
{{- end }}

{{/* The part of the notes about the settings: an upgrade that succeeds has only delivered them. */}}
{{- define "catena.nextSteps" }}

Wait until the controller is running and has taken these settings, or learn why it does not:

  helm test {{ .Release.Name }} --namespace {{ .Release.Namespace }} --logs
{{- end }}
