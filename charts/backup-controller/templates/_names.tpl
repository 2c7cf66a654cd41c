{{/* What the chart's objects are called, and the labels that they carry. */}}

{{- define "backup-controller.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* Name of every object of the release: the release's name where it already says which controller it is. */}}
{{- define "backup-controller.fullname" -}}
{{- $name := include "backup-controller.name" . -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "backup-controller.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "backup-controller.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- required "serviceAccount.name: with serviceAccount.create=false, name an existing ServiceAccount" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{/* Never changes during a release's life: a Deployment's selector is immutable. */}}
{{- define "backup-controller.selectorLabels" -}}
app.kubernetes.io/name: {{ include "backup-controller.name" . }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "backup-controller.labels" -}}
{{ include "backup-controller.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: {{ .Chart.Name }}
app.kubernetes.io/part-of: catena
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- with omit .Values.commonLabels "app.kubernetes.io/name" "app.kubernetes.io/instance" "app.kubernetes.io/version" "app.kubernetes.io/component" "app.kubernetes.io/part-of" "app.kubernetes.io/managed-by" "helm.sh/chart" }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* What helm test makes; a Service's name has at most 63 characters. */}}
{{- define "backup-controller.testName" -}}
{{- printf "%s-test" (include "backup-controller.fullname" . | trunc 58 | trimSuffix "-") }}
{{- end }}

{{/* What an uninstall runs first; a Job's name has at most 63 characters. */}}
{{- define "backup-controller.drainName" -}}
{{- printf "%s-drain" (include "backup-controller.fullname" . | trunc 57 | trimSuffix "-") }}
{{- end }}

{{/* The bindings of policies.protectAtCreate, one for each entry that is protected, as a list. */}}
{{- define "backup-controller.createBindings" -}}
{{- $names := list }}
{{- if .Values.policies.protectAtCreate.enabled }}
{{- range $name, $kind := .Values.kinds }}
{{- if ne $kind.protect false }}
{{- $names = append $names (printf "%s-create-%s" (include "backup-controller.fullname" $) $name) }}
{{- end }}
{{- end }}
{{- end }}
{{- toYaml $names }}
{{- end }}

{{- define "backup-controller.image" -}}
{{- with .Values.image }}
{{- .repository }}:{{ default $.Chart.AppVersion .tag }}{{ with .digest }}@{{ . }}{{ end }}
{{- end }}
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
