#!/usr/bin/env python3
"""Fifty hostile servers beside fifty sound ones: hostile.py BINARY LIAR [SECONDS].

The hostile ones do their worst at once: gigabytes on stdout and stderr, ten thousand notifications a second, a thousand children,
a hundred megabytes of schema, brackets without end, names made of terminal escapes, markup, PromQL and the oddities of UTF-8. For
so many seconds (30) the sound ones have to keep their verdicts and to be launched in time; stdiowatch has to stay under 64 MiB; and
whatever it shows, on the page, in /metrics, in the API, in its log and on a terminal, has to be clean. LIAR is the cargo example of
that name. Needs install.sh.
"""

import contextlib
import html.parser
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from checks import Checks, free_port, start, until

MOST_MEMORY = 64 << 10  # KiB
SOUND = 50
READY = 240  # seconds until every server was probed
CHILDREN = 1000
LEAVING = 2  # seconds until what was killed is gone
MEGABYTES = 100

# What a name, a version or a text may try: on a terminal, in markup, in PromQL, in the exposition format, and in UTF-8.
WORDS = {
    "terminal": "\\u001b[2J\\u001b]0;owned\\u0007\\u001b[31mred\\u009b31m\\u0008\\u0000\\u007f",
    "markup": "<script>alert(1)</script><img src=x onerror=alert(2)>\\\"'&amp;<!--",
    "promql": "x\\\"} 1\\nstdiowatch_up{server=\\\"sound-0\\\"} 0\\n# EOF\\n{__name__=~\\\".*\\\"}",
    "turned": "\\u202egpj.exe\\u2066\\u200b\\ufeff\\u2028\\u0300\\u0301\\u200d\\udb40\\udc41",
    "surrogates": "\\ud800\\udfff\\udc00 half \\ud83d",
    "shell": "$(reboot)`id`; rm -rf / | %s%n${jndi:ldap://x}../../etc/passwd",
}


def raw(text):
    """The same as bytes, as liar writes them."""
    return "".join(f"\\x{byte:02x}" if byte < 32 or byte > 126 or byte in b"\\$" else chr(byte) for byte in json.loads(f'"{text}"').encode(errors="surrogatepass"))


def tool(name, schema='{"type":"object"}'):
    return f'{{"name":"{name}","description":"{name}","inputSchema":{schema}}}'


def told(tools):
    return f'on tools/list: print {{"jsonrpc":"2.0","id":$id,"result":{{"tools":[{tools}]}}}}'


