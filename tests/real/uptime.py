#!/usr/bin/env python3
"""Holds a stdiowatch binary against uptime monitors: uptime.py BINARY.

One server, which is sound, fails, hangs, and is mended; then stdiowatch itself is stopped (SIGSTOP) and goes on. Each monitor
of uptime_clients.py, with what docs/uptime.md says, has to see each of that as it is. Needs install.sh.
"""

import concurrent.futures
import contextlib
import pathlib
import shutil
import signal
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import uptime_clients
from checks import Checks, free_port, start, until
from uptime_clients import HEALTH, REQUESTS, raw

TOOLS = ("prometheus-blackbox-exporter", "haproxy", "monit", "zabbix_agent2", "/usr/lib/nagios/plugins/check_http")
SEEN = 40  # seconds until a monitor sees what is: the back-off of a failing server included
STAYS = 2  # seconds for which it has to stay so: what was true before, or is not known yet, would not
LIVES = {"kubelet, /livez", "HAProxy, options"}  # these ask for stdiowatch only
OVERDUE = 12  # seconds: an interval and a half, what a probe may take, and 5
SERVER = 'case $(cat "$MODE") in sound) exec "$STDIOWATCH" sample-server sound;; fails) exit 3;; *) exec "$STDIOWATCH" sample-server mute;; esac'
CONFIG = """
listen: 127.0.0.1:{port}
defaults: {{interval: 1s, timeouts: {{startup: 1s, cold_start: 1s, request: 1s, total: 3s}}, shutdown: {{eof: 500ms, term: 500ms}}}}
servers: {{files: {{command: sh, args: [-c, {server!r}], env: {{MODE: "{mode}", STDIOWATCH: "{binary}"}}}}}}
"""


def main():
    binary = pathlib.Path(sys.argv[1]).resolve()
    check = Checks()
    if missing := [tool for tool in TOOLS if not shutil.which(tool)]:
        sys.exit(f"not installed: {' '.join(missing)} (tests/real/install.sh does it)")
    with tempfile.TemporaryDirectory(prefix="stdiowatch-uptime-") as folder, contextlib.ExitStack() as ends:
        folder, port = pathlib.Path(folder), free_port()
        mode, config = folder / "mode", folder / "stdiowatch.yaml"
        mode.write_text("sound")
        config.write_text(CONFIG.format(port=port, server=SERVER, mode=mode, binary=binary))
        serve = start(ends, folder / "serve.log", [binary, "serve", "--config", config, "--state-dir", folder / "kept"])
        # A stopped process is killed all the same, but its servers' guard should not have to.
        ends.callback(lambda: serve.send_signal(signal.SIGCONT))
        clients = uptime_clients.all_clients(ends, folder, port)

        matrix(check, "healthy", clients, "up", "up")
        answers(check, port, 200, '"status":"pass"')
        mode.write_text("fails")
        matrix(check, "the server fails", clients, "down", "up")
        answers(check, port, 503, '"status":"fail"')
        others(check, port)
        mode.write_text("sound")
        matrix(check, "mended", clients, "up", "up")
        mode.write_text("hangs")
        matrix(check, "the server hangs", clients, "down", "up")
        mode.write_text("sound")
        matrix(check, "mended again", clients, "up", "up")
        serve.send_signal(signal.SIGSTOP)
        matrix(check, "stdiowatch is stalled", clients, "down", "down")
        mode.write_text("hangs")
        overdue(check, serve, port)
        mode.write_text("sound")
        matrix(check, "and goes on", clients, "up", "up")

        serve.send_signal(signal.SIGTERM)
        check.equal("SIGTERM ends it with status 0", serve.wait(10), 0)
        if check.failed:
            print((folder / "serve.log").read_text()[-2000:])
    return check.end()


def matrix(check, state, clients, wanted, alive):
    """Every monitor sees it, within its time: `wanted` of the server, `alive` of stdiowatch."""

    def wrong(name, stays=STAYS):
        right, since = alive if name in LIVES else wanted, None

        def unsettled():
            nonlocal since
            if (seen := clients[name]()) != right:
                since = None
                return f"it says {seen}, wanted {right}"
            since = since or time.monotonic()
            return "" if time.monotonic() >= since + stays else "it does not stay so"

        return until(SEEN, unsettled)

    with concurrent.futures.ThreadPoolExecutor(len(clients)) as pool:
        about_servers = {name: pool.submit(wrong, name) for name in clients if name not in LIVES}
        for name, answer in about_servers.items():
            check(f"{state}: {name} sees it", answer.result())
        # These have not changed their minds once all others have.
        for name in sorted(LIVES):
            check(f"{state}: {name} sees stdiowatch {alive}", wrong(name, 0))


def answers(check, port, status, word):
    """What each is answered, but for the date, is complete: a type, a length, the word once, and when to ask again."""
    for name, (method, _, _) in REQUESTS.items():
        if "livez" in name:
            continue
        got, head, body = raw(port, name, HEALTH)
        wrong = [] if (got, head.get("content-type")) == (status, "application/health+json") else [f"{got} {head.get('content-type')}"]
        if (body != "") if method == "HEAD" else (body.count('"status"') != 1 or word not in body):
            wrong.append(f"the body is {body!r}")
        if int(head["content-length"]) == 0 or ("retry-after" in head) != (status == 503):
            wrong.append(str(head))
        check(f"{name}: the answer with {status} is complete", "\n".join(wrong))


def others(check, port):
    """What checks with OPTIONS gets an answer; what would change something gets none."""
    for name, request, wanted in [
        ("OPTIONS / without any header field", "OPTIONS / HTTP/1.0", (204, True)),
        ("OPTIONS *", "OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close", (204, True)),
        ("POST /health", "POST /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close", (405, True)),
    ]:
        status, head = uptime_clients.answered(port, request)[:2]
        check.equal(f"{name} is answered with {wanted[0]} and Allow", (status, "allow" in head), wanted)


def overdue(check, serve, port):
    """A verdict that got too old while stdiowatch was stopped counts no more when it goes on, before any probe has ended."""
    time.sleep(OVERDUE)  # no state to ask for: it is stopped
    for name in ("Uptime Kuma", "UptimeRobot"):
        try:
            status, _, body = raw(port, name, HEALTH, sent=lambda: serve.send_signal(signal.SIGCONT))
        except OSError as error:
            status, body = 0, str(error)
        check(f"an overdue verdict: {name} is answered with 503", "" if status == 503 else f"{status} {body}")
        if name == "Uptime Kuma":
            check("and is told that it is overdue", "" if '"stale"' in body else body)


if __name__ == "__main__":
    sys.exit(main())
