# shellcheck shell=bash disable=SC2034,SC2012
# Settings and functions that the scripts here share. Every setting can be given in the environment.
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

: "${CLUSTER_DIR:=${HOME:?}/.cache/tempmail-cluster}" # state and caches
: "${CLUSTER_BIN:=$CLUSTER_DIR/bin}"                   # built programs, keyed by version
: "${CLUSTER_RUN:=$CLUSTER_DIR/run}"                   # one folder for each running cluster
: "${CLUSTER_NAME:=control-plane}"                     # which control plane: several can run at once
SERVICE_CIDR=10.96.0.0/16
API_SERVICE_IP=10.96.0.1

# The cluster of one node. All of its addresses are in a network namespace made here.
: "${NODE_NS:=tempmail-node}"        # network namespace
: "${NODE_LINK:=tempmail0}"          # this machine's end of the link; 15 characters at most
: "${NODE_HOST_IP:=10.250.0.1}"      # this machine's address on the link
: "${NODE_IP:=10.250.0.2}"           # the node's address
: "${POD_CIDR:=10.244.0.0/16}"
: "${POD_SUBNET:=10.244.0.0/24}"     # the part of POD_CIDR that the only node uses
: "${LB_CIDR:=10.250.1.0/24}"        # addresses for Services of type LoadBalancer
: "${OUTSIDE_NS:=tempmail-outside}"  # network namespace of all other addresses
: "${OUTSIDE_IP:=10.250.2.1}"        # its end of its link to the node
: "${NODE_CGROUP:=tempmail-node}"    # parent cgroup of all pods
NODE_NAME=node1
DNS_IP=10.96.0.10
CNI_BIN=/usr/lib/cni
PAUSE_IMAGE=localhost/pause:1

# Versions come from the go.mod files, so that they are pinned in one place.
mod_version() { awk -v m="$2" '$1 == "require" && $2 == m {print $3; exit}' "$HERE/tools/$1/go.mod"; }
K8S_VERSION=$(mod_version k8s k8s.io/kubernetes)
HELM_VERSION=$(mod_version helm helm.sh/helm/v3)
KUBE_SCORE_VERSION=$(mod_version kube-score github.com/zegl/kube-score)
KUBE_ROUTER_VERSION=$(mod_version kube-router github.com/cloudnativelabs/kube-router/v2)
K8S=$CLUSTER_BIN/kubernetes-$K8S_VERSION
HELM=$CLUSTER_BIN/helm-$HELM_VERSION
KUBE_SCORE=$CLUSTER_BIN/kube-score-$KUBE_SCORE_VERSION
COREDNS_VERSION=$(mod_version coredns github.com/coredns/coredns)
COREDNS=$CLUSTER_BIN/coredns-$COREDNS_VERSION
KUBE_ROUTER=$CLUSTER_BIN/kube-router-$KUBE_ROUTER_VERSION
IMAGES=$CLUSTER_BIN/images

log() { printf '%s\n' "$*" >&2; }
die() { log "error: $*"; exit 1; }
need() { local c; for c; do command -v "$c" >/dev/null || die "$c is missing: './tests/run' installs it on Debian"; done; }
seconds_since() { awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN {printf "%.1f", b - a}'; }

# wait_for WHAT COMMAND...: until the command succeeds
wait_for() {
  local end=$((SECONDS + 180)) what=$1
  shift
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < end)) || die "timed out waiting for $what"
    sleep 0.1
  done
}

