{{/* The rights of the controller in all namespaces: those of its ClusterRole, which its settings need. */}}
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
# The objects that may refuse a pod. They are watched only while one of them does, so that its change is followed by a retry at once.
- apiGroups: [""]
  resources: [resourcequotas, limitranges, serviceaccounts]
  verbs: [list, watch]
- apiGroups: [admissionregistration.k8s.io]
  resources: [validatingadmissionpolicies, validatingadmissionpolicybindings, validatingwebhookconfigurations, mutatingwebhookconfigurations]
  verbs: [list, watch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end }}
