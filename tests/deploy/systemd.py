#!/usr/bin/env python3
"""Runs the units of deploy/systemd under a real systemd, booted in a container: systemd.py BINARY.

Needs root and, of Debian's packages, `mmdebstrap systemd-container`; installs them if they are missing. The container has a
root of its own, made once and kept in STDIOWATCH_REAL_DIR, and the host's loopback. BINARY runs in there: the static one.
"""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from common import DEPLOY
from checks import REAL, Checks, free_port, until

PACKAGES = ["systemd", "systemd-sysv", "dbus", "procps"]
LONG = 60  # seconds: more than anything takes that works
DYNAMIC = range(61184, 65520)  # the users that systemd makes up
BINARY = "/usr/local/bin/stdiowatch"


def main():
    binary = pathlib.Path(sys.argv[1])
    check = Checks()
    install()
    with tempfile.TemporaryDirectory(prefix="stdiowatch-systemd-") as folder:
        root = pathlib.Path(folder) / "root"
        root.mkdir()
        subprocess.run(["tar", "xf", image(), "-C", root], check=True)
        furnish(root, binary)
        with booted(root) as run:
            host = Host(run, root)
            if check("systemd has booted", until(LONG, lambda: "" if run("systemctl", "is-system-running") in ("running", "degraded") else run("systemctl", "is-system-running"))):
                for part in (template, without_ready, stalls, ends_late, socket, plain):
                    part(check, host)
    return check.end()


def install():
    missing = [package for tool, package in (("mmdebstrap", "mmdebstrap"), ("systemd-nspawn", "systemd-container")) if not shutil.which(tool)]
    if missing:
        subprocess.run(["apt-get", "update", "-q"], check=True)
        subprocess.run(["apt-get", "install", "-y", "-q", "--no-install-recommends", *missing], check=True)


def image():
    """A root with systemd, of the distribution's release that runs here."""
    tar = REAL / "systemd" / f"{'+'.join(PACKAGES)}.tar"
    if not tar.exists():
        tar.parent.mkdir(parents=True, exist_ok=True)
        half = tar.with_name(f"half-{os.getpid()}.tar")
        release = dict(line.strip().split("=", 1) for line in open("/etc/os-release") if "=" in line)["VERSION_CODENAME"]
        sources = [path for path in ("/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list") if os.path.exists(path)][0]
        subprocess.run(["mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", f"--include={','.join(PACKAGES)}", release, half, sources], check=True)
        half.rename(tar)
    return tar


def furnish(root, binary):
    shutil.copy(binary, root / BINARY[1:])
    for unit in (DEPLOY / "systemd").iterdir():
        shutil.copy(unit, root / "etc/systemd/system")
    (root / "etc/stdiowatch").mkdir()
    (root / "etc/credstore").mkdir(mode=0o700, exist_ok=True)
    # There is no network to wait for, and nobody to log in.
    for unit in ("systemd-networkd-wait-online.service", "console-getty.service", "systemd-logind.service", "systemd-resolved.service"):
        (root / "etc/systemd/system" / unit).symlink_to("/dev/null")


@contextlib.contextmanager
def booted(root):
    """Runs systemd in there; yields what runs a command beside it, and returns what that says."""
    argv = ["systemd-nspawn", "--register=no", "--keep-unit", "-q", "-b", "-D", root, "--console=pipe"]
    with open(root.parent / "console", "wb") as console:
        container = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=console, stderr=console)

    def first():
        with contextlib.suppress(OSError):
            return pathlib.Path(f"/proc/{container.pid}/task/{container.pid}/children").read_text().split()
        return []

    def run(*argv):
        enter = ["nsenter", "-t", (first() or ["0"])[0], "-m", "-u", "-i", "-n", "-p", "-C", "--", *argv]
        done = subprocess.run(enter, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LONG * 2)
        return done.stdout.strip()

    try:
        until(LONG, lambda: "" if first() else "nothing runs in it")
        yield run
    finally:
        container.terminate()  # an orderly end
        with contextlib.suppress(subprocess.TimeoutExpired):
            container.wait(20)
        container.kill()
        container.wait()


