#!/usr/bin/env python3
"""Prints what fuzzing came to, as the table in README.md: table.py [CORPORA].

Inputs, CPU time and edges are what run.sh has written down. Lines are those of the target's own modules that the inputs in
CORPORA reach (or fuzz/corpus), as rustc's own instrumentation counts them. Needs llvm-profdata and llvm-cov of rustc's
version of LLVM (apt: llvm-22).
"""

import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parent.parent
CORPORA = pathlib.Path(sys.argv[1] if sys.argv[1:] else TOP / "fuzz/corpus").resolve()
LLVM = "22"
# What each target is about: files, and folders.
MODULES = {
    "call": ["config/ours.rs", "probe/call.rs"],
    "clients": ["config/clients/"],
    "compare": ["judge/compare/"],
    "dotenv": ["config/dotenv.rs"],
    "exposition": ["show/exposition.rs"],
    "framing": ["protocol/wire/"],
    "http": ["serve/access.rs", "serve/connection.rs", "serve/listen.rs", "serve/pages.rs", "serve/routes.rs", "show/page/", "show/health.rs"],
    "json": ["protocol/json/"],
    "lock": ["judge/lock.rs", "judge/drift.rs", "judge/listing.rs"],
    "mcp": ["protocol/mcp/"],
    "probe": ["probe/"],
    "record": ["ledger/record.rs", "ledger/history.rs"],
    "replay": ["probe/tape.rs", "judge/checks/", "judge/report.rs", "show/human.rs", "show/github.rs", "show/junit.rs", "show/nagios.rs", "show/transcript.rs"],
    "web": ["config/web/"],
    "yaml": ["config/yaml.rs", "config/yaml/", "config/ours/", "config/read.rs", "config/keys.rs", "config/quantity.rs"],
}


def main():
    with tempfile.TemporaryDirectory(prefix="stdiowatch-coverage-") as folder:
        folder = pathlib.Path(folder)
        test = built(folder)
        print("| target | CPU time | inputs tried | edges reached | lines of its modules reached |")
        print("|---|---|---|---|---|")
        runs = all_runs()
        for target, modules in MODULES.items():
            reached, lines = coverage(test, target, modules, folder)
            minutes, inputs, edges = runs[target]
            print(f"| `{target}` | {minutes / 60:.1f} min | {inputs:,} | {edges:,} | {reached:,} of {lines:,} ({reached * 100 // lines} %) |", flush=True)
        print(f"| all | {sum(run[0] for run in runs.values()) / 60:.1f} min | {sum(run[1] for run in runs.values()):,} | | |")


def all_runs():
    """Of each target: seconds of CPU, inputs, and the most edges."""
    runs = collections.defaultdict(lambda: (0.0, 0, 0))
    path = TOP / "fuzz/artifacts/runs.tsv"
    for line in path.read_text().splitlines() if path.exists() else ():
        target, cpu, inputs, edges, *_ = line.split("\t")
        so_far = runs[target]
        runs[target] = (so_far[0] + float(cpu), so_far[1] + int(inputs), max(so_far[2], int(edges)))
    return runs


def built(folder):
    """The test over the corpora, with our own crate instrumented."""
    wrapper = folder / "rustc"
    wrapper.write_text('#!/bin/sh\nexec "$@" -Cinstrument-coverage\n')
    wrapper.chmod(0o755)
    argv = ["cargo", "test", "--locked", "--test", "corpora", "--no-run", "--message-format=json"]
    # Build scripts and libraries are instrumented with it, and run.
    env = {**os.environ, "RUSTC_WORKSPACE_WRAPPER": str(wrapper), "LLVM_PROFILE_FILE": str(folder / "build-%p.profraw")}
    done = subprocess.run(argv, cwd=TOP, env=env, check=True, stdout=subprocess.PIPE, text=True)
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return next(line["executable"] for line in told if line.get("executable") and line["target"]["name"] == "corpora")


def coverage(test, target, modules, folder):
    """How many lines of these modules the target's inputs reach, and of how many."""
    raw, merged = folder / "run.profraw", folder / "run.profdata"
    env = {**os.environ, "LLVM_PROFILE_FILE": str(raw), "STDIOWATCH_FUZZ": target, "STDIOWATCH_CORPORA": str(CORPORA)}
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run([test, "nothing_breaks_on_what_is_kept"], cwd=TOP, env=env, check=True, **silent)
    subprocess.run([f"llvm-profdata-{LLVM}", "merge", "-sparse", raw, "-o", merged], check=True)
    argv = [f"llvm-cov-{LLVM}", "export", "-summary-only", f"-instr-profile={merged}", test]
    told = json.loads(subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True).stdout)
    reached = lines = 0
    for file in told["data"][0]["files"]:
        within = file["filename"].removeprefix(str(TOP / "src") + "/")
        if any(within == module or module.endswith("/") and within.startswith(module) for module in modules):
            reached += file["summary"]["lines"]["covered"]
            lines += file["summary"]["lines"]["count"]
    return reached, lines


if __name__ == "__main__":
    sys.exit(main())
