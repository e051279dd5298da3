"""deploy/Dockerfile; and the static binary, built from what that copies, where there is nothing else."""

import contextlib
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import tomllib
import urllib.request

from common import DEPLOY, NOBODY, TOP, status, tool
from checks import free_port, until

SIZE = 8 << 20  # bytes: the static binary


def dockerfile(check, folder, out):
    """hadolint; then the first stage by hand, in a folder with what it copies. Returns the binary."""
    text = (DEPLOY / "Dockerfile").read_text()
    tool(check, "Dockerfile: hadolint", ["hadolint", DEPLOY / "Dockerfile"], silent=True)
    build, scratch = text.split("FROM scratch")
    source = folder / "src"
    for line in re.findall(r"^COPY (.+)$", build, re.M):
        *names, place = shlex.split(line)
        for name in names:
            end = source / place / pathlib.Path(name).name if place.endswith("/") else source / place
            end.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if (TOP / name).is_dir() else shutil.copy)(TOP / name, end)
    ignored = (TOP / ".dockerignore").read_text().split()
    needed = {name for line in re.findall(r"^COPY (.+)$", build, re.M) for name in shlex.split(line)[:-1]}
    check.equal(".dockerignore lets through what the Dockerfile copies", {line[1:] for line in ignored if line != "*"}, needed)

    target = os.environ.get("CARGO_TARGET_DIR") or str(TOP / "target")
    if not tool(check, "Dockerfile: the static binary is built from what it copies", ["deploy/static.sh", out], cwd=source, env={**os.environ, "CARGO_TARGET_DIR": target}):
        return None
    binary = out / "stdiowatch"
    dynamic = subprocess.run(["readelf", "-d", binary], capture_output=True, text=True).stdout
    check("the static binary needs no library", "\n".join(re.findall(r".*NEEDED.*", dynamic)))
    size = binary.stat().st_size
    check(f"the static binary has {size / 2**20:.1f} MiB", "" if size <= SIZE else f"more than {SIZE >> 20}")

    instructions = dict(re.findall(r"^(USER|EXPOSE|HEALTHCHECK|ENTRYPOINT|CMD) (.+)$", scratch, re.M))
    check.equal("Dockerfile: runs as nobody in particular", instructions["USER"], f"{NOBODY}:{NOBODY}")
    check("Dockerfile: listens where it exposes", "" if f'"0.0.0.0:{instructions["EXPOSE"]}"' in instructions["CMD"] else scratch)
    return binary


def run_in_root(check, binary, folder, proc):
    """Runs the demo as 65532 in a root that is empty but for the binary and maybe /proc, in which it is PID 1."""
    root, port, where = folder / f"root-{proc:d}", free_port(), "in a container's root" if proc else "in an empty root"
    (root / "proc").mkdir(parents=True) if proc else root.mkdir()
    shutil.copy(binary, root / "stdiowatch")
    inside = ["chroot", f"--userspec={NOBODY}:{NOBODY}", root]
    serve = ["/stdiowatch", "serve", "--demo", "--listen", f"127.0.0.1:{port}"]
    if not proc:
        # Without /proc no program can find its own file, as the demo has to.
        serve[2:3] = []
        serve += ["--name", "sound", "--", "/stdiowatch", "sample-server", "sound"]
    namespace = ["unshare", "--pid", "--fork", "--kill-child", f"--mount-proc={root / 'proc'}"] if proc else []
    with open(folder / "serve.log", "wb") as log:
        program = subprocess.Popen([str(word) for word in [*namespace, *inside, *serve]], stdout=log, stderr=log)
    try:
        answer = until(60, lambda: status(f"http://127.0.0.1:{port}/health/sound"))
        if check(f"{where}: /health/sound is 200", answer and answer + "\n" + (folder / "serve.log").read_text()[-500:]):
            tool(check, f"{where}: stdiowatch healthcheck agrees", [*inside, "/stdiowatch", "healthcheck", f"http://127.0.0.1:{port}/health/sound"])
            own = pathlib.Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text().split()[0] if proc else program.pid
            if proc:
                as_first(check, int(own), port)
            os.kill(int(own), signal.SIGTERM)
            check.equal(f"{where}: SIGTERM ends it with status 0", program.wait(15), 0)
    except subprocess.TimeoutExpired:
        check(f"{where}: SIGTERM ends it with status 0", "it still runs")
    finally:
        program.kill()
        program.wait()


