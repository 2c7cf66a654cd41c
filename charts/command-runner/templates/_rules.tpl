{{/* The rights of the controller in all namespaces: those of its ClusterRole, which its settings need. */}}
{{- define "command-runner.rules" -}}
{{- $definitions := list }}
# From the same list as the controller's settings: commands that are described with `run` are carried out, and nothing else is changed.
{{- range .Values.kinds }}
{{- if .run }}
{{- $resource := .resource }}
{{- with .group }}
{{- $definitions = append $definitions (printf "%s.%s" $resource .) }}
{{- end }}
# Its status, or an annotation where its definition has none for it.
- apiGroups: [{{ .group | default "" | quote }}]
  resources: [{{ .resource }}]
  verbs: [get, list, watch, patch]
- apiGroups: [{{ .group | default "" | quote }}]
  resources: [{{ .resource }}/status]
  verbs: [patch]
{{- range .target.kinds }}
- apiGroups: [{{ .group | default "" | quote }}]
  resources: [{{ .resource }}]
  verbs: [get, list, watch, patch]
{{- end }}
{{- end }}
{{- end }}
{{- if .Values.discovery.enabled }}
# Whether a kind's status takes a run stands in its definition, and so does how a discovered kind is carried out.
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  verbs: [get, list, watch]
{{- else if $definitions }}
# Whether a kind's status takes a run stands in its definition.
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  resourceNames:
    {{- toYaml $definitions | nindent 4 }}
  verbs: [get]
{{- end }}
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- end }}
