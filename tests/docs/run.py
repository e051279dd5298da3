#!/usr/bin/env python3
"""Runs every command that README.md and docs/ show, and reads every other snippet as what it is: run.py BINARY [PAGE...].

What a command should come to stands in commands.toml, one table a command; what a snippet is, in snippets.toml. Both lists
are closed: a command or a snippet without an entry fails, and so does an entry that no page has any more. Commands written
within a sentence are held against the help: subcommand and options have to exist. Needs tests/real/install.sh.
"""

import contextlib
import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from checks import REAL, TOP, Checks, free_port, until

import pages
import snippets

HERE = pathlib.Path(__file__).resolve().parent
PORT = 10779  # as the pages have it
PATIENCE = 90  # seconds for a command, and for what is served to come to what it should


def main():
    binary = pathlib.Path(sys.argv[1]).resolve()
    others = [(entry["page"], entry["begins"]) for entry in snippets.kinds()]
    found = pages.read(TOP, [pathlib.Path(page) for page in sys.argv[2:]], others)
    check = Checks()
    listed(check, found, whole=not sys.argv[2:])
    for page in found:
        with tempfile.TemporaryDirectory(prefix="stdiowatch-docs-") as folder, contextlib.ExitStack() as ends:
            place = Place(binary, pathlib.Path(folder), ends)
            for block in page.blocks:
                if block.commands:
                    for command in block.commands:
                        tried(check, place, command)
                else:
                    snippets.looks(check, place, block)
        for command in page.inline:
            exists(check, binary, command)
    return check.end()


def entries():
    with open(HERE / "commands.toml", "rb") as file:
        return tomllib.load(file)["command"]


def listed(check, found, whole):
    """Every command has one entry, and every entry a command."""
    shown = [(page.name, command) for page in found for block in page.blocks for command in block.commands]
    known, used = {}, set()
    for entry in entries():
        key = (entry.get("page"), entry["is"])
        if key in known:
            check(f"one entry for `{entry['is']}`", "it has two")
        known[key] = entry
    for page, command in shown:
        # What is said of one page comes before what is said of all.
        key = next((key for key in ((page, command.text), (None, command.text)) if key in known), None)
        command.entry = known.get(key)
        used.add(key)
        if not command.entry:
            check(f"{command.at}: there is an entry for `{command.text}`", f"add to {HERE / 'commands.toml'}:\n[[command]]\nis = {toml(command.text)}\nexit = 0")
    if whole:
        for page, stale in known.keys() - used:
            check(f"{page or 'a page'} has `{stale}`", "none has it any more: take its entry out of commands.toml")
        blocks = [(block.page, block.text) for page in found for block in page.blocks]
        for entry in snippets.kinds():
            if not any(entry["page"] == page and text.startswith(entry["begins"]) for page, text in blocks):
                check(f"{entry['page']} has a snippet `{entry['begins']}`", "it has none any more: take its entry out of snippets.toml")


def toml(text):
    return f"'{text}'" if "'" not in text else f"'''{text}'''"


