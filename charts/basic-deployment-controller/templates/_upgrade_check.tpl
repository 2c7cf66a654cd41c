{{- /* Generated from charts/_shared by `cargo xtask charts`. Do not edit. */ -}}
{{/*
A Job that has the API server try every live object under the chart's definitions before they are upgraded, and fails, so that nothing is
upgraded, if an object would be refused or lose a field. Its rights are those of the check alone, and go with it.
*/}}
{{- define "catena.upgradeCheck" -}}
{{- with .chart -}}
{{- if and .Values.crds.install (.Values.crds.upgradeCheck).enabled -}}
{{- $fullname := include "catena.fullname" . }}
{{- if gt (len $fullname) 49 }}
{{- $fullname = printf "%s-%s" ($fullname | trunc 40 | trimSuffix "-") ($fullname | sha256sum | trunc 8) }}
{{- end }}
{{- $name := printf "%s-upgrade-check" $fullname }}
{{- $namespace := .Release.Namespace }}
{{- $group := "" }}
{{- $plurals := list }}
{{- $files := dict }}
{{- range $path, $file := .Files.Glob "files/*.yaml" }}
{{- $spec := ($file | toString | fromYaml).spec }}
{{- $group = $spec.group }}
{{- $plurals = append $plurals $spec.names.plural }}
{{- $_ := set $files (base $path) ($file | toString) }}
{{- end }}
{{- /* By the content, so that a check never takes the definition of another one for its own. */}}
{{- $scratchId := $files | toJson | sha256sum | trunc 12 }}
{{- $scratchGroup := printf "zz-upgrade-check-%s.catena.dev" $scratchId }}
{{- $metadata := dict
  "name" $name
  "labels" (include "catena.labels" . | fromYaml)
  "annotations" (dict
    "helm.sh/hook" "pre-upgrade,pre-rollback"
    "helm.sh/hook-weight" "-1"
    "helm.sh/hook-delete-policy" "before-hook-creation,hook-succeeded") }}
{{- $namespaced := merge (dict "namespace" $namespace) $metadata }}
apiVersion: v1
kind: ServiceAccount
metadata:
  {{- toYaml $namespaced | nindent 2 }}
automountServiceAccountToken: false
---
apiVersion: v1
kind: ConfigMap
metadata:
  {{- toYaml $namespaced | nindent 2 }}
data:
  {{- toYaml $files | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  {{- toYaml $metadata | nindent 2 }}
rules:
  # Objects as they are stored.
  - apiGroups: [{{ $group }}]
    resources:
      {{- toYaml $plurals | nindent 6 }}
    verbs: [get, list]
  # Trials of them, in dry runs.
  - apiGroups: [{{ $scratchGroup }}]
    resources:
      {{- toYaml $plurals | nindent 6 }}
    verbs: [create, list]
  # Definitions under which they are tried. A create cannot be limited to a name: the object does not exist yet.
  - apiGroups: [apiextensions.k8s.io]
    resources: [customresourcedefinitions]
    verbs: [create, list]
  - apiGroups: [apiextensions.k8s.io]
    resources: [customresourcedefinitions]
    resourceNames:
      {{- range $plurals }}
      - {{ . }}.{{ $scratchGroup }}
      {{- end }}
    verbs: [get, patch, delete]
  # The installed definitions; the update is a dry run.
  - apiGroups: [apiextensions.k8s.io]
    resources: [customresourcedefinitions]
    resourceNames:
      {{- range $plurals }}
      - {{ . }}.{{ $group }}
      {{- end }}
    verbs: [get, update]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  {{- toYaml $metadata | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $name }}
subjects:
  - kind: ServiceAccount
    name: {{ $name }}
    namespace: {{ $namespace | quote }}
---
apiVersion: batch/v1
kind: Job
metadata:
  {{- $last := dict "helm.sh/hook-weight" "0" "helm.sh/hook-output-log-policy" "hook-failed" }}
  {{- toYaml (merge (dict "annotations" (merge $last $namespaced.annotations)) $namespaced) | nindent 2 }}
spec:
  backoffLimit: 0
  ttlSecondsAfterFinished: 86400
  activeDeadlineSeconds: {{ .Values.crds.upgradeCheck.deadlineSeconds }}
  template:
    metadata:
      labels:
        {{- include "catena.hookLabels" (dict "chart" . "component" "upgrade-check") | nindent 8 }}
      {{- with .Values.podAnnotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      restartPolicy: Never
      serviceAccountName: {{ $name }}
      automountServiceAccountToken: true
      enableServiceLinks: false
      {{- with .Values.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      {{- with .Values.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext:
        {{- toYaml .Values.podSecurityContext | nindent 8 }}
      containers:
        - name: upgrade-check
          {{- with .Values.crds.upgradeCheck.image }}
          image: {{ .repository }}:{{ default $.chart.Chart.AppVersion .tag }}{{ with .digest }}@{{ . }}{{ end }}
          {{- end }}
          imagePullPolicy: {{ .Values.image.pullPolicy }}
          terminationMessagePolicy: FallbackToLogsOnError
          args:
            - upgrade
            - check
            - --objects-only
            - --scratch-id={{ $scratchId }}
            {{- range $file, $_ := $files }}
            - /etc/definitions/{{ $file }}
            {{- end }}
          {{- with .Values.env }}
          env:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          resources:
            {{- toYaml .Values.crds.upgradeCheck.resources | nindent 12 }}
          securityContext:
            {{- toYaml .Values.securityContext | nindent 12 }}
          volumeMounts:
            - name: definitions
              mountPath: /etc/definitions
              readOnly: true
      volumes:
        - name: definitions
          configMap:
            name: {{ $name }}
      {{- with .Values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .Values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .Values.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- end }}
{{- end }}
{{- end }}
{{- end }}
