# What is wrong with the objects of a release, a line each.

def name: "\(.kind) \(.metadata.name)";
def cluster_wide: ["ClusterRole", "ClusterRoleBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"];

# The pods that an object makes.
def pods:
  if .kind == "Pod" then {metadata, spec}
  else .spec.template? // empty | select(.spec.containers) | {metadata, spec} end;

def pod_findings($name):
  (.metadata.labels["app.kubernetes.io/component"]) as $component
  | (if .spec.automountServiceAccountToken != ($component == "operator")
     then "automountServiceAccountToken" else empty end),
    (if .spec.enableServiceLinks != false then "enableServiceLinks" else empty end),
    (if .spec.securityContext.runAsNonRoot != true then "runAsNonRoot" else empty end),
    (if .spec.securityContext.seccompProfile.type != "RuntimeDefault" then "seccompProfile" else empty end),
    (if .spec | (.hostNetwork or .hostPID or .hostIPC) then "a namespace of the host" else empty end),
    (.spec.volumes[]? | select([keys[] | select(IN("name", "configMap", "secret", "emptyDir", "projected") | not)] != [])
     | "volume \(.name) is of a kind that is not allowed"),
    (if IN($component; "api", "ingest", "worker", "operator") and (.spec.terminationGracePeriodSeconds // 0) < 30
     then "terminationGracePeriodSeconds is shorter than the drain" else empty end),
    (.spec.containers[], .spec.initContainers[]?
     | (if .securityContext.allowPrivilegeEscalation != false then "allowPrivilegeEscalation" else empty end),
       (if .securityContext.readOnlyRootFilesystem != true then "readOnlyRootFilesystem" else empty end),
       (if .securityContext.capabilities != {"drop": ["ALL"]} then "capabilities" else empty end),
       (if .securityContext.privileged then "privileged" else empty end),
       (if (.resources | .requests.cpu and .requests.memory and .limits.memory) | not then "resources" else empty end),
       (if [.ports[]? | select(.hostPort)] != [] then "hostPort" else empty end),
       (if (.image | test(":latest$") or (test("[:@]") | not)) then "image \(.image)" else empty end))
  | "\($name): \(.)";

[.[] | pods] as $pods
| (.[] | name as $name | pods | pod_findings($name)),
  # What is in no namespace by itself would land in that of kubectl.
  (.[] | select(.metadata.name != "extra")
   | select((IN(.kind; cluster_wide[]) | not) and .metadata.namespace == null) | "\(name): no namespace"),
  (.[] | select(.metadata.name != "extra")
   | select(.metadata.labels | (has("app.kubernetes.io/name") and has("app.kubernetes.io/instance")) | not)
   | "\(name): labels"),
  # Services, disruption budgets and policies select the pods of one role, and Deployments their own.
  (.[] | select(.kind != "ServiceMonitor") | name as $name | .spec? | objects
   | (.podSelector? // .selector?) // empty | (.matchLabels? // .) as $labels
   | [$pods[] | select(.metadata.labels | contains($labels))] | select(length != 1)
   | "\($name): selects \(length) kinds of pods"),
  # Ports that Services name are those of the pods.
  (.[] | select(.kind == "Service") | name as $name | .spec | .selector as $labels | .ports[].targetPort
   | . as $port | select([$pods[] | select(.metadata.labels | contains($labels)) | .spec.containers[].ports[]?
                          | select(.name == $port)] == [])
   | "\($name): no pod has the port \($port)"),
  # Two objects of one name overwrite each other.
  ([.[] | [.apiVersion, .kind, .metadata.namespace, .metadata.name]] | group_by(.)[] | select(length > 1)
   | "twice: \(.[0] | join(" "))"),
  # An autoscaler and the chart don't both say how many pods there are.
  ([.[] | select(.kind == "HorizontalPodAutoscaler") | .spec.scaleTargetRef.name] as $scaled
   | .[] | select(.kind == "Deployment") | select((.spec | has("replicas")) == IN(.metadata.name; $scaled[]))
   | "\(name): replicas"),
  (.[] | select(IN(.kind; "Deployment", "StatefulSet")) | select(.spec.revisionHistoryLimit != 3)
   | "\(name): revisionHistoryLimit"),
  # The API server stores an empty list as none, which differs from the manifest at each comparison.
  (.[] | select(.kind == "NetworkPolicy") | select(.spec.egress == [] or .spec.ingress == []) | "\(name): an empty list"),
  # Whoever gets an alert has to be able to open the link.
  (.[] | select(.kind == "PrometheusRule") | .spec.groups[].rules[]
   | select(.annotations.runbook_url // "https://" | test("^https?://") | not) | "\(.alert): runbook_url"),
  # A rollout keeps as many pods as there are.
  (.[] | select(.kind == "Deployment" and .metadata.labels["app.kubernetes.io/component"] != "redis")
   | select(.spec.strategy.rollingUpdate.maxUnavailable != 0) | "\(name): maxUnavailable")