class Place:
    """A directory and a home of a page's own, with what its commands take to be there."""

    def __init__(self, binary, folder, ends):
        self.binary, self.ends, self.port = binary, ends, free_port()
        self.work, self.home = folder / "work", folder / "home"
        for path in (self.work / ".vscode", self.work / "dist", self.home / ".cursor", self.home / ".local/share/bash-completion/completions", folder / "bin"):
            path.mkdir(parents=True)
        (folder / "bin/stdiowatch").symlink_to(binary)
        (self.work / "credentials").mkdir()
        (self.work / "credentials/env").write_text("TOKEN=a-token-for-the-docs\n")
        # Packages come from where install.sh put them: the same names, and no network.
        (self.home / ".npmrc").write_text(f"cache={REAL / 'npm-cache'}\noffline=true\n")
        self.env = {
            "HOME": str(self.home), "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "LANG": "C.UTF-8", "TERM": "dumb", "MANPAGER": "cat",
            "USER": "docs", "LOGNAME": "docs", "SHELL": "/bin/sh", "API_KEY": "a-key-for-the-docs", "STDIOWATCH_INPUT_PERPLEXITY_KEY": "a-key-for-the-docs",
            "CREDENTIALS_DIRECTORY": str(self.work / "credentials"),
        }  # fmt: skip
        everything = REAL / "npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js"
        (self.work / "dist/server.js").write_text(f"await import({str(everything)!r});\n")
        (self.work / "package.json").write_text('{"type": "module"}\n')
        sample = f'{{"command": "{binary}", "args": ["sample-server", "sound"]}}'
        for path, key, names in [
            (self.work / ".mcp.json", "mcpServers", ("files", "git")),
            (self.home / ".cursor/mcp.json", "mcpServers", ("search",)),
            (self.work / ".vscode/mcp.json", "servers", ("mail",)),
        ]:
            path.write_text(f'{{"{key}": {{{", ".join(f"{chr(34)}{name}{chr(34)}: {sample}" for name in names)}}}}}\n')
        self.serving = None

    def shell(self, text, **how):
        return subprocess.Popen(["bash", "-c", text], cwd=self.work, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **how)

    def run(self, text):
        """Its exit status, and what it wrote."""
        process = self.shell(text)
        try:
            said, _ = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            return "it does not end", process.communicate()[0]
        return process.returncode, said

    def made(self, command):
        """The command as it can be run here: the binary that was built already, a port that is free."""
        text = command.text
        for old, new in command.entry.get("with", {}).items():
            text = text.replace(old, new)
        text = re.sub(r"^cargo run --release -- ", "stdiowatch ", text)
        return re.sub(rf"\b(localhost|127\.0\.0\.1):{PORT}\b", f"127.0.0.1:{self.port}", text)

    def serve(self, text):
        """Starts what serves, in place of what did before; it is ended with the page."""
        self.end()
        if "--listen" not in text:
            text = text.replace("stdiowatch serve", f"stdiowatch serve --listen 127.0.0.1:{self.port}", 1)
        self.serving = self.shell(f"exec {text}")
        self.ends.callback(self.end)
        return self.serving

    def end(self):
        if self.serving:
            self.serving.terminate()
            said, _ = self.serving.communicate(timeout=PATIENCE)
            status, self.serving = self.serving.returncode, None
            if status:
                sys.exit(f"serve ended with {status}: {said}")


def tried(check, place, command):
    entry = command.entry
    if not entry:
        return
    name = f"{command.at}: `{command.text}`"
    if "not_run" in entry:
        print(f"      {name} is not run: {entry['not_run']}")
        return
    for setup in entry.get("before", []):
        status, said = place.run(setup.replace("TOP", str(TOP)))
        if status:
            check(name, f"before it, `{setup}`: {status}: {said}")
            return
    text = place.made(command)
    if entry.get("serves"):
        server = place.serve(text)
        check(name, until(PATIENCE, lambda: ended(server) or answers(place, entry["serves"])))
    else:
        check(name, until(entry.get("within", 0), lambda: wrong(place, text, entry)))


def ended(server):
    return f"it ended with {server.returncode}: {server.stdout.read()}" if server.poll() is not None else ""


def answers(place, wanted):
    for path, status in wanted.items():
        got, _ = place.run(f"curl -s -o answer -w '%{{http_code}}' 'http://127.0.0.1:{place.port}{path}'; cat answer")
        said = _.strip()
        if not said.startswith(str(status)):
            return f"{path}: wanted {status}, got {said[:600]} ({got})"
    return ""


def wrong(place, text, entry):
    """What is wrong with what a command comes to."""
    status, said = place.run(text)
    if status != entry.get("exit", 0):
        return f"`{text}` exits with {status}, wanted {entry.get('exit', 0)}: {said[-2000:]}"
    missing = [pattern for pattern in entry.get("says", []) if not re.search(pattern, said, re.M)]
    return f"`{text}` does not say {missing}: {said[-2000:]}" if missing else ""


@functools.cache
def subcommands(binary):
    listed = subprocess.run([binary, "help"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^  ([a-z-]+) ", listed.split("Commands:")[1], re.M)


def exists(check, binary, command):
    """A command in a sentence: what it names has to exist; it may be a part of one, with words that stand for others."""
    words = command.text.split()[1:]
    name = next((word for word in words if not word.startswith("-")), None)
    if name is None or name == "help" or not re.fullmatch(r"[a-z-]+", name):
        return
    if name not in subcommands(binary):
        check(f"{command.at}: `{command.text}`", f"there is no subcommand {name}")
        return
    ours = words[: words.index("--")] if "--" in words else words
    # `config` has subcommands of its own.
    inner = [word for word in ours[1:2] if name == "config" and re.fullmatch(r"[a-z]+", word)]
    help_text = subprocess.run([binary, name, *inner, "--help"], capture_output=True, text=True, check=True).stdout
    unknown = [option for option in ours if re.fullmatch(r"--?[a-z][a-z-]*", option) and not re.search(rf"(?<![\w-]){option}(?![\w-])", help_text)]
    if unknown or len(ours) > 1:
        check(f"{command.at}: `{command.text}`: its options exist", f"{unknown} are not in its help" if unknown else "")


if __name__ == "__main__":
    shutil.which("npx") or sys.exit("npx is missing")
    sys.exit(main())
