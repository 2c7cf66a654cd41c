{{/* The rights of the controller in all namespaces: those of its ClusterRole, which its settings need. */}}
{{- define "backup-controller.rules" -}}
{{- $namespaces := false }}
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- range $name, $kind := .Values.kinds }}
{{- $backup := required (printf "kinds.%s.backup: there is no backup %q in backups" $name $kind.backup) (get $.Values.backups $kind.backup) }}
{{- if $kind.namespaceSelector }}{{ $namespaces = true }}{{ end }}
# kinds.{{ $name }}: patch sets and takes the finalizer, and says on the object why it waits.
- apiGroups: [{{ include "backup-controller.group" $kind | quote }}]
  resources: [{{ $kind.resource }}]
  verbs: [get, list, watch, patch]
{{- if not $backup.namespace }}
# Its backups are made wherever the objects are.
- apiGroups: [{{ include "backup-controller.group" $backup | quote }}]
  resources: [{{ $backup.resource }}]
  verbs: [get, list, watch, create]
{{- end }}
{{- end }}
{{- if $namespaces }}
# For namespaceSelector.
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get, list, watch]
{{- end }}
{{- if .Values.drain.enabled }}
{{- $definitions := list }}
{{- range $kind := .Values.kinds }}
{{- $group := include "backup-controller.group" $kind }}
{{- if contains "." $group }}
{{- $definitions = append $definitions (printf "%s.%s" $kind.resource $group) }}
{{- end }}
{{- end }}
{{- with $definitions | uniq | sortAlpha }}
# An uninstall refuses while a kind is defined, but not served: its objects would keep the finalizer.
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  resourceNames:
    {{- toYaml . | nindent 6 }}
  verbs: [get]
{{- end }}
{{- with include "backup-controller.createBindings" . | fromYamlArray }}
# An uninstall takes the policy away first, or it would put the finalizer on again.
- apiGroups: [admissionregistration.k8s.io]
  resources: [mutatingadmissionpolicybindings]
  resourceNames:
    {{- toYaml . | nindent 6 }}
  verbs: [get, delete]
{{- end }}
{{- end }}
{{- end }}

{{/* The rights in the namespaces of backups, as a list. What is made in a namespace of its own is seen and made there, and nowhere else. */}}
{{- define "backup-controller.namespacedRules" -}}
{{- $used := dict }}
{{- range $kind := .Values.kinds }}
{{- $_ := set $used $kind.backup true }}
{{- end }}
{{- $all := list }}
{{- range $name, $backup := .Values.backups }}
{{- if and $backup.namespace (hasKey $used $name) }}
{{- $rule := dict "apiGroups" (list (include "backup-controller.group" $backup)) "resources" (list $backup.resource) "verbs" (list "get" "list" "watch" "create") }}
{{- $all = append $all (dict "name" $name "namespace" $backup.namespace "rules" (list $rule)) }}
{{- end }}
{{- end }}
{{- toYaml $all }}
{{- end }}
