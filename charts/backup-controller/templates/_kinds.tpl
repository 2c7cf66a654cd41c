{{/* What an uninstall runs first; a Job's name has at most 63 characters. */}}
{{- define "backup-controller.drainName" -}}
{{- printf "%s-drain" (include "catena.fullname" . | trunc 57 | trimSuffix "-") }}
{{- end }}

{{/* The bindings of policies.protectAtCreate, one for each entry that is protected, as a list. */}}
{{- define "backup-controller.createBindings" -}}
{{- $names := list }}
{{- if .Values.policies.protectAtCreate.enabled }}
{{- range $name, $kind := .Values.kinds }}
{{- if ne $kind.protect false }}
{{- $names = append $names (printf "%s-create-%s" (include "catena.fullname" $) $name) }}
{{- end }}
{{- end }}
{{- end }}
{{- toYaml $names }}
{{- end }}

{{/* The API group of an entry's apiVersion; empty for the core group. */}}
{{- define "backup-controller.group" -}}
{{- if contains "/" .apiVersion }}{{ .apiVersion | splitList "/" | first }}{{ end }}
{{- end }}

{{/* The kind of an entry, as the first lines of a rule of an admission policy. */}}
{{- define "backup-controller.rule" -}}
apiGroups: [{{ include "backup-controller.group" . | quote }}]
        apiVersions: [{{ .apiVersion | splitList "/" | last }}]
        resources: [{{ .resource }}]
{{- end }}