class Host:
    """What can be done in there."""

    def __init__(self, run, root):
        self.run, self.root = run, root

    def systemctl(self, *words):
        return self.run("systemctl", *words)

    def show(self, unit, *properties):
        lines = self.systemctl("show", unit, *(f"-p{name}" for name in properties)).splitlines()
        values = dict(line.split("=", 1) for line in lines if "=" in line)
        return [values.get(name) for name in properties]

    def write(self, path, text, mode=0o644):
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        place.chmod(mode)

    def drop_in(self, unit, text):
        self.write(f"etc/systemd/system/{unit}.d/test.conf", text)
        self.systemctl("daemon-reload")

    def shows(self, check, name, unit, **wanted):
        """A unit gets to show this."""
        names = list(wanted)
        wrong = until(LONG, lambda: "" if self.show(unit, *names) == list(wanted.values()) else f"{self.show(unit, *names)}, not {wanted}")
        return check(name, wrong and f"{wrong}\n{self.journal(unit)}")

    def journal(self, unit):
        return self.run("journalctl", "--no-pager", "-n", "25", "-o", "cat", "-u", unit)

    def answers(self, check, name, unit, port, path="/health", wanted=200):
        wrong = until(LONG, lambda: "" if status(port, path) == wanted else f"{path} answers {status(port, path)}")
        return check(name, wrong and f"{wrong}\n{self.journal(unit)}")

    def ended(self, check, name, unit):
        """By itself, in time, with status 0. Of a unit that is not needed any more, the journal alone knows that."""
        self.run("journalctl", "--sync")
        end = self.journal(unit).rsplit("Stopping ", 1)[-1]
        bad = [word for word in ("Killing", "timed out", "status=", "Failed") if word in end]
        return check(name, end if bad or "Deactivated successfully" not in end else "")

    def survivors(self):
        return self.run("sh", "-c", "ps -eo user,pid,args | grep -E 'sample-serve[r]|stdiowatch serv[e]|stdiowatch guar[d]|[l]asting'")


