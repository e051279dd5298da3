# Sourced in the repository's root: builds the program that fuzzes, and says where it is in `binary`. Our own crate is optimized
# as `level` says.
# shellcheck shell=bash disable=SC2034
RUSTC_WRAPPER=$PWD/fuzz/rustc.sh cargo build --quiet --locked --manifest-path fuzz/Cargo.toml --target-dir "${CARGO_TARGET_DIR:-target}" \
    --config "profile.dev.package.stdiowatch.opt-level=${level:-0}"
binary=${CARGO_TARGET_DIR:-target}/debug/fuzz
