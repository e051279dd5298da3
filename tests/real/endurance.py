#!/usr/bin/env python3
"""Holds a stdiowatch binary against time: endurance.py BINARY LIAR [PROBES [SECONDS]].

One `serve` watches sound and broken servers of more than twenty kinds, the built-in ones and those of tests/servers, until it has
made so many probes (3,000 unless told otherwise), within so many seconds (900). Every verdict has to be what the head of the
server's file says; its descriptors, threads, memory and state directory have to be at the end what they were when it had warmed up;
and no process may be left, dead or alive. LIAR is the cargo example of that name.
"""

import contextlib
import os
import pathlib
import re
import signal
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from checks import TOP, Checks, free_port, start, until

# The built-in kinds, and what is right of them: the verdict, and what must be found each time.
SAMPLES = {
    "sound": "verdict=pass",
    "sound-modern": "verdict=pass",
    "sound-dual": "verdict=pass",
    "paged": "verdict=pass",
    "die-on-discover": "verdict=pass",
    "drift": "verdict=warn may=drift.changed",
    "helper": "verdict=warn codes=shutdown.left_escaped",
    "ignore-eof": "verdict=warn codes=shutdown.needed_term",
    "ignore-sigterm": "verdict=warn codes=shutdown.needed_kill",
    "banner": "verdict=fail reason=stdout_violation codes=stdout.noise",
    "glued": "verdict=fail reason=stdout_violation codes=stdout.glued",
    "exit": "verdict=fail reason=exited codes=exit.before_reply",
    "hang": "verdict=fail reason=timeout codes=timeout.silent",
    "mute": "verdict=fail reason=timeout codes=timeout.silent",
}
FILES = """helper_in_group.sh helper_holds_stdout.sh helper_double_fork.sh helpers_thirty.sh term_ignored.sh exit_70_at_eof.sh segfault_at_eof.sh
 stderr_control_codes.mcp stderr_flood.mcp line_of_2_mb.mcp nested_10000.mcp cursor_loop_of_3.mcp name_hostile_twice.mcp surrogate_in_name.mcp
 schema_many_flaws.mcp modern_sound.mcp modern_without_ttl.mcp reply_twice.mcp eof_abort.mcp lists_prompts_only.mcp batch_2025_03_26.mcp
 noise_first.mcp glued_after.mcp exit_at_once.mcp exit_on_list.mcp exit_on_page_2.mcp id_as_text.mcp initialize_error.mcp half_line_then_exit.mcp
 silent_list.mcp segfault_at_start.sh json_scalar.mcp noise_echo.mcp bom_on_second_reply.mcp encoding_latin1.mcp stdout_closed.sh noise_after_eof.mcp""".split()

# These are only told by a time that passes, so the time has to be short. Nobody else's end may be called slow.
SLOW_END = ("needed_term", "needed_kill", "silent", "stdout_closed")
# Findings of our own: the host was busy. They are counted, and no mistake.
OURS = ("probe.host_busy", "probe.resources")
MILESTONES = (1_000, 10_000, 100_000, 1_000_000)
KIB = 1024
STRANGERS = 40
QUIET = 120  # seconds until nothing is probed any more


class Kind:
    """One kind of server and what is right of it."""

    def __init__(self, name, command, head):
        self.name, self.command = name, command
        words = dict(word.split("=", 1) for word in head.split())
        self.verdict = words["verdict"]
        self.reasons = set(words.get("reason", "").split("|"))
        self.codes = [set(group.split("|")) for group in words.get("codes", "").split(",") if group]
        self.allowed = {code for group in self.codes for code in group} | {c for g in words.get("may", "").split(",") for c in g.split("|")}
        if any(code.startswith("shutdown.left_") for code in self.allowed):
            # On a busy host the server may be gone before its helper has let go of its stdout.
            self.allowed.add("shutdown.pipe_held")
        self.is_slow = any(word in code or word in name for code in self.allowed for word in SLOW_END)


def kinds(binary, liar):
    for name, head in SAMPLES.items():
        yield Kind(name, [binary, "sample-server", name], head)
    for file in FILES:
        path = TOP / "tests/servers" / file
        head = " ".join(line.removeprefix("# expect:") for line in path.read_text().splitlines() if line.startswith("# expect:"))
        yield Kind(path.stem, ["/bin/sh", path] if path.suffix == ".sh" else [liar, path], head)


def configuration(all_kinds, liar, interval, copies, rest=False):
    lines = ["defaults:", f"  env: {{LIAR: '{liar}'}}", "servers:"]
    for kind in all_kinds:
        # A server that fails is soon left alone for eight intervals.
        every = "1h" if rest else "1s" if kind.verdict == "fail" else f"{interval}ms"
        wait = "{startup: 2s, request: 2s, total: 30s}" if kind.is_slow else "{startup: 60s, request: 60s, total: 120s}"
        # Who takes a signal to end is asked soon, and has all the time to obey; whom it takes a second one has not.
        end = "{eof: 300ms, term: 300ms}" if kind.is_slow and "shutdown.needed_term" not in kind.allowed else f"{{eof: {'300ms' if kind.is_slow else '30s'}, term: 30s}}"
        words = ", ".join(f"'{word}'" for word in kind.command[1:])
        for n in range(copies):
            lines.append(f"  {kind.name}.{n}: {{command: '{kind.command[0]}', args: [{words}], interval: {every}, timeouts: {wait}, shutdown: {end}}}")
    return "\n".join(lines) + "\n"


