"""deploy/Dockerfile; and the static binary, built from what that copies, where there is nothing else."""

import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess

from common import DEPLOY, NOBODY, TOP, status, tool
from checks import free_port, until

SIZE = 9 << 20  # bytes: the static binary; TLS has 1.3 MiB of it


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
            os.kill(int(own), signal.SIGTERM)
            check.equal(f"{where}: SIGTERM ends it with status 0", program.wait(15), 0)
    except subprocess.TimeoutExpired:
        check(f"{where}: SIGTERM ends it with status 0", "it still runs")
    finally:
        program.kill()
        program.wait()
