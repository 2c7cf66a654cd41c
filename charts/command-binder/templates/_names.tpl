{{/* What the chart's objects are called, and the labels that they carry. */}}

{{- define "command-binder.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* Name of every object of the release: the release's name where it already says which controller it is. */}}
{{- define "command-binder.fullname" -}}
{{- $name := include "command-binder.name" . -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "command-binder.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "command-binder.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- required "serviceAccount.name: with serviceAccount.create=false, name an existing ServiceAccount" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{/* Never changes during a release's life: a Deployment's selector is immutable. */}}
{{- define "command-binder.selectorLabels" -}}
app.kubernetes.io/name: {{ include "command-binder.name" . }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "command-binder.labels" -}}
{{ include "command-binder.selectorLabels" . }}
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
{{- define "command-binder.testName" -}}
{{- printf "%s-test" (include "command-binder.fullname" . | trunc 58 | trimSuffix "-") }}
{{- end }}

{{- define "command-binder.image" -}}
{{- with .Values.image }}
{{- .repository }}:{{ default $.Chart.AppVersion .tag }}{{ with .digest }}@{{ . }}{{ end }}
{{- end }}
{{- end }}
