{{/* The kinds of children, as a YAML list: those of the value `children`, and the deprecated value `child`. */}}
{{- define "basic-deployment-controller.children" -}}
{{- $listed := .Values.children }}
{{- with .Values.child }}
{{- $single := merge (deepCopy .) (dict "apiVersion" "catena.dev/v1alpha1" "kind" "BasicReplicaSet" "resource" "basicreplicasets") }}
{{- $others := list }}
{{- range $listed }}
{{- if or (ne .kind $single.kind) (ne (include "basic-deployment-controller.group" .) (include "basic-deployment-controller.group" $single)) }}
{{- $others = append $others . }}
{{- end }}
{{- end }}
{{- $listed = prepend $others $single }}
{{- end }}
{{- toYaml $listed }}
{{- end }}

{{/* The API group of a kind of children. */}}
{{- define "basic-deployment-controller.group" -}}
{{- if contains "/" .apiVersion }}{{ splitList "/" .apiVersion | first }}{{ end }}
{{- end }}