class Sidecar:
    """A `serve` that is looked at from outside."""

    def __init__(self, port, pid, state, configure):
        self.port, self.pid, self.state, self.configure = port, pid, state, configure

    def metrics(self):
        """Each series of stdiowatch by its name and labels."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=30) as answer:
            text = answer.read().decode()
        series = {}
        for line in text.splitlines():
            if line.startswith("stdiowatch_"):
                name, _, value = line.rpartition(" ")
                series[name] = float(value)
        return series

    def rests(self):
        """Has it probe nothing for an hour; whether it came to rest. All servers are probed once more before that."""
        self.configure(rest=True)
        os.kill(self.pid, signal.SIGHUP)
        quiet, before, deadline = 0, -1, time.monotonic() + QUIET
        while quiet < 5 and time.monotonic() < deadline:
            series = self.metrics()
            made = sum(value for name, value in series.items() if name.startswith("stdiowatch_probes_total"))
            quiet = quiet + 1 if made == before and not series["stdiowatch_probes_in_flight"] else 0
            before = made
            time.sleep(1)
        return quiet >= 5

    def goes_on(self):
        self.configure(rest=False)
        os.kill(self.pid, signal.SIGHUP)

    def probes(self):
        return sum(value for name, value in self.metrics().items() if name.startswith("stdiowatch_probes_total"))

    def used(self):
        """What it has now: KiB resident, descriptors, those of them that are for processes, threads."""
        status = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        number = lambda key: int(re.search(rf"^{key}:\s+(\d+)", status, re.M)[1])
        held = []
        for entry in os.listdir(f"/proc/{self.pid}/fd"):
            with contextlib.suppress(OSError):
                held.append(os.readlink(f"/proc/{self.pid}/fd/{entry}"))
        pidfds = sum("[pidfd]" in name for name in held)
        return number("VmRSS"), len(held) - pidfds, pidfds, number("Threads")

    def family(self):
        """Its descendants: pid → state."""
        processes = {}
        for entry in os.listdir("/proc"):
            with contextlib.suppress(OSError, ValueError):
                fields = pathlib.Path(f"/proc/{int(entry)}/stat").read_text().rpartition(")")[2].split()
                processes[int(entry)] = int(fields[1]), fields[0]
        family, found = {}, {self.pid}
        while found:
            found = {pid for pid, (parent, _) in processes.items() if parent in found and pid not in family}
            family.update({pid: processes[pid][1] for pid in found})
        return family

    def kept(self):
        """Bytes and files in its state directory."""
        sizes = [path.stat().st_size for path in self.state.rglob("*") if path.is_file()]
        return sum(sizes), len(sizes)


class Figures:
    """What is used while nothing is probed."""

    def __init__(self, sidecar, guard):
        self.memory, self.descriptors, self.pidfds, self.threads = sidecar.used()
        family = {pid: state for pid, state in sidecar.family().items() if pid != guard}
        self.zombies = sum(state == "Z" for state in family.values())
        self.survivors = len(family) - self.zombies
        self.kept = sidecar.kept()

    def __str__(self):
        size, files = self.kept
        return (
            f"{self.memory / 1024:.2f} MiB resident, {self.descriptors} descriptors and {self.pidfds} for processes, {self.threads} threads, {self.zombies} zombies, "
            f"{self.survivors} survivors, {size / 1024:.0f} KiB kept in {files} files"
        )


def wrong_of(kind, series, informative):
    """What is wrong with what one server of this kind has been counted as; and how many of its probes said nothing."""
    name = kind.name
    mine = {key: value for key, value in series.items() if f'server="{name}"' in key and value}
    count = lambda metric: mine.get(f'stdiowatch_{metric}{{server="{name}"}}', 0)
    by = lambda metric, label: {m[1]: v for key, v in mine.items() if (m := re.match(rf'stdiowatch_{metric}\{{.*{label}="([^"]*)"', key))}
    probes, unknown = count("probes_total"), count("probe_unknown_total")
    failures, findings = by("probe_failures_total", "reason"), by("findings_total", "code")
    ours = sum(findings.get(code, 0) for code in OURS)
    wrong = []
    if not probes:
        wrong.append("it was never probed")
    if unknown > ours:
        wrong.append(f"{unknown:.0f} of {probes:.0f} probes said nothing, without a reason")
    failed = sum(failures.values())
    if failed != (probes - unknown if kind.verdict == "fail" else 0):
        wrong.append(f"{failed:.0f} of {probes:.0f} probes failed")
    if set(failures) - kind.reasons:
        wrong.append(f"they failed for {failures}")
    for group in kind.codes:
        found = sum(findings.get(code, 0) for code in group)
        if found < probes - unknown:
            wrong.append(f"{'|'.join(sorted(group))} was found {found:.0f} times in {probes:.0f} probes")
    strange = {code: n for code, n in findings.items() if code not in kind.allowed | informative and code not in OURS}
    if strange:
        wrong.append(f"found without a reason: {strange}")
    return wrong, unknown


def verdicts(check, sidecar, all_kinds, copies, informative):
    series, silent, wrongs = sidecar.metrics(), 0, []
    for kind in all_kinds:
        for n in range(copies):
            kind_n = f"{kind.name}.{n}"
            named = Kind.__new__(Kind)
            named.__dict__.update(kind.__dict__, name=kind_n)
            wrong, unknown = wrong_of(named, series, informative)
            silent += unknown
            wrongs += [f"{kind_n}: {text}" for text in wrong]
    check(f"every verdict of {len(all_kinds)} kinds is as expected ({silent:.0f} probes said that the host was busy)", "\n".join(wrongs))


def hold(check, sidecar, warm, now, name):
    check(f"{name}: nothing has survived, and everything dead was reaped", "" if not (now.survivors or now.zombies) else str(now))
    check.equal(f"{name}: as many descriptors and threads", (now.descriptors, now.threads), (warm.descriptors, warm.threads))
    # Some watch what else runs here and looks like a live copy of a server: that comes and goes.
    check(f"{name}: about as many for processes", "" if now.pidfds <= warm.pidfds + STRANGERS else f"{warm.pidfds}, then {now.pidfds}")
    check(f"{name}: memory is within 1 MiB", "" if now.memory <= warm.memory + KIB else f"{warm.memory} KiB, then {now.memory} KiB")
    check(f"{name}: the state directory is level", "" if now.kept[0] <= warm.kept[0] * 1.25 + 4096 and now.kept[1] == warm.kept[1] else f"{warm.kept}, then {now.kept}")


def informative_codes(binary):
    """Those that make no verdict worse."""
    told = os.popen(f"'{binary}' explain").read()
    return {line.split()[0] for line in told.splitlines() if line.split()[1:2] == ["info"]}


def main():
    binary, liar = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    wanted = int(sys.argv[3]) if len(sys.argv) > 3 else 3_000
    limit = float(sys.argv[4]) if len(sys.argv) > 4 else 900
    interval, copies = int(os.environ.get("ENDURANCE_INTERVAL_MS", "1000")), int(os.environ.get("ENDURANCE_COPIES", "1"))
    check = Checks()
    all_kinds = list(kinds(binary, liar))
    informative = informative_codes(binary)
    with tempfile.TemporaryDirectory(prefix="stdiowatch-") as folder, contextlib.ExitStack() as ends:
        folder = pathlib.Path(folder)
        configure = lambda rest: (folder / "servers.yaml").write_text(configuration(all_kinds, liar, interval, copies, rest))
        configure(rest=False)
        port = free_port()
        argv = [binary, "serve", "--config", folder / "servers.yaml", "--listen", f"127.0.0.1:{port}", "--state-dir", folder / "state"]
        program = start(ends, folder / "log", argv)
        sidecar = Sidecar(port, program.pid, folder / "state", configure)
        ready = until(60, lambda: "" if os.path.exists(f"/proc/{program.pid}/fd") and answers(sidecar) else (folder / "log").read_text()[-2000:] or "no answer")
        if not check("it watches", ready):
            return check.end()
        guard = min(sidecar.family(), default=0)
        watch(check, sidecar, guard, wanted, limit, folder)
        verdicts(check, sidecar, all_kinds, copies, informative)
        program.send_signal(signal.SIGTERM)
        family = sidecar.family()
        check.equal("it ends", program.wait(60), 0)
        left = [pid for pid in family if pathlib.Path(f"/proc/{pid}").exists() and "Z" not in pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2][:3]]
        check("and leaves nothing", "" if not left else str(left))
    return check.end()


def answers(sidecar):
    with contextlib.suppress(OSError):
        return bool(sidecar.metrics())
    return False


def watch(check, sidecar, guard, wanted, limit, folder):
    """Waits for so many probes, and looks at what is used on the way."""
    began, warm, marks = time.monotonic(), None, [n for n in MILESTONES if n < wanted] + [wanted]
    for mark in marks:
        while sidecar.probes() < mark:
            if time.monotonic() - began > limit:
                check(f"{mark} probes", f"only {sidecar.probes():.0f} in {limit:.0f} s; {(folder / 'log').read_text()[-1000:]}")
                return
            time.sleep(1)
        check(f"{mark} probes: it comes to rest", "" if sidecar.rests() else "something is still probed")
        now, probes = Figures(sidecar, guard), sidecar.probes()
        sidecar.goes_on()
        print(f"      {probes:.0f} probes in {time.monotonic() - began:.0f} s: {now}", flush=True)
        # A history grows until it is as long as it gets, which is sixty probes: until then it is not warm.
        if warm is not None and not mark <= 10_000 < wanted:
            hold(check, sidecar, warm, now, f"{mark} probes")
        if warm is None or mark <= 10_000 < wanted:
            warm = now


if __name__ == "__main__":
    sys.exit(main())
