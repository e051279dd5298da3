#!/usr/bin/env bash
# Installs the real servers that tests/real/run.py probes: install.sh [DIR].
#
# Everything is pinned: npm/package-lock.json, python/*.txt, hello/rmcp-old/Cargo.lock. Each part is stamped with its
# pins, its recipe and the tools' versions, so a second run does nothing. Nothing is installed outside DIR, but for
# base tools that are missing.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=${1:-${STDIOWATCH_REAL_DIR:-$HOME/.cache/stdiowatch-real}}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
cd "$dir"

# The versions of uvx' and npx' own servers stand here and in servers.toml.
uvx_server=mcp-server-time@2025.9.25
npx_server=@modelcontextprotocol/server-everything@2026.8.31

# One install, or one run of run.py, at a time.
exec 9>"$dir/lock"
flock 9

# --- base tools -------------------------------------------------------------------------------------------------------

missing=()
python3 -m pip --version >/dev/null 2>&1 || missing+=(python3-pip python3-venv)
command -v node >/dev/null || missing+=(nodejs)
command -v npm >/dev/null || missing+=(npm)
command -v man >/dev/null || missing+=(man-db groff-base) # for tests/formats
command -v git >/dev/null || missing+=(git) # mcp-server-git runs it
command -v setsid >/dev/null || missing+=(util-linux)
command -v promtool >/dev/null || missing+=(prometheus) # from here on, for monitoring.py, uptime.py and tests/deploy
command -v amtool >/dev/null || missing+=(prometheus-alertmanager)
command -v vmalert >/dev/null || missing+=(victoria-metrics)
command -v haproxy >/dev/null || missing+=(haproxy)
command -v monit >/dev/null || missing+=(monit)
command -v zabbix_agent2 >/dev/null || missing+=(zabbix-agent2)
[[ -x /usr/lib/nagios/plugins/check_http ]] || missing+=(monitoring-plugins-basic)
command -v prometheus-blackbox-exporter >/dev/null || missing+=(prometheus-blackbox-exporter)
command -v curl >/dev/null || missing+=(curl ca-certificates) # for access.py
command -v openssl >/dev/null || missing+=(openssl)
command -v chromium >/dev/null || missing+=(chromium) # for page.py
command -v systemd-analyze >/dev/null || missing+=(systemd)
for tool in podman buildah runc conmon catatonit; do # for containers.py
    command -v "$tool" >/dev/null || missing+=("$tool")
done
if ((${#missing[@]})); then
    apt-get update -q
    apt-get install -y -q --no-install-recommends "${missing[@]}"
fi
tools="$(node -v) $(python3 -V) $(rustc -V)"

# --- recipes: one function per kind, called as FUNCTION PLACE, where PLACE is a folder of its own ---------------------

npm_servers() {
    cp "$here"/npm/package{,-lock}.json "$1"
    npm ci --prefix "$1" --ignore-scripts --no-fund --no-audit
}

# What `npx -y SERVER` finds in its cache, so that it needs no network later.
npx_cache() {
    npm_config_cache=$1 npm exec --yes --ignore-scripts --package="$npx_server" -- true
}

venv() {
    python3 -m venv --without-pip "$1"
    python3 -m pip --python "$1/bin/python" install -q --disable-pip-version-check -r "$here/python/$(basename "$1").txt"
}

# What `uvx --offline SERVER` finds in its cache.
uvx_cache() {
    UV_CACHE_DIR=$1 UV_TOOL_DIR=$1/tools "$dir/venv/uv/bin/uvx" --python "$dir/venv/sdk-1.30/bin/python" \
        -c "$here/python/sdk-1.30.txt" --with mcp==1.30.0 "$uvx_server" --help
}

rmcp_old() {
    cargo build --locked --manifest-path "$here/hello/rmcp-old/Cargo.toml" --target-dir "$1/target"
    mv "$1/target/debug/rmcp-old" "$1/"
    rm -r "$1/target"
}

# --- running them -----------------------------------------------------------------------------------------------------

# part PLACE FUNCTION PINS...: fills DIR/PLACE by FUNCTION, unless its stamp fits.
part() {
    local place=$dir/$1 function=$2 begin=$SECONDS key
    shift 2
    key=$({ echo "$place $tools $npx_server $uvx_server"; declare -f "$function"; cat "$@"; } | sha256sum)
    [[ -e $place/.stamp && $(<"$place/.stamp") == "$key" ]] && return
    log=$dir/log/$(basename "$place")
    rm -rf "$place"
    mkdir -p "$place" "$dir/log"
    "$function" "$place" >"$log" 2>&1
    echo "$key" >"$place/.stamp"
    echo "installed ${place#"$dir/"} in $((SECONDS - begin)) s"
}

say_why() {
    local status=$?
    if ((status)); then
        echo "install.sh: failed; the end of $log:" >&2
        tail -n 40 "$log" >&2
    fi
}

node_and_rust() {
    trap say_why EXIT
    part npm npm_servers "$here"/npm/package{,-lock}.json
    part npm-cache npx_cache
    part rmcp-old rmcp_old "$here"/hello/rmcp-old/Cargo.{toml,lock} "$here/hello/rmcp-old/src/main.rs"
}

python() {
    trap say_why EXIT
    local pins
    for pins in "$here"/python/*.txt; do
        part "venv/$(basename "$pins" .txt)" venv "$pins"
    done
    part uv-cache uvx_cache "$here/python/uv.txt" "$here/python/sdk-1.30.txt"
}

# Two lanes, for two cores. They start without `if` or `||`, which would switch `set -e` off inside.
node_and_rust &
first=$!
python &
second=$!
failed=0
wait "$first" || failed=1
wait "$second" || failed=1
((failed == 0)) || exit 1

# Modules are looked for from where a script lies, so these lie beside node_modules.
mkdir -p npm/hello files
cp "$here"/hello/*.mjs npm/hello/