def status(port, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError as error:
        return str(error)


def config(host, name, port, **servers):
    """A configuration: a shell script for each server, and keys of its own."""
    text = f"listen: 127.0.0.1:{port}\nservers:\n"
    for server, (script, keys) in servers.items():
        text += f"  {server}: {{command: /bin/sh, args: [-c, {script!r}], interval: 2s, {keys}}}\n"
    host.write(f"etc/stdiowatch/{name}.yaml", text)


SOUND = (f"exec {BINARY} sample-server sound", "limits: {memory: 512MiB, processes: 64, open_files: 1024}")
MUTE = (f"exec {BINARY} sample-server mute", "")
# Hears neither the end of its input nor SIGTERM.
LASTING = "trap '' TERM; while :; do sleep 0.2; : lasting; done"
# Knows a secret, and nothing of the service manager.
SECRET = ('[ "$KEY" = "a secret" ] && [ -z "$NOTIFY_SOCKET$WATCHDOG_USEC$LISTEN_FDS" ] && exec ' + BINARY + " sample-server sound", "env_mode: inherit, env_from_file: '${CREDENTIALS_DIRECTORY}/env'")


# --- what is checked --------------------------------------------------------------------------------------------------


def template(check, host):
    unit, port = "stdiowatch@files.service", free_port()
    host.write("etc/credstore/stdiowatch-files.env", "KEY=a secret\n", 0o600)
    config(host, "files", port, secret=SECRET, sound=SOUND, mute=MUTE)
    check("start: it is ready before a server that hangs", host.systemctl("start", unit))
    check.equal("start: /livez answers at once", status(port, "/livez"), 200)
    check.equal("start: /readyz waits for the first round", status(port, "/readyz"), 503)
    host.answers(check, "credentials: the server has its secret, and hears nothing of the service manager", unit, port, "/health/secret")
    host.shows(check, "status: says how the servers are", unit, StatusText="3 servers: 2 up, 1 unprobed", ActiveState="active")
    pid = host.show(unit, "MainPID")[0]
    uid = host.run("stat", "-c", "%u", f"/proc/{pid}")
    check("DynamicUser: a user that is nobody else's", "" if int(uid) in DYNAMIC else uid)
    kept = until(LONG, lambda: "" if host.run("find", "/var/lib/private/stdiowatch-files/kept", "-type", "f") else "nothing is kept")
    check("the state directory is this instance's own", kept or ("" if host.run("stat", "-c", "%u %a", "/var/lib/private/stdiowatch-files") == f"{uid} 700" else host.run("ls", "-lan", "/var/lib/private")))
    check("it says nothing of a limit that it may not set", "\n".join(line for line in host.journal(unit).splitlines() if "WARN" in line and "mute" not in line))

    config(host, "files", port, secret=SECRET)
    check("reload: systemctl reload", host.systemctl("reload", unit))
    host.shows(check, "reload: the new configuration is in use", unit, StatusText="1 server: 1 up", ActiveState="active", SubState="running")
    host.write("etc/stdiowatch/files.yaml", "servers: {a: {comand: x}}\n")
    host.systemctl("reload", unit)
    host.shows(check, "reload: a bad file is refused, and that is said", unit, StatusText="1 server: 1 up; the configuration that was read last is refused", ActiveState="active", SubState="running")
    check.equal("reload: it is the same process", host.show(unit, "MainPID", "NRestarts"), [pid, "0"])

    config(host, "files", port, lasting=(LASTING, "shutdown: {eof: 1s, term: 1s}"))
    host.systemctl("reload", unit)
    check("stop: a server that lasts is being probed", until(LONG, lambda: "" if "lasting" in host.survivors() else host.survivors() or "nothing runs"))
    check("stop: systemctl stop", host.systemctl("stop", unit))
    host.ended(check, "stop: it ended by itself, with status 0", unit)
    check("stop: nothing survives", host.survivors())

    (host.root / "etc/credstore/stdiowatch-files.env").unlink()
    config(host, "files", port, sound=SOUND)
    check("credentials: none are needed", host.systemctl("start", unit))
    host.answers(check, "credentials: without one it watches as well", unit, port)
    host.systemctl("stop", unit)


def without_ready(check, host):
    """What says that the unit is active, is READY=1 and nothing else."""
    unit = "stdiowatch@silent.service"
    config(host, "silent", free_port(), sound=SOUND)
    host.drop_in(unit, f"[Service]\nExecStart=\nExecStart=/usr/bin/env -u NOTIFY_SOCKET {BINARY} serve --config /etc/stdiowatch/silent.yaml\nTimeoutStartSec=2s\nRestart=no\n")
    host.systemctl("start", unit)
    check.equal("without READY=1 it is never active", host.show(unit, "Result", "ActiveState"), ["timeout", "failed"])
    host.systemctl("reset-failed", unit)


def stalls(check, host):
    unit, port = "stdiowatch@stalls.service", free_port()
    config(host, "stalls", port, sound=SOUND, mute=MUTE)
    host.drop_in(unit, "[Service]\nWatchdogSec=4s\nRestartSec=100ms\n")
    host.systemctl("start", unit)
    host.answers(check, "watchdog: it runs", unit, port, "/health/sound")
    pid = host.show(unit, "MainPID")[0]
    host.run("kill", "-STOP", pid)
    host.shows(check, "watchdog: one that stands still is started anew", unit, NRestarts="1", ActiveState="active")
    host.answers(check, "watchdog: and watches again", unit, port, "/health/sound")
    check("watchdog: that is why", "" if "Watchdog timeout" in host.journal(unit) else host.journal(unit))
    begun = host.show(unit, "NRestarts", "MainPID")
    # More than the watchdog waits, during which a server hangs that is being probed.
    begin = time.monotonic()
    until(LONG, lambda: "" if time.monotonic() > begin + 9 else "wait")
    check.equal("watchdog: a server that hangs is no reason", host.show(unit, "NRestarts", "MainPID"), begun)
    host.systemctl("stop", unit)
    check("watchdog: nothing survives", host.survivors())


def ends_late(check, host):
    """The configuration says how long an end may take, whatever the unit says."""
    unit, port = "stdiowatch@late.service", free_port()
    config(host, "late", port, lasting=(LASTING, "shutdown: {eof: 4s, term: 1s}"))
    host.drop_in(unit, "[Service]\nTimeoutStopSec=2s\n")
    host.systemctl("start", unit)
    check("late: a server that lasts is being probed", until(LONG, lambda: "" if "lasting" in host.survivors() else "nothing runs"))
    host.systemctl("stop", unit)
    host.ended(check, "late: it is given the time that its configuration says", unit)
    check("late: nothing survives", host.survivors())


def socket(check, host):
    unit, port, other = "stdiowatch@socket", free_port(), free_port()
    config(host, "socket", other, sound=SOUND)
    host.drop_in(f"{unit}.socket", f"[Socket]\nListenStream=\nListenStream=127.0.0.1:{port}\n")
    check("socket: systemctl start", host.systemctl("start", f"{unit}.socket"))
    host.answers(check, "socket: who connects has it started", f"{unit}.service", port)
    check("socket: it listens nowhere else", "" if "refused" in str(status(other, "/livez")) else status(other, "/livez"))
    pid = host.show(f"{unit}.service", "MainPID")[0]
    host.systemctl("restart", "--no-block", f"{unit}.service")
    refused = []

    def anew():
        answer = status(port, "/livez")
        refused.extend([answer] if "refused" in str(answer) else [])
        now, state = host.show(f"{unit}.service", "MainPID", "ActiveState")
        return "" if answer == 200 and now != pid and state == "active" else f"{answer}, {state}"

    check("socket: it is started anew", until(LONG, anew))
    check.equal("socket: nobody is turned away meanwhile", refused, [])
    host.systemctl("stop", f"{unit}.socket", f"{unit}.service")


def plain(check, host):
    unit, port = "stdiowatch.service", free_port()
    host.write("etc/stdiowatch.env", f"STDIOWATCH_ARGS=--listen 127.0.0.1:{port} --name files -- {BINARY} sample-server sound\n")
    check("plain: systemctl start", host.systemctl("start", unit))
    host.answers(check, "plain: /health/files is 200", unit, port, "/health/files")
    check("plain: systemctl reload, though there is nothing to read", host.systemctl("reload", unit))
    host.shows(check, "plain: it runs on", unit, StatusText="1 server: 1 up", ActiveState="active", SubState="running")
    host.systemctl("stop", unit)
    host.ended(check, "plain: it ended with status 0", unit)
    check("plain: nothing survives", host.survivors())


if __name__ == "__main__":
    sys.exit(main())