# --- processes -------------------------------------------------------------
# $RUN/pids holds lines 'pid start-time name'. The start time guards against a pid that the system
# has since given to somebody else.
start_time() { # nothing for a zombie, which holds no port and no file, unless it has another thread
  local s
  s=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
  s=${s##*) }
  [[ $s != Z* || $(ls "/proc/$1/task" 2>/dev/null | wc -l) -gt 1 ]] || return 1
  # shellcheck disable=SC2086
  set -- $s
  echo "${20}"
}
is_ours() { [ "$(start_time "$1" || true)" = "$2" ]; }

# start NAME COMMAND...: in the background, detached from the terminal, recorded. $TIED is a command
# that runs it.
TIED=()
start() {
  local name=$1
  shift
  setsid "${TIED[@]}" "$@" >>"$RUN/log/$name.log" 2>&1 </dev/null &
  sed -i "/ $name\$/d" "$RUN/pids"
  echo "$! $(start_time $!) $name" >>"$RUN/pids"
}

# alive: every recorded process of $RUN runs
alive() {
  [ -s "$RUN/pids" ] || return 1
  local pid t name
  while read -r pid t name; do is_ours "$pid" "$t" || return 1; done <"$RUN/pids"
}

# stop_recorded: ends the recorded processes. What they stored is thrown away, so they need no time.
stop_recorded() {
  [ -e "$RUN/pids" ] || return 0
  local pid t name
  while read -r pid t name; do
    ! is_ours "$pid" "$t" || kill -KILL "$pid" 2>/dev/null || true
    while is_ours "$pid" "$t"; do sleep 0.02; done
  done <"$RUN/pids"
}

# --- ports -----------------------------------------------------------------
# free_port: a loopback port that nobody listens on, reserved against other control planes that start
# at the same moment; below the ports that Linux gives by chance, above those that tests take
free_port() {
  local p
  mkdir -p "$CLUSTER_RUN/.ports"
  while :; do
    p=$((32000 + RANDOM % 768))
    grep -qi ":$(printf %04X "$p") " /proc/net/tcp /proc/net/tcp6 2>/dev/null && continue
    mkdir "$CLUSTER_RUN/.ports/$p" 2>/dev/null || continue
    echo "$p" >>"$RUN/ports"
    echo "$p"
    return
  done
}

# --- certificates ----------------------------------------------------------
new_key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1" 2>/dev/null; }

make_ca() {
  mkdir -p "$RUN/pki"
  chmod 700 "$RUN/pki"
  (
    cd "$RUN/pki"
    new_key ca.key
    printf '%s\n' '[req]' 'distinguished_name=dn' 'x509_extensions=ext' '[dn]' '[ext]' \
      'basicConstraints=critical,CA:true' 'keyUsage=critical,keyCertSign,cRLSign,digitalSignature' \
      'subjectKeyIdentifier=hash' >ca.cnf
    openssl req -x509 -new -config ca.cnf -key ca.key -days 3650 -subj /CN=kubernetes -out ca.crt
    new_key sa.key
    openssl pkey -in sa.key -pubout -out sa.pub
  )
}

# make_cert NAME SUBJECT [SUBJECT-ALT-NAMES]
make_cert() (
  cd "$RUN/pki"
  new_key "$1.key"
  printf '%s\n' '[req]' 'distinguished_name=dn' 'x509_extensions=ext' '[dn]' '[ext]' \
    'basicConstraints=critical,CA:false' 'keyUsage=critical,digitalSignature' \
    'extendedKeyUsage=serverAuth,clientAuth' ${3:+"subjectAltName=$3"} >"$1.cnf"
  openssl req -x509 -new -config "$1.cnf" -key "$1.key" -CA ca.crt -CAkey ca.key -days 3650 -subj "$2" -out "$1.crt" 2>/dev/null
)

# make_kubeconfig NAME SERVER OUT: everything embedded, so that the file can be moved
make_kubeconfig() (
  cd "$RUN/pki"
  umask 077
  cat >"$3" <<K
apiVersion: v1
kind: Config
current-context: tempmail
clusters:
- name: tempmail
  cluster: {server: "$2", certificate-authority-data: $(base64 -w0 ca.crt)}
users:
- name: tempmail
  user: {client-certificate-data: $(base64 -w0 "$1.crt"), client-key-data: $(base64 -w0 "$1.key")}
contexts:
- name: tempmail
  context: {cluster: tempmail, user: tempmail, namespace: default}
K
)

# --- flags and requests ----------------------------------------------------
# What both kinds of cluster give to the API server and the controller manager. Debian's etcd 3.4 cannot serve
# streaming lists.
apiserver_flags() {
  printf '%s\n' --tls-cert-file="$RUN/pki/apiserver.crt" --tls-private-key-file="$RUN/pki/apiserver.key" \
    --client-ca-file="$RUN/pki/ca.crt" --service-account-key-file="$RUN/pki/sa.pub" \
    --service-account-signing-key-file="$RUN/pki/sa.key" --service-account-issuer=https://kubernetes.default.svc \
    --service-cluster-ip-range="$SERVICE_CIDR" --authorization-mode=Node,RBAC \
    --enable-admission-plugins=NodeRestriction --allow-privileged --profiling=false --feature-gates=WatchList=false
}
controller_manager_flags() {
  printf '%s\n' --secure-port=0 --kubeconfig="$RUN/pki/kcm.conf" \
    --service-account-private-key-file="$RUN/pki/sa.key" --root-ca-file="$RUN/pki/ca.crt" \
    --cluster-signing-cert-file="$RUN/pki/ca.crt" --cluster-signing-key-file="$RUN/pki/ca.key" \
    --use-service-account-credentials --leader-elect=false --profiling=false --feature-gates=WatchListClient=false
}

# api_get PATH: from the API server at $API
api_get() {
  curl -sf -m 5 --cacert "$RUN/pki/ca.crt" --cert "$RUN/pki/admin.crt" --key "$RUN/pki/admin.key" "$API$1"
}

# certificates SERVER [NAME]: those of the API server, which has one more NAME, and of its first clients
certificates() {
  make_ca
  make_cert apiserver /CN=kube-apiserver "IP:127.0.0.1,IP:$API_SERVICE_IP,DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local${2:+,$2}"
  make_cert admin /O=system:masters/CN=admin
  make_cert kcm /CN=system:kube-controller-manager
  make_kubeconfig admin "$1" "$RUN/kubeconfig"
  make_kubeconfig kcm "$1" "$RUN/pki/kcm.conf"
}
