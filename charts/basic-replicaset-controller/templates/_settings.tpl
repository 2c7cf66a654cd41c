{{- /* Generated from charts/_shared by `cargo xtask charts`. Do not edit. */ -}}
{{/* The ConfigMap that the controller reads its settings from: `settings`, of the chart whose context is `chart`. */}}
{{- define "catena.configMap" -}}
{{- $settings := .settings }}
{{- with .chart -}}
# The controller reads this file again when it changes: no pod is restarted for it.
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "catena.fullname" . }}
  namespace: {{ .Release.Namespace | quote }}
  labels:
    {{- include "catena.labels" . | nindent 4 }}
data:
  settings.yaml: |
    {{- toYaml $settings | nindent 4 }}
{{- end }}
{{- end }}
