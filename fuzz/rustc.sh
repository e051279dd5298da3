#!/bin/sh
# What cargo calls instead of rustc: our own crates are built with what libFuzzer needs to see where an input got to. These are
# cargo-fuzz' flags, without a sanitizer.
case " $* " in
*" --crate-name stdiowatch "* | *" --crate-name fuzz "*)
    exec "$@" -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
        -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares
    ;;
*) exec "$@" ;;
esac
