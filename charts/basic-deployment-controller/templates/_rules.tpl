{{/* The rights in all namespaces that the controller needs for its settings. */}}
{{- define "basic-deployment-controller.rules" -}}
# It is patched when its annotation catena.dev/pinned-revision no longer holds.
- apiGroups: [catena.dev]
  resources: [basicdeployments]
  verbs: [get, list, watch, patch]
- apiGroups: [catena.dev]
  resources: [basicdeployments/status]
  verbs: [patch]
# The owner reference of children and revisions has blockOwnerDeletion, which asks for this where OwnerReferencesPermissionEnforcement is on.
- apiGroups: [catena.dev]
  resources: [basicdeployments/finalizers]
  verbs: [update]
# The kinds of children, as the value children says. Applying one that does not exist yet asks for create and patch.
{{- range .Values.children }}
- apiGroups: [{{ include "basic-deployment-controller.group" . | quote }}]
  resources: [{{ .resource }}]
  verbs: [get, list, watch, create, patch, delete]
{{- with (.contract | default dict).pods }}
# The pod that keeps a child from serving, as contract.pods says.
- apiGroups: [""]
  resources: [pods]
  verbs: [list]
{{- with .controller }}
- apiGroups: [{{ include "basic-deployment-controller.group" . | quote }}]
  resources: [{{ .resource }}]
  verbs: [get]
{{- end }}
{{- end }}
{{- end }}
# The history of each BasicDeployment.
- apiGroups: [apps]
  resources: [controllerrevisions]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- end }}

{{/* The API group of a kind of children. */}}
{{- define "basic-deployment-controller.group" -}}
{{- if contains "/" .apiVersion }}{{ splitList "/" .apiVersion | first }}{{ end }}
{{- end }}
