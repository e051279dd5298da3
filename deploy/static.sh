#!/usr/bin/env bash
# Builds the static binary, which needs nothing of the image it runs in: static.sh OUT puts it at OUT/stdiowatch.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=${1:?where to put it}
# No path of this machine gets into the binary, so that the same sources and compiler give the same bytes elsewhere.
cargo=${CARGO_HOME:-$HOME/.cargo}
# A panic ends the process, so nothing is ever unwound: the tables for that are half a megabyte.
flags="-C target-feature=+crt-static -C force-unwind-tables=no --remap-path-prefix=$PWD=/src --remap-path-prefix=$cargo=/cargo"
# Only with a --target of its own are build scripts and macros left out of crt-static.
host=$(rustc -vV | sed -n 's/^host: //p')
RUSTFLAGS=$flags cargo build --release --locked --bin stdiowatch --target "$host"
install -D "${CARGO_TARGET_DIR:-target}/$host/release/stdiowatch" "$out/stdiowatch"
