#!/usr/bin/env python3
"""Takes from a running stdiowatch what it needs, and gives it back: trouble.py BINARY.

Descriptors, memory, processes, room on the disk, /proc, time: whatever is missing, the sound server that it watches is never said
to have failed, and all is well again by itself. Needs root, for the limits of another user, and for mounts.
"""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from checks import Checks, free_port, start, until

ROUND = 60  # seconds until something shows
NOBODY = 65534


class Sidecar:
    """A `serve` of one sound server."""

    def __init__(self, ends, folder, binary, before=(), state=None, **how):
        self.before = list(before) if "setpriv" in before else []
        self.port, self.log = free_port(), folder / f"log-{time.monotonic_ns()}"
        argv = [*before, binary, "serve", "--listen", f"127.0.0.1:{self.port}", "--interval", "1s", "--name", "s", "--state-dir", state or "/nowhere/state"]
        self.program = start(ends, self.log, [*argv, "--", binary, "sample-server", "sound"], **how)

    def series(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=5) as answer:
                text = answer.read().decode()
        except OSError:
            return {}
        return {m[1]: float(m[2]) for m in re.finditer(r"^stdiowatch_(\S+) (\S+)$", text, re.M)}

    def becomes(self, series, wanted, seconds=ROUND):
        return until(seconds, lambda: "" if wanted(self.series().get(series, -1)) else f"{series} is {self.series().get(series)}; {self.log.read_text()[-800:]}")

    def failures(self):
        return sum(value for name, value in self.series().items() if name.startswith("probe_failures_total"))

    def limit(self, which, value):
        """Sets the soft limit of what runs already, as the user that it runs as."""
        subprocess.run([*self.before, "prlimit", "--pid", str(self.program.pid), f"--{which}={value}:"], check=True)


def hold(check, name, sidecar, which, value):
    """Takes something away until a probe had no room, and gives it back."""
    if not check(f"{name}: all is well at first", sidecar.becomes('up{server="s"}', lambda up: up == 1)):
        return
    titles = {"nofile": "Max open files", "nproc": "Max processes"}
    before = re.search(rf"^{titles[which]}\s+(\S+)", pathlib.Path(f"/proc/{sidecar.program.pid}/limits").read_text(), re.M)[1]
    sidecar.limit(which, value(sidecar.program.pid))
    unknown = sidecar.series().get('probe_unknown_total{server="s"}', 0)
    check(f"{name}: without it nothing is said", sidecar.becomes('probe_unknown_total{server="s"}', lambda n: n > unknown))
    sidecar.limit(which, before)
    check(f"{name}: and all is well again by itself", sidecar.becomes('up{server="s"}', lambda up: up == 1))
    check.equal(f"{name}: the server was not blamed", sidecar.failures(), 0)
    check.equal(f"{name}: it lives", sidecar.program.poll(), None)


def few_descriptors(pid):
    """As many as it has, so that HTTP is answered only by what is reused."""
    return max(int(fd) for fd in os.listdir(f"/proc/{pid}/fd")) + 2


def limits(check, ends, folder, binary):
    hold(check, "descriptors (EMFILE)", Sidecar(ends, folder, binary), "nofile", few_descriptors)
    # Its own copy, where another user may come.
    copy = folder / "stdiowatch"
    shutil.copy(binary, copy)
    before = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    hold(check, "processes (EAGAIN)", Sidecar(ends, folder, copy, before), "nproc", lambda pid: 0)


def disk(check, ends, folder, binary):
    small = folder / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", small], check=True)
    ends.callback(subprocess.run, ["umount", "-l", small])
    with contextlib.suppress(OSError), open(small / "full", "wb") as full:
        full.write(bytes(1 << 20))
    sidecar = Sidecar(ends, folder, binary, state=small / "state")
    check("a full disk: the server is up", sidecar.becomes('up{server="s"}', lambda up: up == 1))
    check("a full disk: it is told", sidecar.becomes("state_kept", lambda kept: kept == 0))
    (small / "full").unlink()
    check("a full disk: what could not be kept is, once there is room", sidecar.becomes("state_kept", lambda kept: kept == 1, 90))
    closed = folder / "closed"
    closed.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", closed], check=True)
    ends.callback(subprocess.run, ["umount", "-l", closed])
    second = Sidecar(ends, folder, binary, state=closed / "state")
    check("a read-only directory: the server is up", second.becomes('up{server="s"}', lambda up: up == 1))
    check("a read-only directory: it is told", second.becomes("state_kept", lambda kept: kept == 0))


def no_proc(check, ends, folder, binary):
    before = ["unshare", "--mount", "sh", "-c", 'umount -l /proc && exec "$0" "$@"']
    sidecar = Sidecar(ends, folder, binary, before)
    probed = sidecar.becomes('probes_total{server="s"}', lambda n: n >= 3)
    told = sidecar.program.poll() is not None and "/proc" in sidecar.log.read_text()
    check("without /proc it probes, or says that it cannot", "" if told else probed)
    check.equal("without /proc the server was not blamed", sidecar.failures(), 0)


def suspended(check, ends, folder, binary):
    sidecar = Sidecar(ends, folder, binary)
    check("stopped: all is well at first", sidecar.becomes('up{server="s"}', lambda up: up == 1))
    for _ in range(5):
        sidecar.program.send_signal(signal.SIGSTOP)
        time.sleep(2.3)
        sidecar.program.send_signal(signal.SIGCONT)
        check("stopped for longer than an interval: all is well again", sidecar.becomes('up{server="s"}', lambda up: up == 1))
    check.equal("stopped: the server was not blamed", sidecar.failures(), 0)


def main():
    binary = pathlib.Path(sys.argv[1]).resolve()
    if os.geteuid():
        sys.exit("this needs root")
    check = Checks()
    with tempfile.TemporaryDirectory(prefix="stdiowatch-") as folder, contextlib.ExitStack() as ends:
        os.chmod(folder, 0o755)
        for part in (limits, disk, no_proc, suspended):
            part(check, ends, pathlib.Path(folder), binary)
    return check.end()


if __name__ == "__main__":
    sys.exit(main())
