#!/usr/bin/env bash
# Writes the bill of materials of the binary, CycloneDX 1.5: sbom.sh [FILE]. What it says depends on Cargo.lock alone, so that
# it can be kept beside it. Needs cargo-cyclonedx (`cargo install --locked cargo-cyclonedx`).
set -euo pipefail

out=$(realpath -m "${1:-deploy/stdiowatch.cdx.json}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
trap 'rm -f stdiowatch-sbom.json' EXIT
cargo cyclonedx --quiet --format json --spec-version 1.5 --target x86_64-unknown-linux-gnu --no-build-deps --override-filename stdiowatch-sbom
# A number and a time of this run, and where it ran, are no matter of the binary's.
python3 - stdiowatch-sbom.json "$out" "$PWD" <<'PY'
import json
import re
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    text = file.read()
# Nor is the registry that a reference names.
text = re.sub(r'"registry\+[^"#]*#', '"crate:', text)
bom = json.loads(text.replace(sys.argv[3] + "/", "").replace(sys.argv[3], "."))
bom.pop("serialNumber", None)
bom["metadata"].pop("timestamp", None)
with open(sys.argv[2], "w", encoding="utf-8") as file:
    json.dump(bom, file, indent=1, sort_keys=True)
    file.write("\n")
PY
