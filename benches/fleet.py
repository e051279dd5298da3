#!/usr/bin/env python3
"""What watching many servers costs: fleet.py BINARY [SERVERS [MINUTES [RELOADS]]].

One `serve` probes so many sample servers (1,000) every 15 seconds for so many minutes (10), and is scraped meanwhile; then its
configuration is read again once a second, so many times (300), each time with ten servers taken out, the ten of before back in, and
five changed. Prints a line of figures a minute, and at the end what grew, what was lost and what fell that must not.
"""

import contextlib
import os
import pathlib
import re
import signal
import statistics
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
from checks import Checks, free_port, start, until

INTERVAL = 15
TICK = 1 / os.sysconf("SC_CLK_TCK")
COUNTED = re.compile(r'stdiowatch_(probes_total|probe_failures_total|probe_unknown_total|probe_skipped_total|up)\{server="([^"]*)"[^}]*\} (\S+)')


class Sidecar:
    """A `serve`, looked at from outside."""

    def __init__(self, port, pid):
        self.port, self.pid = port, pid

    def get(self, path):
        began = time.perf_counter()
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=30) as answer:
            body = answer.read()
        return body.decode(), time.perf_counter() - began

    def reachable(self):
        with contextlib.suppress(OSError):
            return bool(self.get("/livez"))
        return False

    def used(self):
        """MiB resident, now and at the most; descriptors; seconds of CPU of its own."""
        status = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        number = lambda key: int(re.search(rf"^{key}:\s+(\d+)", status, re.M)[1]) / 1024
        fields = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return number("VmRSS"), number("VmHWM"), len(os.listdir(f"/proc/{self.pid}/fd")), (int(fields[11]) + int(fields[12])) * TICK


class Look:
    """All figures at one time."""

    def __init__(self, sidecar):
        self.at = time.monotonic()
        self.memory, self.peak, self.descriptors, self.cpu = sidecar.used()
        text, self.scrape = sidecar.get("/metrics")
        self.size = len(text)
        self.health = statistics.median(sidecar.get("/livez")[1] for _ in range(5))
        self.lag = float(re.search(r"^stdiowatch_scheduler_lag_seconds (\S+)", text, re.M)[1])
        self.by_server = {}
        for metric, server, value in COUNTED.findall(text):
            key = metric, server
            self.by_server[key] = self.by_server.get(key, 0) + float(value)

    def sum(self, metric):
        return sum(value for (name, _), value in self.by_server.items() if name == metric)

    def line(self, before, began):
        core = (self.cpu - before.cpu) / (self.at - before.at)
        return (
            f"{self.at - began:5.0f} s: {self.sum('probes_total'):.0f} probes, {self.sum('probe_failures_total'):.0f} failed, {self.sum('probe_unknown_total'):.0f} unknown, "
            f"{self.sum('probe_skipped_total'):.0f} skipped; lag {self.lag * 1e3:.0f} ms; {self.memory:.1f} MiB (peak {self.peak:.1f}), {self.descriptors} descriptors; "
            f"own CPU {core * 100:.1f} % of a core; scrape of {self.size / 1e6:.1f} MB {self.scrape * 1e3:.0f} ms, /livez {self.health * 1e3:.1f} ms"
        )


def configuration(binary, servers, turn=None):
    """Every server; in the turn `turn` of the reloads without ten of them, and with five that are changed."""
    lines = [f"defaults: {{interval: {INTERVAL}s}}", "servers:"]
    for n in range(servers):
        if turn is not None and n // 10 == turn % (servers // 10):
            continue
        # The five that come after it, for one turn.
        changed = turn is not None and (n - 10 * (turn + 1)) % servers < 5
        changed = f", env: {{TURN: '{turn}'}}" if changed else ""
        lines.append(f"  s{n}: {{command: '{binary}', args: [sample-server, sound]{changed}}}")
    return "\n".join(lines) + "\n"