def hostile():
    """name → the script of liar, or a shell's."""
    servers = {}
    for word, text in WORDS.items():
        info = f'{{"name":"{text}","version":"{text}","title":"{text}"}}'
        servers[f"name-{word}"] = f"before initialize: stderr {raw(text)}\non initialize: reply with {{\"serverInfo\":{info},\"instructions\":\"{text}\"}}\n{told(tool(text))}"
        servers[f"method-{word}"] = f'print {{"jsonrpc":"2.0","method":"{text}","params":{{"{text}":1}}}}\nprint {{"jsonrpc":"2.0","id":"{text}","method":"{text}"}}'
        servers[f"error-{word}"] = f'on any: print {{"jsonrpc":"2.0","id":$id,"error":{{"code":-1,"message":"{text}","data":"{text}"}}}}'
        servers[f"noise-{word}"] = f"print {raw(text)}"
        servers[f"version-{word}"] = f'on initialize: reply with {{"protocolVersion":"{text}"}}'
    many = ",".join(tool(f"{n}") for n in range(3))
    servers |= {
        "gigabyte-stdout": "print x\nflood $repeat(65536,A)",
        "gigabyte-stdout-lines": "print x\nflood $repeat(65536,A)\\x0a",
        "gigabyte-json": f'print x\nflood {{"jsonrpc":"2.0","method":"x","params":"$repeat(65536,A)"}}\\x0a',
        "gigabyte-stderr": "on initialize: sleep 0ms",
        "notifications": 'print {"jsonrpc":"2.0","method":"notifications/message"}\nflood {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\\x0a',
        "blank-lines": "flood \\x0a",
        "requests": 'flood {"jsonrpc":"2.0","id":$n,"method":"ping"}\\x0a',
        "schema-wide": told(tool("wide", f'{{"type":"object","properties":{{$repeat({MEGABYTES * 4_000},"aaaaaaaaaaaaa":{{}},)"z":{{}}}}}}')),
        "schema-long": told(tool("long", f'{{"type":"object","description":"$repeat({MEGABYTES << 20},a)"}}')),
        "schema-deep": told(tool("deep", '{"type":"object","a":$repeat(500000,[)$repeat(500000,])}')),
        "schema-objects": told(tool("deep", '{"type":"object","not":$repeat(200000,{"a":)1$repeat(200000,})}')),
        "schema-moves": told(tool("m", '{"type":"object","a":$repeat(200000,[)$env(STDIOWATCH_TREE).length$repeat(200000,])}').replace("$env(STDIOWATCH_TREE).length", '"$env(STDIOWATCH_TREE)"')),
        "tools-many": told(f"$repeat(60000,{tool('same')},){many}"),
        "cursors": f'on tools/list: result {{"tools":[{many}],"nextCursor":"$repeat(100000,c)$n"}}',
        "drips": "chunk 1",
        "holds-everything": "take 200\non eof: hang",
    }
    shell = {
        "children": f"i=0; while [ $i -lt {CHILDREN} ]; do sleep 600 & i=$((i+1)); done >/dev/null 2>&1 </dev/null; exec \"$LIAR\" 'offer tools'",
        "children-escape": "for i in 1 2 3 4 5 6 7 8 9 10; do setsid sh -c 'sleep 600 & sleep 600' & done; exec \"$LIAR\" 'offer tools'",
        "stderr-flood": "(while :; do printf '%065536d' 0; done >&2) & exec \"$LIAR\" 'offer tools'",
        "stopped": "kill -STOP $$",
    }
    return servers, shell


def quoted(text):
    """A text of YAML; its dollars are no variables."""
    return json.dumps(text).replace("$", "$$")


def configuration(binary, liar):
    lines = ["defaults:", f"  env: {{LIAR: '{liar}'}}", "  timeouts: {startup: 20s, request: 20s, total: 60s}", "  shutdown: {eof: 1s, term: 1s}", "servers:"]
    for n in range(SOUND):
        lines.append(f"  sound-{n}: {{command: '{binary}', args: [sample-server, sound], interval: 10s, shutdown: {{eof: 30s, term: 5s}}}}")
    scripts, shell = hostile()
    for name, script in scripts.items():
        lines.append(f"  bad-{name}: {{command: '{liar}', args: [{quoted(script)}], interval: 5s}}")
    for name, script in shell.items():
        lines.append(f"  bad-{name}: {{command: /bin/sh, args: [-c, {quoted(script)}], interval: 5s}}")
    return "\n".join(lines) + "\n", len(scripts) + len(shell)


# --- what is shown ----------------------------------------------------------------------------------------------------


def unclean(text, newline="\n"):
    """The first character that would do something to a terminal, or to who reads; none if there is none."""
    for at, c in enumerate(text):
        o = ord(c)
        if c != newline and (o < 32 or 127 <= o < 160 or c in "\u200b\u200d\u2028\u2029\u202e\u2066\ufeff" or 0xD800 <= o <= 0xDFFF or 0xE0000 <= o < 0xE0080):
            return f"{c!r} in {text[max(0, at - 60) : at + 20]!r}"
    return ""


