#!/usr/bin/env python3
"""Probes servers in real containers, and sees that no container outlives a probe.

    tests/real/containers.py target/release/stdiowatch

Needs root and, of Debian's packages, `podman buildah runc conmon catatonit`; installs nothing, and keeps
its images and containers in a directory of its own, which is removed at the end. The image holds the
binary itself, with the libraries that it needs, as a sample server.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from checks import CONTAINERS_CONF

TOOLS = ["podman", "buildah", "runc", "conmon", "catatonit"]
FAST = ["--startup-timeout", "20s", "--eof-grace", "1s", "--term-grace", "1s", "--era", "legacy"]


class Failed(Exception):
    pass


def want(condition, what):
    if not condition:
        raise Failed(what)


class Place:
    """A directory with the image, the store and the configuration in it."""

    def __init__(self, binary):
        self.binary = str(Path(binary).resolve())
        self.dir = Path(tempfile.mkdtemp(prefix="stdiowatch-containers-"))
        (self.dir / "containers.conf").write_text(CONTAINERS_CONF)
        self.env = {**os.environ, "CONTAINERS_CONF": str(self.dir / "containers.conf")}
        store = ["--root", str(self.dir / "store"), "--runroot", str(self.dir / "run"), "--storage-driver", "vfs"]
        self.podman = ["podman", *store, "--tmpdir", str(self.dir / "tmp")]
        self.build(store)

    def build(self, store):
        image = self.dir / "image"
        image.mkdir()
        shutil.copy(self.binary, image / "stdiowatch")
        needed = subprocess.run(["ldd", self.binary], capture_output=True, text=True).stdout
        for library in re.findall(r"/\S+", needed):
            there = image / library.lstrip("/")
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, there)
        (image / "Containerfile").write_text('FROM scratch\nCOPY . /\nENTRYPOINT ["/stdiowatch", "sample-server"]\nCMD ["sound"]\n')
        build = ["buildah", *store, "bud", "--isolation", "chroot", "-q", "-t", "localhost/sample", str(image)]
        subprocess.run(build, env=self.env, check=True, capture_output=True)
        shutil.rmtree(image)

    def command(self, run, kind="sound", options=FAST, word=("run",)):
        env = ["--env", f"CONTAINERS_CONF={self.dir}/containers.conf", "--env", f"TMPDIR={self.dir}"]
        container = [*self.podman, *word, "--network", "host", *run, "localhost/sample", kind]
        return [self.binary, "check", "--format", "json", *options, *env, "--", *container]

    def check(self, *args, **named):
        done = subprocess.run(self.command(*args, **named), capture_output=True, text=True, env=self.env, timeout=120)
        report = json.loads(done.stdout)["servers"][0]
        return report, {f["code"]: f["evidence"] for f in report["findings"] if f["severity"] != "info"}

    def containers(self):
        listed = subprocess.run([*self.podman, "ps", "-aq"], capture_output=True, text=True, env=self.env, check=True)
        return listed.stdout.split()

    def processes(self):
        """What runs of this store: clients, monitors, and by these the servers."""
        found = {}
        for entry in Path("/proc").iterdir():
            try:
                line = (entry / "cmdline").read_bytes().split(b"\0")
            except (OSError, ValueError):
                continue
            if entry.name.isdigit() and str(self.dir / "store").encode() in line:
                found[int(entry.name)] = line
        return found

    def until(self, what, test, seconds=20):
        end = time.monotonic() + seconds
        while not test():
            want(time.monotonic() < end, f"never: {what}")
            time.sleep(0.05)

    def nothing_left(self):
        self.until("no container is left", lambda: not self.containers(), 8)
        try:
            self.until("no process is left", lambda: not self.processes(), 5)
        except Failed as error:
            left = [b" ".join(line).decode(errors="replace") for line in self.processes().values()]
            raise Failed(f"{error}: {left}") from None

    def client(self):
        """The pid of the client of the probe that is on, once its container runs."""
        ps = [*self.podman, "ps", "--format", "{{.Status}}"]
        self.until("a container runs", lambda: "Up" in subprocess.run(ps, capture_output=True, text=True, env=self.env).stdout)
        clients = [pid for pid, line in self.processes().items() if b"run" in line and line[0] == b"podman"]
        want(len(clients) == 1, f"{len(clients)} clients")
        return clients[0]

    def start(self, *args, **named):
        null = subprocess.DEVNULL
        return subprocess.Popen(self.command(*args, **named), stdout=subprocess.PIPE, stderr=null, env=self.env)

    def remove(self):
        subprocess.run([*self.podman, "rm", "-f", "-t", "0", "-a"], env=self.env, capture_output=True)
        shutil.rmtree(self.dir, ignore_errors=True)


def polite(p):
    report, found = p.check(["-i", "--rm"])
    want((report["verdict"], found) == ("pass", {}), found)
    want(not p.containers(), "one is left at once")


def both_eras_by_a_fixed_name(p):
    options = [*FAST[:-2], "--era", "auto"]
    report, found = p.check(["-i", "--rm", "--name", "fixed"], options=options)
    want((report["verdict"], report["spawns"]) == ("pass", 2), found)


def container_run_without_rm(p):
    report, found = p.check(["-i"], word=("container", "run"))
    want((report["verdict"], list(found)) == ("warn", ["shutdown.left_container"]), found)
    want("Exited (0)" in found["shutdown.left_container"], found)
    want(not p.containers(), "one is left at once")


def deaf_to_the_end_of_input(p):
    report, found = p.check(["-i", "--rm", "--init"], "ignore-eof")
    want((report["shutdown"]["ended_by"], list(found)) == ("sigterm", ["shutdown.needed_term"]), found)


def process_one_is_deaf_to_sigterm(p):
    report, found = p.check(["-i", "--rm"], "ignore-eof")
    want(report["shutdown"]["ended_by"] == "sigkill" and set(found) == {"shutdown.needed_kill", "shutdown.left_container"}, found)
    want("--init" in found["shutdown.needed_kill"] and "Up" in found["shutdown.left_container"], found)


def deaf_to_sigterm(p):
    report, found = p.check(["-i", "--name", "deaf"], "ignore-sigterm")
    want(report["shutdown"]["ended_by"] == "sigkill" and "deaf" in found["shutdown.left_container"], found)


def without_i(p):
    report, found = p.check(["--rm"])
    want(report["verdict"] == "fail" and "add -i" in found["exit.before_reply"], found)


def with_a_terminal(p):
    report, found = p.check(["-it", "--rm"])
    want(report["verdict"] == "fail" and "-t of `podman`" in found["stdout.noise"], found)


def detached(p):
    report, found = p.check(["-d", "--rm"], "ignore-eof")
    want(report["verdict"] == "fail" and "with -d" in found["exit.before_reply"] and "shutdown.left_container" in found, found)


def a_name_that_is_taken(p):
    subprocess.run([*p.podman, "create", "--name", "taken", "localhost/sample"], env=p.env, check=True, capture_output=True)
    try:
        report, found = p.check(["-i", "--rm", "--name", "taken"])
        want("--name taken" in found["exit.before_reply"] and "shutdown.left_container" not in found, found)
        want(len(p.containers()) == 1, "somebody else's container was removed")
    finally:
        subprocess.run([*p.podman, "rm", "-f", "taken"], env=p.env, capture_output=True)


def the_client_is_killed(p):
    check = p.start(["-i", "--rm"], "ignore-eof", options=[*FAST[:2], "--eof-grace", "60s", *FAST[4:]])
    os.kill(p.client(), signal.SIGKILL)
    report = json.loads(check.communicate(timeout=60)[0])["servers"][0]
    want("shutdown.left_container" in [f["code"] for f in report["findings"]], report["findings"])


def stdiowatch_is_asked_to_stop(p):
    check = p.start(["-i", "--rm"], "ignore-eof")
    p.client()
    check.send_signal(signal.SIGTERM)
    want(check.wait(60) == 143, check.returncode)


def stdiowatch_is_killed(p):
    check = p.start(["-i", "--rm"], "ignore-eof", options=[*FAST[:2], "--eof-grace", "60s", *FAST[4:]])
    p.client()
    check.kill()
    check.wait()


def stdiowatch_is_killed_while_it_is_made(p):
    for moment in (0.03, 0.06, 0.09, 0.12, 0.15, 0.2, 0.3):
        check = p.start(["-i", "--rm"], "ignore-eof")
        time.sleep(moment)
        check.kill()
        check.wait()
        time.sleep(0.5)
        p.nothing_left()


CASES = [polite, both_eras_by_a_fixed_name, container_run_without_rm, deaf_to_the_end_of_input, process_one_is_deaf_to_sigterm,
         deaf_to_sigterm, without_i, with_a_terminal, detached, a_name_that_is_taken, the_client_is_killed,
         stdiowatch_is_asked_to_stop, stdiowatch_is_killed, stdiowatch_is_killed_while_it_is_made]


def main():
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if len(sys.argv) < 2 or missing:
        print(__doc__ if len(sys.argv) < 2 else f"missing: {' '.join(missing)} (apt-get install --no-install-recommends {' '.join(TOOLS)})")
        return 2
    chosen = [case for case in CASES if len(sys.argv) < 3 or case.__name__ in sys.argv[2:]]
    passed = failed = 0
    place = Place(sys.argv[1])
    try:
        for case in chosen:
            begun = time.monotonic()
            try:
                case(place)
                place.nothing_left()
                passed, word = passed + 1, "ok"
            except (Failed, KeyError, ValueError, subprocess.SubprocessError) as error:
                failed, word = failed + 1, f"FAILED {type(error).__name__}: {error}"
                subprocess.run([*place.podman, "rm", "-f", "-t", "0", "-a"], env=place.env, capture_output=True)
            print(f"{case.__name__.replace('_', ' '):<36} {time.monotonic() - begun:5.1f} s  {word}", flush=True)
    finally:
        place.remove()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
