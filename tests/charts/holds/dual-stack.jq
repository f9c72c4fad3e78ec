# Each Service has the families of its own value, else those of all.
{ingest: ["RequireDualStack", ["IPv4", "IPv6"]], api: ["SingleStack", ["IPv4"]]} as $own
| .[] | select(.kind == "Service")
| ($own[.metadata.labels["app.kubernetes.io/component"]] // ["PreferDualStack", null]) as $expected
| [.spec.ipFamilyPolicy, .spec.ipFamilies] | select(. != $expected)
| "a Service has \(.), and not \($expected)"
