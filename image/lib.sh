# shellcheck shell=bash
# Functions that put programs into images without a base image, and without a tool for images: an archive in the
# OCI layout is a few JSON documents and a tar file for each layer. The same files give the same digest.
set -euo pipefail
export LC_ALL=C
umask 022

log() { printf '%s\n' "$*" >&2; }
die() { log "error: $*"; exit 1; }
need() { local c; for c; do command -v "$c" >/dev/null || die "$c is missing"; done; }

# --- files of an image -----------------------------------------------------
# add_program ROOT PROGRAM DESTINATION: a program, and the libraries that the loader finds for it
add_program() {
    install -D -m 755 "$2" "$1$3"
    add_libraries "$1" "$2"
}

# add_libraries ROOT PROGRAM: each one at the path where the loader looks
add_libraries() {
    local found library
    found="$(ldd "$2" 2>/dev/null)" || return 0 # linked statically
    ! grep --quiet 'not found' <<<"$found" || die "$2 needs libraries that this machine lacks: $found"
    awk '/=> \// {print $3; next} $1 ~ /^\// {print $1}' <<<"$found" | while read -r library; do
        [ -e "$1$library" ] || install -D -m 755 "$(realpath "$library")" "$1$library"
    done
}

# add_tree ROOT FOLDER: a folder at its own path, links followed
add_tree() {
    mkdir -p "$1$2"
    cp --recursive --dereference --no-target-directory "$2" "$1$2"
    chmod -R u=rwX,go=rX "$1$2"
}

# add_user ROOT NAME UID HOME: the only user beside root
add_user() {
    mkdir -p "$1/etc"
    printf 'root:x:0:0:root:/:/sbin/nologin\n%s:x:%d:%d:%s:%s:/sbin/nologin\n' "$2" "$3" "$3" "$2" "$4" >"$1/etc/passwd"
    printf 'root:x:0:\n%s:x:%d:\n' "$2" "$3" >"$1/etc/group"
    # The C library asks for users and hosts as this file says.
    printf 'passwd: files\ngroup: files\nhosts: files dns\n' >"$1/etc/nsswitch.conf"
}

# --- archives --------------------------------------------------------------
# sorted_tar FOLDER UID: a tar file that depends on nothing but names, modes and contents
sorted_tar() {
    tar --create --directory "$1" --sort=name --format=ustar --mtime="@$SOURCE_DATE_EPOCH" \
        --owner="$2" --group="$2" --numeric-owner .
}

digest() { sha256sum "$1" | cut -d ' ' -f 1; }

# add_blob LAYOUT FILE: moves a file to its digest, and prints that
add_blob() {
    local sum
    sum="$(digest "$2")"
    mv "$2" "$1/blobs/sha256/$sum"
    printf '%s\n' "$sum"
}

# pack ARCHIVE NAME:TAG CONFIG FOLDER[=UID]...: writes the archive of an image with a layer for each folder, whose
# files belong to UID (0), and prints its digest. CONFIG is the image's configuration as JSON (User, Env, ...).
# The archive is of OCI's format and of Docker's: skopeo, podman, ctr and `docker load` read it.
pack() {
    local archive="$1" name="$2" config="$3" scratch folder user file sum diff_ids='[]' layers='[]' created
    shift 3
    need jq tar gzip sha256sum
    scratch="$(mktemp -d)"
    mkdir -p "$scratch/layout/blobs/sha256"
    created="$(date --utc --date="@$SOURCE_DATE_EPOCH" +%FT%TZ)"
    for folder; do
        user=0
        if [[ $folder = *=* ]]; then user="${folder##*=}" folder="${folder%=*}"; fi
        file="$scratch/layer"
        sorted_tar "$folder" "$user" >"$file"
        diff_ids="$(jq --compact-output --arg sum "sha256:$(digest "$file")" '. + [$sum]' <<<"$diff_ids")"
        gzip --no-name -9 "$file"
        sum="$(add_blob "$scratch/layout" "$file.gz")"
        layers="$(jq --compact-output --arg sum "$sum" --argjson size "$(stat -c %s "$scratch/layout/blobs/sha256/$sum")" \
            '. + [{mediaType: "application/vnd.oci.image.layer.v1.tar+gzip", digest: "sha256:\($sum)", size: $size}]' <<<"$layers")"
    done
    jq --null-input --sort-keys --arg created "$created" --arg architecture "$(dpkg --print-architecture)" \
        --argjson config "$config" --argjson diff_ids "$diff_ids" '{
            $created, $architecture, os: "linux", $config,
            rootfs: {type: "layers", $diff_ids},
            history: [$diff_ids[] | {$created}]
        }' >"$scratch/config"
    local config_size config_sum manifest_sum
    config_size="$(stat -c %s "$scratch/config")"
    config_sum="$(add_blob "$scratch/layout" "$scratch/config")"
    jq --null-input --sort-keys --arg sum "sha256:$config_sum" --argjson size "$config_size" --argjson layers "$layers" '{
        schemaVersion: 2, mediaType: "application/vnd.oci.image.manifest.v1+json",
        config: {mediaType: "application/vnd.oci.image.config.v1+json", digest: $sum, $size},
        $layers
    }' >"$scratch/manifest"
    local manifest_size
    manifest_size="$(stat -c %s "$scratch/manifest")"
    manifest_sum="$(add_blob "$scratch/layout" "$scratch/manifest")"
    jq --null-input --arg sum "sha256:$manifest_sum" --argjson size "$manifest_size" --arg name "$name" '{
        schemaVersion: 2, mediaType: "application/vnd.oci.image.index.v1+json",
        manifests: [{
            mediaType: "application/vnd.oci.image.manifest.v1+json", digest: $sum, $size,
            annotations: {"io.containerd.image.name": $name, "org.opencontainers.image.ref.name": ($name | split(":")[-1])}
        }]
    }' >"$scratch/layout/index.json"
    printf '{"imageLayoutVersion": "1.0.0"}\n' >"$scratch/layout/oci-layout"
    jq --null-input --arg config "blobs/sha256/$config_sum" --arg name "$name" --argjson layers "$layers" \
        '[{Config: $config, RepoTags: [$name], Layers: [$layers[].digest | sub("sha256:"; "blobs/sha256/")]}]' \
        >"$scratch/layout/manifest.json"
    mkdir -p "$(dirname "$archive")"
    sorted_tar "$scratch/layout" 0 >"$archive.new"
    mv "$archive.new" "$archive"
    rm -rf "$scratch"
    printf 'sha256:%s\n' "$manifest_sum"
}
