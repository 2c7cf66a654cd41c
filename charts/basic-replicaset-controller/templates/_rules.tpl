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
  verbs: [create, patch]
{{- end }}

{{/* Rights that it can do without: it does not wait for them before it takes new settings. */}}
{{- define "basic-replicaset-controller.optionalRules" -}}
# The objects that may refuse a pod. They are watched only while one of them does, so that its change is followed by a retry at once.
- apiGroups: [""]
  resources: [resourcequotas, limitranges, serviceaccounts]
  verbs: [list, watch]
- apiGroups: [admissionregistration.k8s.io]
  resources: [validatingadmissionpolicies, validatingadmissionpolicybindings, validatingwebhookconfigurations, mutatingwebhookconfigurations]
  verbs: [list, watch]
{{- end }}
