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

{{/*
The kinds that had an entry in the release before, and have none now: their objects may still carry the finalizer, and nobody takes it
away. Only an installation by Helm itself can know; as YAML in the form of the settings.
*/}}
{{- define "backup-controller.formerKinds" -}}
{{- $now := dict }}
{{- range .Values.kinds }}
{{- $_ := set $now (printf "%s.%s" .kind (include "backup-controller.group" .)) true }}
{{- end }}
{{- $former := dict }}
{{- $files := dig "data" dict (lookup "v1" "ConfigMap" .Release.Namespace (include "catena.fullname" .) | default dict) }}
{{- range $file := list "former-kinds.yaml" "settings.yaml" }}
{{- range (get $files $file | default "{}" | fromYaml).kinds }}
{{- $id := printf "%s.%s" .kind (include "backup-controller.group" .) | trimSuffix "." }}
{{- if not (hasKey $now (printf "%s.%s" .kind (include "backup-controller.group" .))) }}
{{- $_ := set $former $id (pick . "apiVersion" "kind") }}
{{- end }}
{{- end }}
{{- end }}
{{- if $former }}
{{- toYaml (dict "kinds" $former) }}
{{- end }}
{{- end }}
