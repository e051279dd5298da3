#!/usr/bin/env python3
"""Holds a stdiowatch binary against real servers: run.py BINARY [NAME...].

The servers and what is expected of each are in servers.toml, install.sh installs them. Three rounds:
`check` of every server, then `serve` of every server, two at a time.
After each, nothing that it launched may be left.
"""

import argparse
import collections
import concurrent.futures
import ctypes
import datetime
import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import tomllib
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
DIR = pathlib.Path(os.environ.get("STDIOWATCH_REAL_DIR") or pathlib.Path.home() / ".cache/stdiowatch-real").resolve()

TOTAL = 120  # seconds: the probe's own budget, and with some more ours for one `check`
SERVED = 240  # seconds until every server of one `serve` was probed
LEFT = 3  # seconds for what a dead stdiowatch still has to end by itself

RANK = ["info", "warn", "unknown", "fail"]
VERDICT = {"info": "pass", "warn": "warn", "unknown": "unknown", "fail": "fail"}
REASONS = set(
    "spawn_failed exited timeout stdout_violation protocol_violation rpc_error version_mismatch schema_drift "
    "call_failed policy".split()
)
LISTS = ("tools", "prompts", "resources", "resource_templates")
TIMINGS = ("spawn_ms", "startup_ms", "list_ms", "shutdown_ms", "total_ms")
SHUTDOWN = ("ended_by", "exit_code", "signal", "leftover_group", "leftover_escaped", "pipe_held")
REPORT = (
    "server started_at verdict reason era protocol_version server_info capabilities spawns timings lists schema drift "
    "shutdown usage io stderr_tail findings"
).split()


# --- the table --------------------------------------------------------------------------------------------------------


def load(binary):
    """The table, with its places filled in."""
    target = binary.parent.parent
    examples = next(
        (d for d in (binary.parent, target / "debug", target / "release") if (d / "examples/rmcp_hello").exists()),
        binary.parent,
    )
    places = {
        "npm": DIR / "npm/node_modules",
        "venv": DIR / "venv",
        "dir": DIR,
        "hello": HERE / "hello",
        "pins": HERE / "python",
        "examples": examples / "examples",
    }

    def fill(text):
        return re.sub(r"\{(\w+)\}", lambda found: str(places[found[1]]), text)

    table = tomllib.loads((HERE / "servers.toml").read_text())
    known = set(
        "argv env ask startup_timeout eof_grace verdict reason era protocol_version server_info spawns ended_by "
        "exit_code codes may serve_verdict twice".split()
    ).union(LISTS)
    argvs = set()
    for name, server in table.items():
        if unknown := set(server) - known:
            sys.exit(f"servers.toml: {name}: unknown keys {sorted(unknown)}")
        server["name"] = name
        server["argv"] = [fill(argument) for argument in server["argv"]]
        server["env"] = {key: fill(value) for key, value in server.get("env", {}).items()}
        server.setdefault("verdict", "pass")
        server.setdefault("ended_by", "eof")
        server.setdefault("codes", [])
        server.setdefault("may", [])
        if "era" in server:
            server.setdefault("spawns", 1 if server["era"] == "modern" else 2)
        if (argv := tuple(server["argv"])) in argvs:
            sys.exit(f"servers.toml: {name}: another server has the same argv")
        argvs.add(argv)
    return table


def among(value):
    return value if isinstance(value, list) else [value]


# --- processes: what we launched, and what it left --------------------------------------------------------------------


