{{- /* Generated from charts/_shared by `cargo xtask charts`. Do not edit. */ -}}
{{/* The names of the chart's objects, and their labels. */}}

{{- define "catena.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* Name of every object of the release: the release's name where it already says which controller it is. */}}
{{- define "catena.fullname" -}}
{{- $name := include "catena.name" . -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "catena.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "catena.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- required "serviceAccount.name: with serviceAccount.create=false, name an existing ServiceAccount" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{/* Never changes during a release's life: a Deployment's selector is immutable. */}}
{{- define "catena.selectorLabels" -}}
app.kubernetes.io/name: {{ include "catena.name" . }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "catena.labels" -}}
{{ include "catena.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: {{ .Chart.Name }}
app.kubernetes.io/part-of: catena
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- with omit (default dict .Values.commonLabels) "app.kubernetes.io/name" "app.kubernetes.io/instance" "app.kubernetes.io/version" "app.kubernetes.io/component" "app.kubernetes.io/part-of" "app.kubernetes.io/managed-by" "helm.sh/chart" }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The labels of a hook's pod: it is none of those that the release's selectors find. */}}
{{- define "catena.hookLabels" -}}
{{- $own := dict "app.kubernetes.io/component" .component "catena.dev/hook-of" (include "catena.fullname" .chart) }}
{{- toYaml (merge $own (omit (default dict .chart.Values.podLabels) "app.kubernetes.io/name" "app.kubernetes.io/instance")) }}
{{- end }}

{{/* The name of the objects of helm test; a Service's name has at most 63 characters. */}}
{{- define "catena.testName" -}}
{{- printf "%s-test" (include "catena.fullname" . | trunc 58 | trimSuffix "-") }}
{{- end }}

{{- define "catena.image" -}}
{{- with .Values.image }}
{{- .repository }}:{{ default $.Chart.AppVersion .tag }}{{ with .digest }}@{{ . }}{{ end }}
{{- end }}
{{- end }}