def watched(check, sidecar, minutes):
    """Some minutes of nothing but probes."""
    began, looks = time.monotonic(), [Look(sidecar)]
    for minute in range(1, minutes + 1):
        time.sleep(max(0, began + 60 * minute - time.monotonic()))
        looks.append(Look(sidecar))
        print("     ", looks[-1].line(looks[-2], began), flush=True)
    last, settled = looks[-1], looks[min(2, len(looks) - 1)]
    check.equal("every probe passed", (last.sum("probe_failures_total"), last.sum("probe_unknown_total")), (0, 0))
    minutes and check.equal("every server is up", sum(1 for (metric, _), value in last.by_server.items() if metric == "up" and value != 1), 0)
    check("no tick was skipped", "" if not last.sum("probe_skipped_total") else f"{last.sum('probe_skipped_total'):.0f}")
    print(f"      from the second minute to the last: {settled.memory:.1f} → {last.memory:.1f} MiB, {settled.descriptors} → {last.descriptors} descriptors", flush=True)
    check("memory is level after two minutes, within 1 MiB", "" if last.memory <= settled.memory + 1 else f"{settled.memory:.1f} → {last.memory:.1f} MiB")
    return last


def reloaded(check, sidecar, binary, config, servers, reloads):
    """A reload a second under that load."""
    before, began, fallen = Look(sidecar), time.monotonic(), []
    last, done = before, 0
    for turn in range(reloads):
        config.write_text(configuration(binary, servers, turn))
        os.kill(sidecar.pid, signal.SIGHUP)
        time.sleep(max(0, began + turn + 1 - time.monotonic()))
        now = Look(sidecar)
        out = {f"s{10 * (t % (servers // 10)) + n}" for t in (turn, turn - 1) for n in range(10)}
        if f's{10 * (turn % (servers // 10))}' not in {server for _, server in now.by_server}:
            done += 1
        fallen += [f"{key}: {value} → {now.by_server.get(key)}" for key, value in last.by_server.items() if key[0] != "up" and key[1] not in out and now.by_server.get(key, -1) < value]
        last = now
        if turn % 60 == 59:
            print("     ", last.line(before, began), flush=True)
    check("no counter of a server that stayed has fallen or gone", "\n".join(fallen[:5]))
    check.equal("no probe has failed or said nothing", (last.sum("probe_failures_total"), last.sum("probe_unknown_total")), (0, 0))
    print(f"      {done} of {reloads} reloads had happened within the second", flush=True)
    config.write_text(configuration(binary, servers))
    os.kill(sidecar.pid, signal.SIGHUP)
    check("every server is up again", until(3 * INTERVAL, lambda: (lambda up: "" if up == servers else f"{up:.0f}")(Look(sidecar).sum("up"))))
    after = Look(sidecar)
    print(f"      before and after the reloads: {before.memory:.1f} → {after.memory:.1f} MiB, {before.descriptors} → {after.descriptors} descriptors", flush=True)


def main():
    binary = pathlib.Path(sys.argv[1]).resolve()
    servers, minutes, reloads = (int(word) for word in (sys.argv[2:] + ["1000", "10", "300"][len(sys.argv) - 2 :]))
    check = Checks()
    with tempfile.TemporaryDirectory(prefix="stdiowatch-bench-") as folder, contextlib.ExitStack() as ends:
        folder = pathlib.Path(folder)
        config, port = folder / "servers.yaml", free_port()
        config.write_text(configuration(binary, servers))
        program = start(ends, folder / "log", [binary, "serve", "--config", config, "--listen", f"127.0.0.1:{port}", "--state-dir", folder / "state"])
        sidecar = Sidecar(port, program.pid)
        if not check(f"it watches {servers} servers", until(30, lambda: "" if sidecar.reachable() else (folder / "log").read_text()[-2000:] or "no answer")):
            return check.end()
        watched(check, sidecar, minutes)
        if reloads:
            reloaded(check, sidecar, binary, config, servers, reloads)
        program.send_signal(signal.SIGTERM)
        check.equal("it ends", program.wait(60), 0)
        print("      " + "; ".join((folder / "log").read_text().splitlines()[-1:]), flush=True)
    return check.end()


if __name__ == "__main__":
    sys.exit(main())
