{{/* How the API server's CEL, where a field that is not there is an error, reads what the controller reads. */}}

{{/* A plain path gives null where a field is missing; any other expression is taken as it is. */}}
{{- define "command-binder.present" -}}
{{- if regexMatch "^object(\\.[A-Za-z_][A-Za-z0-9_]*)+$" . }}
{{- . | replace "." ".?" }}.orValue(null)
{{- else }}
{{- print "(" . ")" }}
{{- end }}
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
{{- fail (printf "kinds: the selector of %s has %q, which an admission policy cannot have: write it with =, !=, a key or !key, or set admission.enabled=false for this kind" .id $term) }}
{{- end }}
{{- end }}
{{- with .filter }}
{{- $all = append $all (printf "(%s)" .) }}
{{- end }}
{{- join " && " $all }}
{{- end }}
