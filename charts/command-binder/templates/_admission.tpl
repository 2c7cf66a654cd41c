{{/* How the API server's CEL, where a field that is not there is an error, reads what the controller reads. */}}

{{/* Whether the commands of a kind need a right on their target: unless the values say otherwise, what command-runner carries out
     does, because whoever may create a command could thereby change any target. */}}
{{- define "command-binder.isGuarded" -}}
{{- $own := default dict .kind.admission }}
{{- if .kind.target }}
{{- if hasKey $own "enabled" | ternary $own.enabled (or .chart.Values.admission.enabled (hasKey .kind "run")) }}true{{ end }}
{{- end }}
{{- end }}

{{/* A plain path, such as object.spec.name, object.spec.`a-b` or object.metadata.labels['a'], gives null where a field is missing;
     any other expression is taken as it is, and has no value there. Not every API server knows names in back quotes. */}}
{{- define "command-binder.present" -}}
{{- $step := "\\.[A-Za-z_][A-Za-z0-9_]*|\\.`[A-Za-z0-9_./ -]+`|\\['[^'\\\\]*'\\]|\\[\"[^\"\\\\]*\"\\]" }}
{{- if regexMatch (printf "^object(%s)+$" $step) . }}
{{- print "object" }}
{{- range regexFindAll $step (trimPrefix "object" .) -1 }}
{{- if hasPrefix ".`" . }}{{ print "[?'" (trimSuffix "`" (trimPrefix ".`" .)) "']" }}
{{- else if hasPrefix "." . }}{{ print ".?" (trimPrefix "." .) }}
{{- else }}{{ print "[?" (trimPrefix "[" .) }}
{{- end }}
{{- end }}
{{- print ".orValue(dyn(null))" }}
{{- else }}
{{- print "(" . ")" }}
{{- end }}
{{- end }}

{{/* The same of the object as it was. A field, a text or a function that is called object stays what it is. */}}
{{- define "command-binder.old" -}}
{{- regexReplaceAll "(^|[^.?\\w'\"`])object\\b" . "${1}oldObject" }}
{{- end }}

{{/* Whether a command is for a kind of targets: what it leaves open fits each, and the first that fits is meant, as in the
     controller. An empty group is the core group, and not one that is left open. */}}
{{- define "command-binder.fits" -}}
{{- $all := list }}
{{- with .fields.kind }}
{{- $all = append $all (printf "(dyn(variables.targetKind) == null || dyn(variables.targetKind) in ['', '%s'])" $.target.kind) }}
{{- end }}
{{- with .fields.group }}
{{- $all = append $all (printf "(dyn(variables.targetGroup) == null || dyn(variables.targetGroup) == '%s')" (default "" $.target.group)) }}
{{- end }}
{{- join " && " $all | default "true" }}
{{- end }}

{{/* Whether a command leaves open which of several kinds of one name is meant. */}}
{{- define "command-binder.isAmbiguous" -}}
{{- $ambiguous := "false" }}
{{- range $target := reverse .kinds }}
{{- $same := 0 }}
{{- range $.kinds }}{{ if eq .kind $target.kind }}{{ $same = add1 $same }}{{ end }}{{ end }}
{{- $open := ternary "dyn(variables.targetGroup) == null" "false" (gt $same 1) }}
{{- $fits := include "command-binder.fits" (dict "fields" $ "target" $target) }}
{{- $ambiguous = printf "%s ? %s : (%s)" $fits $open $ambiguous }}
{{- end }}
{{- $ambiguous }}
{{- end }}

{{/* The kinds of targets, for people. */}}
{{- define "command-binder.targets" -}}
{{- $targets := list }}
{{- range .target.kinds }}
{{- $targets = append $targets (printf "%s.%s" .resource (default "" .group) | trimSuffix ".") }}
{{- end }}
{{- join " or " $targets }}
{{- end }}

{{/* Whether an object is a command at all: the selector, which is text, and the filter of a kind as one expression. */}}
{{- define "command-binder.isCommand" -}}
{{- $all := list }}
{{- range $term := splitList "," (default "" .selector) }}
{{- $term = trim $term }}
{{- $key := regexFind "^[-A-Za-z0-9._/]+" (trimPrefix "!" $term) }}
{{- $label := printf "object.metadata.?labels[?'%s']" $key }}
{{- $value := regexReplaceAll "^.*= *" $term "" }}
{{- if eq $term "" }}
{{- else if regexMatch "^[-A-Za-z0-9._/]+ *==? *[-A-Za-z0-9._]*$" $term }}
{{- $all = append $all (printf "%s == optional.of('%s')" $label $value) }}
{{- else if regexMatch "^[-A-Za-z0-9._/]+ *!= *[-A-Za-z0-9._]*$" $term }}
{{- $all = append $all (printf "%s != optional.of('%s')" $label $value) }}
{{- else if regexMatch "^![-A-Za-z0-9._/]+$" $term }}
{{- $all = append $all (printf "!%s.hasValue()" $label) }}
{{- else if regexMatch "^[-A-Za-z0-9._/]+$" $term }}
{{- $all = append $all (printf "%s.hasValue()" $label) }}
{{- else }}
{{- fail (printf "kinds: the selector of %s has %q, which an admission policy does not support: write it with =, !=, a key or !key, or set admission.enabled=false for this kind" .id $term) }}
{{- end }}
{{- end }}
{{- with .filter }}
{{- $all = append $all (printf "(%s)" .) }}
{{- end }}
{{- join " && " $all }}
{{- end }}
