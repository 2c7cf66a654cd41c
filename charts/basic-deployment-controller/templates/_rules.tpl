{{/* The rights of the controller in all namespaces: those of its ClusterRole, which its settings need. */}}
{{- define "basic-deployment-controller.rules" -}}
- apiGroups: [catena.dev]
  resources: [basicdeployments, basicdeploymentrestarts, basicdeploymentrollbacks]
  verbs: [get, list, watch]
- apiGroups: [catena.dev]
  resources: [basicdeployments/status, basicdeploymentrestarts/status, basicdeploymentrollbacks/status]
  verbs: [patch]
# The owner reference of children and revisions has blockOwnerDeletion, which asks for this where OwnerReferencesPermissionEnforcement is on.
- apiGroups: [catena.dev]
  resources: [basicdeployments/finalizers]
  verbs: [update]
# The kinds of children, as the value children says. Applying one that does not exist yet asks for create and patch.
{{- range include "basic-deployment-controller.children" . | fromYamlArray }}
- apiGroups: [{{ include "basic-deployment-controller.group" . | quote }}]
  resources: [{{ .resource }}]
  verbs: [get, list, watch, create, patch, delete]
{{- $group := include "basic-deployment-controller.group" . }}
{{- if and $group (not (hasKey . "contract")) }}
# The label on its definition, which says that the kind honours the contract.
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  resourceNames: [{{ printf "%s.%s" .resource $group | quote }}]
  verbs: [get]
{{- end }}
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
# The objects that may refuse a child. They are watched only while one of them does, so that its change is followed by a retry at once.
- apiGroups: [""]
  resources: [resourcequotas]
  verbs: [list, watch]
- apiGroups: [admissionregistration.k8s.io]
  resources: [validatingadmissionpolicies, validatingadmissionpolicybindings, validatingwebhookconfigurations, mutatingwebhookconfigurations]
  verbs: [list, watch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end }}
