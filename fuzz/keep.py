#!/usr/bin/env python3
"""Chooses what is kept of what fuzzing found: keep.py [TARGET...].

Of the inputs in fuzz/corpus/TARGET and tests/fuzzed/corpora/TARGET, those that together reach the most go to the latter,
the smaller one where two reach as much; 18 of each target at the most. Those called `found-…` stay: they once found
something.
"""

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parent.parent
KEPT = TOP / "tests/fuzzed/corpora"
MOST = 18
LONGEST = 4096


def main():
    shell = f". {TOP}/fuzz/build.sh && echo $binary"
    binary = (TOP / subprocess.run(["bash", "-ec", shell], cwd=TOP, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()).resolve()
    for target in sys.argv[1:] or sorted(os.listdir(KEPT)):
        with tempfile.TemporaryDirectory(prefix="stdiowatch-keep-") as folder:
            chosen = choose(binary, target, pathlib.Path(folder))
            replace(KEPT / target, chosen)
        print(f"{target:<12} {len(list((KEPT / target).iterdir()))} inputs", flush=True)


def choose(binary, target, folder):
    """The texts of the inputs that reach most."""
    inputs, merged = folder / "inputs", folder / "merged"
    inputs.mkdir()
    merged.mkdir()
    for source in (KEPT / target, TOP / "fuzz/corpus" / target):
        for path in source.glob("*"):
            if path.stat().st_size <= LONGEST:
                shutil.copy(path, inputs / hashlib.sha1(path.read_bytes()).hexdigest())
    told = folder / "told"
    # It writes down what each input reaches: edges, with one of eight numbers each for how often it was taken.
    argv = [binary, "-set_cover_merge=1", f"-merge_control_file={told}", merged, inputs]
    subprocess.run(argv, env={**os.environ, "STDIOWATCH_FUZZ": target}, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    lines = told.read_text().splitlines()
    names = lines[2:2 + int(lines[0])]
    marked = (line.split() for line in lines[2 + int(lines[0]):])
    reached = [(names[int(n)], frozenset(int(feature) // 8 for feature in features)) for mark, n, *features in marked if mark == "FT"]
    texts, found = [], set()
    while reached and len(texts) < MOST:
        name, edges = max(reached, key=lambda pair: (len(pair[1] - found), -os.path.getsize(pair[0])))
        if edges <= found:
            break
        texts.append(pathlib.Path(name).read_bytes())
        found |= edges
        reached.remove((name, edges))
    return texts


def replace(folder, texts):
    for path in folder.iterdir():
        if not path.name.startswith("found-"):
            path.unlink()
    there = {path.read_bytes() for path in folder.iterdir()}
    for text in texts:
        if text not in there:
            (folder / hashlib.sha1(text).hexdigest()[:16]).write_bytes(text)


if __name__ == "__main__":
    sys.exit(main())