class Processes:
    """Launches stdiowatch and finds what outlives it.

    Each launch has a HOME of its own, which stdiowatch hands on to its servers, so a process says in its environment
    where it came from. We are the subreaper: an orphan becomes our child, even one with an empty environment.
    """

    def __init__(self):
        if ctypes.CDLL(None, use_errno=True).prctl(36, 1, 0, 0, 0) != 0:  # PR_SET_CHILD_SUBREAPER
            sys.exit("run.py: cannot become the subreaper")
        self.lock = threading.Lock()
        self.ours = {}

    def launch(self, key, argv, log):
        """Starts argv with HOME and working directory named after key, and its output in files named after log."""
        home = DIR / "run" / key
        home.mkdir(parents=True, exist_ok=True)
        environment = {"LOGNAME": "nobody", "SHELL": "/bin/sh", "TERM": "dumb", "USER": "nobody"}
        environment.update({"HOME": str(home), "PATH": os.environ["PATH"], "NO_COLOR": "1"})
        with self.lock, open(f"{log}.out", "wb") as out, open(f"{log}.err", "wb") as err:
            process = subprocess.Popen(
                argv,
                cwd=home,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
            self.ours[process.pid] = process
        return process

    def found(self, key):
        """The living processes that the launch with this key left, as {pid: command line}."""
        mark = f"HOME={DIR / 'run' / key}".encode()
        left = {}
        with self.lock:
            for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
                if pid in self.ours or pid == os.getpid():
                    continue
                try:
                    stat = pathlib.Path(f"/proc/{pid}/stat").read_text(errors="replace")
                    state, parent = stat.rsplit(")", 1)[1].split()[:2]
                    if state in "ZX":  # dead, whatever kill(pid, 0) says
                        if int(parent) == os.getpid():
                            os.waitpid(pid, os.WNOHANG)
                        continue
                    environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                    command = (
                        pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    )
                except OSError:  # it has gone, or is none of ours to look into
                    continue
                strayed = int(parent) == os.getpid() and not any(
                    e.startswith(b"HOME=%b/" % bytes(DIR)) for e in environment
                )
                if mark in environment or strayed:
                    left[pid] = command.strip()
        return left

    def left(self, key):
        """Complaints about what is left a short while after the end; it is killed."""
        if wait_until(LEFT, lambda: not self.found(key)):
            return []
        left = self.found(key)
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        wait_until(LEFT, lambda: not self.found(key))  # reaps them
        return [f"left running: {pid} {command}" for pid, command in left.items()]

    def stop(self, number, _frame):
        """Our own end by a signal: every stdiowatch ends what it launched, and then we go."""
        for process in self.ours.values():
            process.terminate()
        raise SystemExit(128 + number)

    def end(self, process):
        """Ends a stdiowatch that is still there, which ends what it launched."""
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_until(seconds, condition, otherwise=None):
    """The first true value of condition(), or `otherwise` when the time is over."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            return otherwise
        time.sleep(0.05)
    return value


# --- reports ----------------------------------------------------------------------------------------------------------


def conforms(report):
    """What a report must be, whatever the server is."""
    wrong = [f"no `{key}` in the report" for key in REPORT if key not in report]
    if wrong:
        return wrong
    try:
        datetime.datetime.fromisoformat(report["started_at"])
    except ValueError:
        wrong.append(f"started_at {report['started_at']!r}")
    wrong += [f"no timings.{key}" for key in TIMINGS if key not in report["timings"]]
    wrong += [f"no lists.{key}" for key in LISTS if key not in report["lists"]]
    wrong += [f"no shutdown.{key}" for key in SHUTDOWN if key not in (report["shutdown"] or {})]
    wrong += [f"timing {key} is {value}" for key, value in report["timings"].items() if value is not None and value < 0]
    for finding in report["findings"]:
        wrong += [
            f"no `{key}` in a finding"
            for key in ("code", "severity", "phase", "message", "evidence")
            if key not in finding
        ]
        if finding.get("severity") not in RANK:
            wrong.append(f"severity {finding.get('severity')!r}")
    if wrong:
        return wrong
    worst = max((RANK.index(finding["severity"]) for finding in report["findings"]), default=0)
    if VERDICT[RANK[worst]] != report["verdict"]:
        wrong.append(f"verdict {report['verdict']}, but the worst finding is {RANK[worst]}")
    if (report["verdict"] == "fail") != (report["reason"] is not None):
        wrong.append(f"reason {report['reason']!r} for {report['verdict']}")
    if report["reason"] not in REASONS | {None}:
        wrong.append(f"reason {report['reason']!r} is none of the closed set")
    if report["lists"]["tools"]:
        schema = report["schema"] or {}
        if (
            not re.fullmatch("[0-9a-f]{64}", str(schema.get("sha256")))
            or not schema.get("bytes")
            or not schema.get("complete")
        ):
            wrong.append(f"schema {schema}")
        if report["timings"]["startup_ms"] is None:
            wrong.append("tools, but no startup_ms")
    return wrong


def compare(server, report, status):
    """How a report of `check` and its exit status differ from the table."""
    wrong = []

    def same(what, wanted, got):
        if got not in among(wanted):
            wrong.append(f"{what}: wanted {' or '.join(map(str, among(wanted)))}, got {got}")

    same("verdict", server["verdict"], report["verdict"])
    same("exit status", {"pass": 0, "warn": 0, "fail": 1, "unknown": 3}[report["verdict"]], status)
    if "reason" in server and report["verdict"] == "fail":
        same("reason", server["reason"], report["reason"])
    for key in ("era", "protocol_version", "spawns"):
        if key in server:
            same(key, server[key], report[key])
    for key in LISTS:
        if key in server:
            same(key, server[key], report["lists"][key])
    for key, value in server.get("server_info", {}).items():
        same(f"server_info.{key}", value, (report["server_info"] or {}).get(key))
    same("ended_by", server["ended_by"], report["shutdown"]["ended_by"])
    if "exit_code" in server:
        same("exit_code", server["exit_code"], report["shutdown"]["exit_code"])
    seen = {finding["code"] for finding in report["findings"]}
    wrong += [f"no finding {code}" for code in server["codes"] if code not in seen]
    if "*" not in server["may"]:
        for finding in report["findings"]:
            if finding["severity"] != "info" and finding["code"] not in server["codes"] + server["may"]:
                wrong.append(
                    f"unexpected {finding['code']} ({finding['severity']}): {finding['message']}: {finding['evidence']}"
                )
    return wrong


def facts(report):
    """The report in one line."""
    tools, startup = report["lists"]["tools"], report["timings"]["startup_ms"]
    return "  ".join(
        (
            f"{report['verdict']:7}",
            f"{report['era'] or '-'} {report['protocol_version'] or ''}".ljust(17),
            f"{'-' if tools is None else tools:>3} tools",
            f"{'-' if startup is None else round(startup):>5} ms",
            f"{report['spawns']} spawns",
            report["shutdown"]["ended_by"] or "-",
            " ".join(sorted({finding["code"] for finding in report["findings"]})),
        )
    ).rstrip()


# --- the rounds -------------------------------------------------------------------------------------------------------


class Runner:
    def __init__(self, binary):
        self.binary = binary
        self.processes = Processes()
        self.logs = DIR / "run/logs"
        shutil.rmtree(DIR / "run", ignore_errors=True)
        self.logs.mkdir(parents=True)
        self.printing = threading.Lock()
        self.count = collections.Counter()

    def say(self, what, line, wrong):
        with self.printing:
            self.count["failed" if wrong else "passed"] += 1
            print(f"{'FAIL' if wrong else 'ok  '}  {what:32}  {line}".rstrip(), flush=True)
            for complaint in wrong:
                print(f"        {complaint}", flush=True)

    def options(self, server):
        """The command line after `check` or `serve` for one server."""
        options = ["--name", server["name"], "--total-timeout", f"{TOTAL}s"]
        for key, option in (("ask", "--era"), ("startup_timeout", "--startup-timeout"), ("eof_grace", "--eof-grace")):
            if key in server:
                options += [option, server[key]]
        for key, value in server["env"].items():
            options += ["--env", f"{key}={value}"]
        return options + ["--", *server["argv"]]

    def check(self, server):
        name = server["name"]
        log = self.logs / f"check-{name}"
        line, wrong = "", []
        process = self.processes.launch(
            f"check-{name}", [str(self.binary), "check", "--format", "json", *self.options(server)], log
        )
        try:
            process.wait(TOTAL + 30)
            document = json.loads(pathlib.Path(f"{log}.out").read_bytes())
            (report,) = document["servers"]
            wrong += conforms(report)
            if document["format"] != 1 or report["server"] != name:
                wrong.append(f"format {document['format']}, server {report['server']}")
            if not wrong:
                line = facts(report)
                wrong += compare(server, report, process.returncode)
        except subprocess.TimeoutExpired:
            wrong.append(f"no end after {TOTAL + 30} s")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            wrong.append(f"exit status {process.returncode}, and no report as it should be: {error!r}")
        finally:
            self.processes.end(process)
        wrong += self.processes.left(f"check-{name}")
        if wrong:
            wrong.append(f"see {log}.out and .err")
        self.say(f"check {name}", line, wrong)

    def serve(self, server):
        """`serve -- COMMAND` until its first verdict; for some until the second probe, which must not look for the era again."""
        name = server["name"]
        twice = server.get("twice") and "fail" not in among(server["verdict"])
        serve = Serve(self, f"serve-{name}", ["--interval", "5s" if twice else "60s", *self.options(server)])
        line, wrong = "", []
        try:
            serve.probed({name: 2 if twice else 1})
            line, wrong = self.watched(serve, server, "/health")
            if twice:
                report = serve.report(name)
                if report["spawns"] != 1:
                    wrong.append(f"{report['spawns']} spawns in a later probe, the era was known")
        except ServeError as error:
            wrong.append(str(error))
        wrong += serve.end()
        self.say(f"serve {name}", line, wrong)

    def watched(self, serve, server, path):
        """What /health, /metrics and the API say of one server, against the table and each other.

        Read again while a new verdict comes in between.
        """
        name, wanted = server["name"], among(server.get("serve_verdict", server["verdict"]))

        def read():
            wrong = []
            report = serve.report(name)
            verdict = report["verdict"]
            if verdict not in wanted:
                wrong.append(f"verdict: wanted {' or '.join(wanted)}, got {verdict} ({report['reason']})")
                wrong += [
                    f"{f['code']} ({f['severity']}): {f['message']}"
                    for f in report["findings"]
                    if f["severity"] != "info"
                ]
            status, body = serve.get(path)
            if status != (200 if verdict in ("pass", "warn") else 503):
                wrong.append(f"{path} answers {status} for {verdict}")
            said = json.loads(body).get("status")
            if said not in ((verdict,) if verdict != "unknown" else ("fail", "warn")):
                wrong.append(f"{path} says {said} for {verdict}")
            up = serve.metric("stdiowatch_up", server=name)
            if up != (1 if verdict in ("pass", "warn") else 0):
                wrong.append(f"stdiowatch_up is {up} for {verdict}")
            if (state := serve.metric("stdiowatch_verdict", server=name, verdict=verdict)) != 1:
                wrong.append(f"stdiowatch_verdict is {state} for {verdict}")
            if "tools" in server and verdict in ("pass", "warn"):
                listed = serve.metric("stdiowatch_listed_items", server=name, list="tools")
                if listed != server["tools"]:
                    wrong.append(f"stdiowatch_listed_items: wanted {server['tools']}, got {listed}")
            return facts(report), wrong

        try:
            line, wrong = read()
            if wrong:
                wait_until(5, lambda: not read()[1])
                line, wrong = read()
            return line, wrong
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return "", [f"an answer is not as it should be: {error!r}"]


class ServeError(Exception):
    """A `serve` that does not answer as it must."""


class Serve:
    """A running `stdiowatch serve` on a free port of loopback."""

    def __init__(self, runner, key, arguments):
        self.processes, self.key, self.log = runner.processes, key, runner.logs / key
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        self.process = self.processes.launch(
            key, [str(runner.binary), "serve", "--listen", self.address, *arguments], self.log
        )

    def get(self, path):
        try:
            with urllib.request.urlopen(f"http://{self.address}{path}", timeout=5) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as answer:
            with answer:
                return answer.code, answer.read()
        except OSError as error:
            raise ServeError(f"{path}: {error}") from error

    def report(self, name):
        status, body = self.get(f"/api/v1/servers/{name}")
        if status != 200:
            raise ServeError(f"/api/v1/servers/{name} answers {status}")
        return json.loads(body)

    def metric(self, metric, **labels):
        """The value of the one series with these labels, or None."""
        status, body = self.get("/metrics")
        if status != 200:
            raise ServeError(f"/metrics answers {status}")
        for name, rest, value in re.findall(r"^(\w+)\{(.*)\} (\S+)$", body.decode(), re.MULTILINE):
            if name == metric and labels.items() <= dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', rest)).items():
                return float(value)
        return None

    def probed(self, rounds):
        """Waits until each of these servers was probed so many times."""

        def lacking():
            try:
                return [
                    n
                    for n, wanted in rounds.items()
                    if (self.metric("stdiowatch_probes_total", server=n) or 0) < wanted
                ]
            except ServeError:
                return list(rounds)

        done = wait_until(SERVED, lambda: self.process.poll() is not None or not lacking())
        if self.process.poll() is not None:
            raise ServeError(f"ended by itself with {self.process.returncode}")
        if not done:
            raise ServeError(f"not probed in {SERVED} s: {' '.join(lacking())}")

    def end(self):
        """SIGTERM, exit status 0, and nothing left."""
        wrong = []
        if self.process.poll() is None:
            self.process.terminate()
            try:
                if self.process.wait(30) != 0:
                    wrong.append(f"exit status {self.process.returncode} after SIGTERM")
            except subprocess.TimeoutExpired:
                wrong.append("no end within 30 s of SIGTERM")
        self.processes.end(self.process)
        wrong += self.processes.left(self.key)
        if wrong:
            wrong.append(f"see {self.log}.out and .err")
        return wrong


def side_by_side(workers, function, servers):
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        try:
            for done in concurrent.futures.as_completed([pool.submit(function, server) for server in servers]):
                done.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def main():
    parser = argparse.ArgumentParser(description="Holds a stdiowatch binary against real servers.")
    parser.add_argument("binary", type=pathlib.Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these servers, each with a `serve` of its own")
    parser.add_argument("--check-only", action="store_true", help="leave the rounds of `serve` out")
    arguments = parser.parse_args()
    binary = arguments.binary.resolve()
    if not os.access(binary, os.X_OK):
        sys.exit(f"run.py: no program at {binary}")
    table = load(binary)
    if unknown := set(arguments.names) - set(table):
        sys.exit(f"run.py: no such servers: {' '.join(sorted(unknown))}; there are {' '.join(table)}")
    if not (DIR / "npm/hello").exists():
        sys.exit(f"run.py: nothing is installed in {DIR}: run {HERE / 'install.sh'} first")
    with open(DIR / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        servers = [table[name] for name in arguments.names or table]
        runner = Runner(binary)
        signal.signal(signal.SIGTERM, runner.processes.stop)
        signal.signal(signal.SIGINT, runner.processes.stop)
        side_by_side(2, runner.check, servers)
        if not arguments.check_only:
            side_by_side(2, runner.serve, servers)
    print(f"{runner.count['passed']} passed, {runner.count['failed']} failed")
    sys.exit(1 if runner.count["failed"] or not runner.count["passed"] else 0)


if __name__ == "__main__":
    main()
