{{- /* Generated from charts/_shared by `cargo xtask charts`. Do not edit. */ -}}
{{/* The rights in the release's own namespace: those that leader election needs, and the chart's further `rules`, as text. */}}
{{- define "catena.role" -}}
{{- $rules := .rules }}
{{- with .chart -}}
{{- if and .Values.rbac.create (or .Values.leaderElection $rules) -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ include "catena.fullname" . }}
  namespace: {{ .Release.Namespace | quote }}
  labels:
    {{- include "catena.labels" . | nindent 4 }}
rules:
  {{- if .Values.leaderElection }}
  # For a Lease that somebody deleted. A create cannot be limited to a name: the object does not exist yet.
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    verbs: [create]
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    resourceNames: [{{ include "catena.fullname" . }}]
    verbs: [get, update]
  {{- end }}
  {{- with $rules }}
  {{- . | nindent 2 }}
  {{- end }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ include "catena.fullname" . }}
  namespace: {{ .Release.Namespace | quote }}
  labels:
    {{- include "catena.labels" . | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ include "catena.fullname" . }}
subjects:
  - kind: ServiceAccount
    name: {{ include "catena.serviceAccountName" . }}
    namespace: {{ .Release.Namespace | quote }}
{{- end }}
{{- end }}
{{- end }}
