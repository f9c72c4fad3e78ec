"""Who may reach whom by the NetworkPolicies of a release.

    reach.py RENDERED.json EXPECTED

The rendered objects are JSON, one a line. EXPECTED has lines `source destination port yes|no`. A source or destination is a
component of the release, `namespace:NAME` for a pod of another namespace, or an IP address. What the policies say of a
connection is worked out by the rules of Kubernetes: a pod that no policy selects may do everything, and a
connection needs the egress of its source and the ingress of its destination.
"""

import ipaddress
import json
import sys

path, expected = sys.argv[1:]
objects = [json.loads(line) for line in open(path)]
policies = [o for o in objects if o["kind"] == "NetworkPolicy"]
home = policies[0]["metadata"]["namespace"]


def matches(selector, labels):
    if any(labels.get(key) != value for key, value in selector.get("matchLabels", {}).items()):
        return False
    for rule in selector.get("matchExpressions", []):
        assert rule["operator"] == "In", rule
        if labels.get(rule["key"]) not in rule["values"]:
            return False
    return True


class Peer:
    """A pod of the release, a pod of another namespace, or an address."""

    def __init__(self, name):
        self.labels, self.ports, self.address = {}, {}, None
        self.namespace = home
        if name.startswith("namespace:"):
            self.namespace = name.removeprefix("namespace:")
            return
        for o in objects:
            template = o if o["kind"] == "Pod" else o.get("spec", {}).get("template")
            if template and template["metadata"]["labels"].get("app.kubernetes.io/component") == name:
                self.labels = template["metadata"]["labels"]
                containers = template["spec"]["containers"]
                self.ports = {p["name"]: p["containerPort"] for c in containers for p in c.get("ports", [])}
                return
        self.address, self.namespace = ipaddress.ip_address(name), None


def includes(peer, rule):
    if "ipBlock" in rule:
        # Addresses of pods are private ones, in 10.0.0.0/8 here.
        address = peer.address or ipaddress.ip_address("10.9.9.9")
        inside = lambda network: address in ipaddress.ip_network(network)  # noqa: E731
        return inside(rule["ipBlock"]["cidr"]) and not any(map(inside, rule["ipBlock"].get("except", [])))
    if peer.address:
        return False
    if "namespaceSelector" in rule:
        if not matches(rule["namespaceSelector"], {"kubernetes.io/metadata.name": peer.namespace}):
            return False
    elif peer.namespace != home:
        return False
    return matches(rule.get("podSelector", {}), peer.labels)


def allows(pod, other, direction, port, ports):
    side = "to" if direction == "Egress" else "from"
    selecting = [
        p["spec"] for p in policies
        if pod.namespace == home and direction in p["spec"]["policyTypes"] and matches(p["spec"]["podSelector"], pod.labels)
    ]
    if not selecting or pod.address:
        return True
    for spec in selecting:
        for rule in spec.get(direction.lower()) or []:
            numbers = [ports.get(p["port"], p["port"]) for p in rule.get("ports", [])]
            if (not numbers or port in numbers) and (
                not rule.get(side) or any(includes(other, peer) for peer in rule[side])
            ):
                return True
    return False


wrong = 0
for line in open(expected):
    words = line.split("#")[0].split()
    if not words:
        continue
    source, destination, port, answer = words
    a, b = Peer(source), Peer(destination)
    port = int(port)
    reached = allows(a, b, "Egress", port, b.ports) and allows(b, a, "Ingress", port, b.ports)
    if reached != (answer == "yes"):
        wrong += 1
        print(f"{source} {'reaches' if reached else 'does not reach'} {destination} on port {port}")
sys.exit(wrong > 0)
