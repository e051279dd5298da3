#!/usr/bin/env python3
"""Holds check's formats, the manual pages and docs/ci.md against other people's readers: run.py BINARY.

JUnit XML against junit.xsd, also of a server that writes what XML cannot hold; each manual page against groff; the
GitHub and GitLab examples of docs/ci.md against those services' own schemas, the commands of all by running them.
Needs tests/real/install.sh and man.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from checks import TOP, Checks

import xmlschema

HERE = pathlib.Path(__file__).resolve().parent
HOSTILE = r"""printf '\033[2J\001\377<x>&]]>\357\277\277\n[[ATTACHMENT|/etc/passwd]]\n'; printf '\033]0;x\007\000\357\277\276\n' >&2; exit 3"""


def main():
    binary = str(pathlib.Path(sys.argv[1]).resolve())
    check = Checks()
    with tempfile.TemporaryDirectory(prefix="stdiowatch-formats-") as folder:
        folder = pathlib.Path(folder)
        junit(check, binary, folder / "report.xml")
        manual(check, binary)
        examples(check, binary, folder)
    return check.end()


def run(*argv, **how):
    return subprocess.run([str(word) for word in argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **how)


def junit(check, binary, report):
    schema = xmlschema.XMLSchema(HERE / "junit.xsd")
    sample = lambda kind, *options: ("--eof-grace", "200ms", *options, "--", binary, "sample-server", kind)
    for name, words in {
        "pass": sample("sound"),
        "warn": sample("ignore-eof"),
        "warn, strictly": sample("ignore-eof", "--strict"),
        "fail": sample("banner"),
        "unknown": sample("banner", "--severity", "stdout.noise=unknown"),
        "never launched": ("--", "no-such-command-anywhere"),
        "hostile": ("--name", "<&\"'>", "--", "sh", "-c", HOSTILE),
    }.items():
        run(binary, "check", "--format", "junit", "-o", report, *words)
        wrong = [f"{error.path}: {error.reason}" for error in schema.iter_errors(report)]
        check(f"JUnit, {name}: the schema takes it", "\n".join(wrong))
    entries = report.with_name("mcp.json")
    entries.write_text('{"mcpServers": {"far": {"url": "https://example.com"}, "wrong": {}, "": {}, "s": {"command": "no-such-command-anywhere"}}}')
    run(binary, "check", "--format", "junit", "-o", report, "--config", entries)
    check("JUnit, entries that are not watched: the schema takes it", "\n".join(error.reason for error in schema.iter_errors(report)))
    run(binary, "check", "--format", "junit", "-o", report, "--name", "<&\"'>", "--", "sh", "-c", HOSTILE)
    text = report.read_text()
    check("and does not take what is not JUnit", "" if not schema.is_valid(text.replace(' tests="1"', "", 1)) else "it took it")
    check("no file is fetched for a server", "[[ATTACHMENT" if "[[ATTACHMENT" in text else "")


def manual(check, binary):
    subcommands = re.findall(r"^  ([a-z-]+) ", run(binary, "help").stdout.decode().split("Commands:")[1], re.M)
    check("there are subcommands", "" if len(subcommands) > 6 else subcommands)
    for page in [[], *([name] for name in subcommands if name != "help")]:
        roff = run(binary, "man", *page).stdout
        # What man itself runs, without a pager and a locale.
        shown = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-"], input=roff, capture_output=True, env={"PATH": "/usr/bin:/bin", "MANWIDTH": "80", "LC_ALL": "C.UTF-8"})
        wrong = shown.stderr.decode() or ("" if b"SYNOPSIS" in shown.stdout else "no synopsis")
        check(f"man {' '.join(page) or 'stdiowatch'}: no warning", wrong)


def example(title):
    """The first example below a heading of docs/ci.md."""
    part = (TOP / "docs/ci.md").read_text().split(f"\n## {title}\n")[1].split("\n## ")[0]
    lines = re.search(r"((?:    .*\n|\n)+)", part[part.index("\n    ") :]).group(1)
    return textwrap.dedent(lines).strip() + "\n"


def examples(check, binary, folder):
    for title, schema in {"GitHub Actions": "vendor.github-workflows", "GitLab CI": "vendor.gitlab-ci"}.items():
        file = folder / "example.yml"
        file.write_text(example(title))
        done = run("check-jsonschema", "--builtin-schema", schema, file)
        check(f"the example for {title}: its schema takes it", done.stdout.decode() if done.returncode else "")
    hook = re.search(r"entry: (.*)", example("pre-commit")).group(1)
    for kind, wanted in {"sound": 0, "banner": 1}.items():
        words = hook.replace("node dist/server.js", f"{binary} sample-server {kind}").replace("stdiowatch", binary, 1).split()
        done = run(*words, cwd=folder)
        check(f"the hook, with a server that is {kind}", "" if done.returncode == wanted else done.stdout.decode())
    for script in sorted(set(re.findall(r"^ *(?:- (?:run: )?|entry: )(stdiowatch check .*)$", (TOP / "docs/ci.md").read_text(), re.M))):
        words = script.replace("node dist/server.js", "no-such-command-anywhere").split()[1:]
        done = run(binary, *words, cwd=folder)
        check(f"`{script}`: every option exists", done.stdout.decode() if done.returncode != 1 else "")


if __name__ == "__main__":
    shutil.which("check-jsonschema") or sys.exit("check-jsonschema is missing: tests/real/install.sh installs it")
    sys.exit(main())