class Page(html.parser.HTMLParser):
    """Finds what a page must not have: elements and attributes that a server brought along."""

    def __init__(self):
        super().__init__()
        self.wrong = []

    def handle_starttag(self, tag, attributes):
        names = {name for name, _ in attributes}
        if tag == "img" or any(name.startswith("on") for name in names) or (tag == "script" and "src" not in names):
            self.wrong.append(f"<{tag} {attributes}>")


def fetched(port, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
            return answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.read().decode()


def samples(text):
    """The series of an exposition that parses; every line has to."""
    found = {}
    for line in text.splitlines():
        if line.startswith("#") or not line:
            continue
        parsed = re.fullmatch(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*",?)*\})? (\S+)', line)
        if not parsed:
            raise ValueError(f"no sample: {line[:200]!r}")
        found[parsed[1] + (parsed[2] or "")] = float(parsed[3])
    return found


def strict(check, port):
    """/metrics by those who really read it, where they are there."""
    text = fetched(port, "/metrics")
    check("/metrics is clean", unclean(text))
    with contextlib.suppress(ImportError):
        from prometheus_client.parser import text_string_to_metric_families

        families = list(text_string_to_metric_families(text))
        check("a strict parser reads /metrics", "" if families else "nothing")
    if shutil.which("promtool"):
        done = subprocess.run(["promtool", "check", "metrics"], input=text.encode(), capture_output=True)
        check("promtool reads /metrics", "" if done.returncode in (0, 3) else done.stderr.decode()[-500:])


def pages(check, port, names):
    wrong = []
    for path in ["/"] + [f"/servers/{name}" for name in names]:
        text, page = fetched(port, path), Page()
        page.feed(text)
        wrong += [f"{path}: {what}" for what in page.wrong + [unclean(text)] if what]
    check("the pages are clean", "\n".join(wrong[:10]))
    wrong = []
    for path in ["/api/v1/servers", "/health?verbose", "/health?format=text"] + [f"/api/v1/servers/{name}" for name in names]:
        text = fetched(port, path)
        wrong += [f"{path}: {what}" for what in [unclean(text)] if what]
        if "format=text" not in path:
            json.loads(text)
    check("the API and /health are clean", "\n".join(wrong[:10]))


def terminal(check, binary, config, names):
    """What `check` shows on a terminal of the servers that are after it: colours and progress of its own, and nothing else."""
    pid, fd = pty.fork()
    if not pid:
        os.environ["TERM"] = "xterm-256color"
        os.execv(binary, [str(binary), "check", "-v", "--config", str(config), *names])
    shown = b""
    with contextlib.suppress(OSError):
        while got := os.read(fd, 65536):
            shown += got
    os.waitpid(pid, 0)
    text = shown.decode(errors="backslashreplace")
    # Ours: colours, and the moves of the progress that is drawn anew.
    own = re.sub(r"\x1b\[[0-9;]*[mKAGHhlJ]|\x1b\[\?25[hl]|\x1b\[\?2026[hl]|\r", "", text)
    check("a terminal sees colours and progress of ours alone", unclean(own) or ("" if "\x1b[2J" not in text and "FAIL" in text else text[-2000:]))


# --- what it costs ----------------------------------------------------------------------------------------------------


class Watch(threading.Thread):
    """Looks at the memory and at how long answers take."""

    def __init__(self, port, pid):
        super().__init__(daemon=True)
        self.port, self.pid, self.going = port, pid, True
        self.memory, self.answers = 0, []

    def run(self):
        while self.going:
            status = pathlib.Path(f"/proc/{self.pid}/status").read_text()
            self.memory = max(self.memory, int(re.search(r"^VmRSS:\s+(\d+)", status, re.M)[1]))
            began = time.monotonic()
            fetched(self.port, "/livez")
            self.answers.append(time.monotonic() - began)
            time.sleep(0.02)


def values(series, metric):
    found = {}
    for name, value in series.items():
        match = re.fullmatch(rf'stdiowatch_{metric}\{{server="([^"]*)"(?:,[^}}]*)?\}}', name)
        if match:
            found[match[1]] = found.get(match[1], 0) + value
    return found


def main():
    binary, liar = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 30
    check = Checks()
    with tempfile.TemporaryDirectory(prefix="stdiowatch-") as folder, contextlib.ExitStack() as ends:
        folder = pathlib.Path(folder)
        text, bad = configuration(binary, liar)
        config, log, port = folder / "servers.yaml", folder / "log", free_port()
        config.write_text(text)
        program = start(ends, log, [binary, "serve", "--config", config, "--listen", f"127.0.0.1:{port}", "--state-dir", folder / "state"])
        listening = until(60, lambda: "" if reachable(port) else log.read_text()[-2000:] or "no answer")
        if not check(f"it watches {SOUND} sound and {bad} hostile servers", listening):
            return check.end()
        watch = Watch(port, program.pid)
        watch.start()
        ready = until(READY, lambda: (lambda said: "" if said == "ok\n" or program.poll() is not None else said)(fetched(port, "/readyz")))
        check("every server was probed", ready)
        until_then = time.monotonic() + seconds
        while time.monotonic() < until_then and program.poll() is None:
            time.sleep(0.2)
        check.equal("it lives", program.poll(), None)
        hold(check, port, watch)
        names = [line.split(":")[0].strip() for line in text.splitlines() if line.startswith("  bad-")]
        strict(check, port)
        pages(check, port, names)
        check("its log is clean", unclean(re.sub(r"\x1b\[[0-9;]*m", "", log.read_text(errors="backslashreplace"))))
        watch.going = False
        program.send_signal(signal.SIGTERM)
        check.equal("it ends", program.wait(60), 0)
        check("nothing is left of the servers", until(LEAVING, lambda: "\n".join(survivors(liar))))
        terminal(check, binary, config, [name for name in names if re.search("name-|method-|error-|noise-|version-", name)])
    return check.end()


def hold(check, port, watch):
    series = samples(fetched(port, "/metrics"))
    sound = lambda metric: {name: value for name, value in values(series, metric).items() if name.startswith("sound-")}
    probes, failures, unknown, up = sound("probes_total"), sound("probe_failures_total"), sound("probe_unknown_total"), sound("up")
    check.equal("the sound ones are up", sorted(name for name, value in up.items() if value != 1), [])
    check.equal("none of their probes has failed or said nothing", (sum(failures.values()), sum(unknown.values())), (0, 0))
    starts = [sum(series[f'stdiowatch_startup_duration_seconds_{part}{{server="{name}"}}'] for name in up) for part in ("sum", "count")]
    lag = series["stdiowatch_scheduler_lag_seconds"]
    answers = sorted(watch.answers)
    print(
        f"      {sum(probes.values()):.0f} probes of the sound ones, a reply after {starts[0] / max(starts[1], 1) * 1e3:.0f} ms on average; {sum(values(series, 'probes_total').values()):.0f} in all; "
        f"{watch.memory / 1024:.1f} MiB at the most; launches {lag:.2f} s late at the most; /livez {answers[len(answers) // 2] * 1e3:.1f} ms, {answers[-1] * 1e3:.0f} ms at the most",
        flush=True,
    )
    check("their start-up time stays what it is", "" if starts[0] / max(starts[1], 1) < 1 else f"{starts[0] / starts[1]:.2f} s")
    check("stdiowatch stays under 64 MiB", "" if watch.memory < MOST_MEMORY else f"{watch.memory / 1024:.1f} MiB")


def survivors(liar):
    """The processes that one of its servers has started and that live."""
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"LIAR={liar}".encode() in (path / "environ").read_bytes():
                yield f"{path.name} {(path / 'cmdline').read_bytes()[:200]!r}"


def reachable(port):
    with contextlib.suppress(OSError):
        return bool(fetched(port, "/livez"))
    return False


if __name__ == "__main__":
    sys.exit(main())
