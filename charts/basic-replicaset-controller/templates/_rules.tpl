{{/* The rights in all namespaces that the controller needs for its settings. */}}
{{- define "basic-replicaset-controller.rules" -}}
- apiGroups: [catena.dev]
  resources: [basicreplicasets]
  verbs: [get, list, watch]
- apiGroups: [catena.dev]
  resources: [basicreplicasets/status]
  verbs: [patch]
# A pod's owner reference has blockOwnerDeletion, which asks for this where OwnerReferencesPermissionEnforcement is on.
- apiGroups: [catena.dev]
  resources: [basicreplicasets/finalizers]
  verbs: [update]
# patch is for taking an orphan back; together with delete it may set the owner reference.
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- end }}
