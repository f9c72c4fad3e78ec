# No pod is left out: roles, migration, evaluation, `helm test`.
[.[] | if .kind == "Pod" then .spec else .spec.template?.spec // empty | select(.containers) end] as $pods
| if ($pods | length) != 8 then "\($pods | length) kinds of pods" else empty end,
  ($pods[] | .containers[0].name as $name
   | ["nodeSelector", "tolerations", "affinity", "priorityClassName"][] as $field
   | select(has($field) | not) | "\($name): no \($field)")
