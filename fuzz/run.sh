#!/usr/bin/env bash
# Fuzzes every target, or those that are named, for so many seconds each: run.sh SECONDS [TARGET...]
#
# New inputs go to fuzz/corpus/TARGET, crashes to fuzz/artifacts/TARGET; neither is committed. As many targets run at the
# same time as STDIOWATCH_FUZZ_JOBS says, or as there are cores. What each run came to is printed, and added to
# fuzz/artifacts/runs.tsv. The last line is `N passed, N failed`. Needs a C++ compiler; no nightly, and nothing else.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
seconds=${1:?usage: run.sh SECONDS [TARGET...]}
shift
corpora=tests/fuzzed/corpora
mapfile -t all < <(ls "$corpora")
targets=("${@:-${all[@]}}")
most=${STDIOWATCH_FUZZ_JOBS:-$(nproc)}
level=$((seconds > 60))
. fuzz/build.sh
TIMEFORMAT='%U %S'

# fuzzed TARGET: runs it, and says in its `.result` what that came to, in columns: the target, seconds of CPU, inputs,
# edges, edges with how often they were taken, failed or not.
fuzzed() {
    local target=$1 log=fuzz/artifacts/$1.log status=0 cpu inputs reached
    mkdir -p "fuzz/corpus/$target" "fuzz/artifacts/$target"
    { time STDIOWATCH_FUZZ=$target "$binary" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="fuzz/artifacts/$target/" -dict=fuzz/words.dict "fuzz/corpus/$target" "$corpora/$target" </dev/null >"$log" 2>&1; } 2>"fuzz/artifacts/$target.time" || status=$?
    cpu=$(awk '{ print $1 + $2 }' "fuzz/artifacts/$target.time")
    inputs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    reached=$(grep -oE 'cov: [0-9]+ ft: [0-9]+' "$log" | tail -n 1 | tr -dc '0-9 ' || true)
    # shellcheck disable=SC2086 # two columns
    printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$target" "$cpu" "${inputs:-0}" ${reached:-0 0} "$((status > 0))" >"fuzz/artifacts/$target.result"
}

for target in "${targets[@]}"; do
    while (($(jobs -rp | wc -l) >= most)); do
        wait -n
    done
    fuzzed "$target" &
done
wait

failed=0
printf '%-12s %8s %12s %7s %7s\n' target 'CPU s' inputs edges features
for target in "${targets[@]}"; do
    IFS=$'\t' read -r _ cpu inputs edges features bad <"fuzz/artifacts/$target.result"
    printf '%-12s %8s %12s %7s %7s\n' "$target" "$cpu" "$inputs" "$edges" "$features"
    if ((bad)); then
        failed=$((failed + 1))
        tail -n 30 "fuzz/artifacts/$target.log"
    fi
    cat "fuzz/artifacts/$target.result" >>fuzz/artifacts/runs.tsv
done
printf '%d passed, %d failed\n' $((${#targets[@]} - failed)) "$failed"
exit $((failed > 0))
