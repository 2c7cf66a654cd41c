{{/* The rights of the controller in all namespaces: those of its ClusterRole, which its settings need. */}}
{{- define "command-binder.rules" -}}
{{- $definitions := list }}
# From the same list as the controller's settings: what is configured can be bound, and nothing else. Where
# OwnerReferencesPermissionEnforcement is on, only who may delete an object may change its owners, and only who may update the
# owner's finalizers may have it wait.
{{- range .Values.kinds }}
{{- if .target }}
{{- $mode := default "Owner" .mode }}
{{- $resource := .resource }}
- apiGroups: [{{ .group | quote }}]
  resources: [{{ .resource }}]
  verbs: [list, watch{{ if ne $mode "Observe" }}, patch{{ end }}{{ if eq $mode "Owner" }}, delete{{ end }}]
{{- if .reportsBound }}
{{- with .group }}
{{- $definitions = append $definitions (printf "%s.%s" $resource .) }}
{{- end }}
- apiGroups: [{{ .group | quote }}]
  resources: [{{ .resource }}/status]
  verbs: [patch]
{{- end }}
{{- $blocks := and .blockOwnerDeletion (eq $mode "Owner") }}
{{- range .target.kinds }}
- apiGroups: [{{ .group | quote }}]
  resources: [{{ .resource }}]
  verbs: [get, list, watch]
{{- if $blocks }}
- apiGroups: [{{ .group | quote }}]
  resources: [{{ .resource }}/finalizers]
  verbs: [update]
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- if .Values.discovery.enabled }}
# Whether a kind's conditions can be written stands in its definition, and so does how a discovered kind is bound.
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  verbs: [get, list, watch]
{{- else if $definitions }}
# Whether a kind's conditions can be written stands in its definition.
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
