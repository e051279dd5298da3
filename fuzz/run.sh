#!/usr/bin/env bash
# Fuzzes every target, or those that are named, for so many seconds each: run.sh SECONDS [TARGET...]
#
# New inputs go to fuzz/corpus/TARGET, crashes to fuzz/artifacts/TARGET; neither is committed. Prints what each run came to.
# The last line is `N passed, N failed`. Needs cargo-fuzz; no nightly.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
seconds=${1:?usage: run.sh SECONDS [TARGET...]}
shift
corpora=tests/fuzzed/corpora
export CARGO_TERM_COLOR=never
mapfile -t all < <(sed -n '/^\[\[bin\]\]/{n;s/^name = "\(.*\)"$/\1/p}' fuzz/Cargo.toml)
targets=("${@:-${all[@]}}")
binaries=${CARGO_TARGET_DIR:-fuzz/target}/$(rustc -vV | sed -n 's/^host: //p')/release

cargo fuzz build --sanitizer none >/dev/null
passed=0 failed=0 table=
for target in "${targets[@]}"; do
    mkdir -p "fuzz/corpus/$target" "fuzz/artifacts/$target"
    log=fuzz/artifacts/$target.log
    status=0
    "$binaries/$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="fuzz/artifacts/$target/" \
        -dict=fuzz/words.dict "fuzz/corpus/$target" "$corpora/$target" </dev/null >"$log" 2>&1 || status=$?
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    reached=$(grep -oE 'cov: [0-9]+ ft: [0-9]+' "$log" | tail -n 1 || true)
    table+=$(printf '%-12s %10s runs  %s' "$target" "${runs:-?}" "${reached:-?}")$'\n'
    if ((status)); then
        failed=$((failed + 1))
        table+="             FAILED, see $log"$'\n'
        tail -n 30 "$log"
    else
        passed=$((passed + 1))
    fi
done
printf '%s\n%d passed, %d failed\n' "$table" "$passed" "$failed"
exit $((failed > 0))