# --- PID 1 ------------------------------------------------------------------------------------------------------------

# Begins an orphan that lives until the pipe is closed which it has as its stdin: PID 1 is its parent then.
ORPHANS = """
import os, sys
for _ in range(20):
    if os.fork() == 0:
        if os.fork() == 0:
            sys.stdin.read()
        os._exit(0)
    os.wait()
"""


def as_first(check, pid, port):
    """PID 1 gets whatever loses its parent, and is the only one who can reap it; but not what is waited for elsewhere."""

    def children():
        return {int(child) for task in pathlib.Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()}

    with contextlib.ExitStack() as ends:
        argv = ["nsenter", "-t", str(pid), "-p", "--", "python3", "-c", ORPHANS]
        begin = subprocess.Popen(argv, stdin=subprocess.PIPE)
        ends.callback(begin.wait)
        ends.callback(begin.kill)
        begin.wait(30)
        named = {child for child in children() if b"sys.stdin.read" in command(child)}
        check.equal("as PID 1: orphans come to it", len(named), 20)
        begin.stdin.close()
        wrong = until(30, lambda: "" if not named & children() else f"{[(child, state(child)) for child in named & children()]}")
        check("as PID 1: no orphan stays a zombie", wrong)
    # What ended each server is still known: nobody else has reaped it.
    series = {"sound": 'stdiowatch_shutdowns_total{server="sound",ended_by="eof"}', "exit": 'stdiowatch_probe_failures_total{server="exit",reason="exited"}'}
    before = {name: metric(port, line) for name, line in series.items()}
    wrong = until(60, lambda: "" if all((metric(port, line) or 0) > (before[name] or 0) for name, line in series.items()) else f"{before}, and no more")
    check("as PID 1: servers are reaped by who waits for them", wrong)


