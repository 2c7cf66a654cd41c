{{/* The rights of the controller in all namespaces: those of its ClusterRole, which its settings need. */}}
{{- define "command-reaper.rules" -}}
# From the same list as the controller's settings: what is configured can be deleted, or marked as kept, and nothing else.
{{- range .Values.kinds }}
{{- if .expire }}
- apiGroups: [{{ .group | default "" | quote }}]
  resources: [{{ .resource }}]
  verbs: [list, watch, patch, delete]
{{- end }}
{{- end }}
{{- if .Values.discovery.enabled }}
# How the commands of a discovered kind expire stands in its definition.
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  verbs: [list, watch]
{{- end }}
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- end }}