def command(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def state(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


def metric(port, series):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        for line in answer.read().decode().splitlines():
            if line.startswith(series + " "):
                return float(line.split()[-1])


# --- the image, really built ------------------------------------------------------------------------------------------

CONF = """[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
[engine]
runtime = "runc"
events_logger = "file"
cgroup_manager = "cgroupfs"
"""
APPLETS = ("sh", "env", "sed", "mkdir", "dirname")
# Stands in for the toolchain: the binary was built already, by the same script.
RUSTC = "#!/bin/sh\necho 'host: here'\n"
CARGO = "#!/bin/sh\nset -e\ncase $* in *--release*--locked*) ;; *) exit 1;; esac\nmkdir -p target/here/release\ninstall /built target/here/release/stdiowatch\n"


def built(check, binary, folder):
    """The whole Dockerfile, its two stages, with a stand-in for the image that has the compiler; then what came of it."""
    folder = folder / "buildah"
    folder.mkdir()
    (folder / "containers.conf").write_text(CONF)
    env = {**os.environ, "CONTAINERS_CONF": str(folder / "containers.conf")}
    store = ["--root", folder / "store", "--runroot", folder / "run", "--storage-driver", "vfs"]
    podman = ["podman", *store, "--tmpdir", folder / "tmp"]
    base = re.search(r"^FROM (\S+) AS build$", (DEPLOY / "Dockerfile").read_text(), re.M)[1]
    with contextlib.ExitStack() as ends:
        ends.callback(subprocess.run, [*map(str, podman), "rm", "-af", "-t", "0"], env=env, capture_output=True)
        toolchain(folder / "base", binary)
        bud = ["buildah", *store, "bud", "--isolation", "chroot", "--network", "host", "--pull-never", "--format", "docker", "-q"]
        if not tool(check, "image: a stand-in for the image with the compiler", [*bud, "-t", f"localhost/{base}", folder / "base"], env=env):
            return
        if not tool(check, "image: the Dockerfile is built, both stages", [*bud, "--build-arg", "REVISION=abc", "-t", "localhost/stdiowatch", "-f", DEPLOY / "Dockerfile", TOP], env=env):
            return
        inspect = subprocess.run([*map(str, podman), "image", "inspect", "localhost/stdiowatch"], env=env, capture_output=True, text=True)
        labels = json.loads(inspect.stdout)[0]["Labels"]
        wanted = {"version": tomllib.loads((TOP / "Cargo.toml").read_text())["package"]["version"], "revision": "abc", "licenses": "Apache-2.0"}
        check.equal("image: its labels are true", {name: labels.get(f"org.opencontainers.image.{name}") for name in wanted}, wanted)
        container(check, podman, env)


def toolchain(place, binary):
    (place / "bin").mkdir(parents=True)
    (place / "usr").mkdir()
    (place / "usr/bin").symlink_to("/bin")
    for name in ("bash", "install", "busybox"):
        shutil.copy(shutil.which(name), place / "bin" / name)
        for library in re.findall(r"(/\S+) \(", subprocess.run(["ldd", shutil.which(name)], capture_output=True, text=True).stdout):
            (place / library[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, place / library[1:])
    for applet in APPLETS:
        (place / "bin" / applet).symlink_to("busybox")
    for name, text in (("rustc", RUSTC), ("cargo", CARGO)):
        (place / "bin" / name).write_text(text)
        (place / "bin" / name).chmod(0o755)
    shutil.copy(binary, place / "built")
    (place / "Containerfile").write_text("FROM scratch\nCOPY . /\nENV PATH=/bin HOME=/\n")


def container(check, podman, env):
    """What compose.yaml asks for: nothing to write to but /state, no right, nobody in particular."""
    port = free_port()

    def run(*words):
        return subprocess.run([*map(str, podman), *words], env=env, capture_output=True, text=True)

    options = ["--network", "host", "--read-only", "--read-only-tmpfs=false", "--cap-drop", "all", "--security-opt", "no-new-privileges", "--pids-limit", "64", "--volume", "state:/state"]
    serve = ["serve", "--listen", f"127.0.0.1:{port}", "--state-dir", "/state", "--name", "sound", "--", "/stdiowatch", "sample-server", "sound"]
    begun = run("run", "-d", "--name", "watch", *options, "localhost/stdiowatch", *serve)
    wrong = begun.stderr if begun.returncode else until(60, lambda: status(f"http://127.0.0.1:{port}/health"))
    if check("image: without any right it watches", wrong and wrong + run("logs", "watch").stderr):
        main = run("inspect", "-f", "{{.State.Pid}}", "watch").stdout.strip()
        proc = dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{main}/status").read_text().splitlines() if ":\t" in line)
        got = (proc["Uid"].split()[0], proc["NSpid"].split()[-1], proc["CapEff"], proc["NoNewPrivs"])
        check.equal("image: it is 65532, PID 1, and may nothing", got, (NOBODY, "1", "0" * 16, "1"))
        check("image: what it accepted is kept in the volume", "" if metric(port, "stdiowatch_state_kept") == 1.0 and kept(run) else run("logs", "watch").stderr)
        check.equal("image: stdiowatch healthcheck in it", run("exec", "watch", "/stdiowatch", "healthcheck", f"http://127.0.0.1:{port}/livez").returncode, 0)
        check("image: it says how its health is checked", "" if "livez" in run("image", "inspect", "-f", "{{.HealthCheck.Test}}", "localhost/stdiowatch").stdout else "no HEALTHCHECK")
        run("stop", "-t", "20", "watch")
        check.equal("image: it ends with status 0", run("inspect", "-f", "{{.State.ExitCode}}", "watch").stdout.strip(), "0")


def kept(run):
    place = pathlib.Path(run("volume", "inspect", "-f", "{{.Mountpoint}}", "state").stdout.strip())
    return any(path.is_file() for path in place.rglob("*"))
