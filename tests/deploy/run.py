#!/usr/bin/env python3
"""Checks deploy/ and dashboards/ by machine: run.py [OUT], where OUT keeps the static binary.

Dockerfile, Kubernetes manifests, Prometheus rules, systemd unit and Grafana dashboards against their own tools; then the
static binary, built from what the Dockerfile copies, in an empty root and in one with /proc, as a user without rights.
Needs root, tests/real/install.sh, and Debian's prometheus and systemd. Whether rules and dashboards mean something on a
live sidecar is for tests/real/monitoring.py.
"""

import contextlib
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import dashboards
import rules
from checks import TOP, Checks, free_port, tool, until

HERE = pathlib.Path(__file__).resolve().parent
DEPLOY = TOP / "deploy"
KUBERNETES = ("1.29", "1.33", "1.37")  # the first with native sidecars, one between, the newest
SIZE = 8 << 20  # bytes: the static binary
NOBODY = "65532"


def main():
    check = Checks()
    with tempfile.TemporaryDirectory(prefix="stdiowatch-deploy-") as folder:
        folder = pathlib.Path(folder)
        scripts(check)
        rules.check_all(check, folder)
        dashboards.check_all(check, folder)
        unit(check, folder)
        for manifest in sorted((DEPLOY / "kubernetes").glob("*.yaml")):
            kubernetes(check, manifest)
        binary = dockerfile(check, folder, pathlib.Path(sys.argv[1]) if sys.argv[1:] else folder / "static")
        if binary:
            for proc in (False, True):
                run_in_root(check, binary, folder, proc)
    return check.end()


def scripts(check):
    found = [TOP / ".ci/run", *TOP.glob("deploy/**/*.sh"), *TOP.glob("tests/real/*.sh")]
    tool(check, "shellcheck has nothing to say", ["shellcheck", *found], silent=True)


def unit(check, folder):
    for path in sorted((DEPLOY / "systemd").glob("*.service")):
        # systemd-analyze wants the program to be there.
        copy = folder / path.name
        copy.write_text(path.read_text().replace("/usr/local/bin/stdiowatch", "/bin/true"))
        # It ends with 0 even where it does not know a key, but then it says so.
        tool(check, f"{path.name}: systemd-analyze verify", ["systemd-analyze", "verify", copy], silent=True)
        tool(check, f"{path.name}: exposure under 2.0", ["systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager", copy])


# --- Kubernetes -------------------------------------------------------------------------------------------------------


def kubernetes(check, path):
    import yaml

    for version in KUBERNETES:
        tool(check, f"{path.name}: kubernetes-validate {version}", ["kubernetes-validate", "--strict", "-k", version, path])
    for thing in yaml.safe_load_all(path.read_text()):
        pod = thing["spec"] if thing["kind"] == "Pod" else thing["spec"]["template"]["spec"]
        name = f"{path.name}: {thing['kind']} {thing['metadata']['name']}"
        check(f"{name} is restricted", "\n".join(unrestricted(pod)))
        check(f"{name} agrees with itself", "\n".join(contradictions(pod)))


def containers(pod):
    return pod.get("initContainers", []) + pod["containers"]


def unrestricted(pod):
    """What the Pod Security Standard "restricted" forbids, and a root that can be written to."""
    yield from (key for key in ("hostNetwork", "hostPID", "hostIPC") if pod.get(key))
    allowed = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
    yield from (f"volume {volume['name']}" for volume in pod.get("volumes", []) if not set(volume) - {"name"} <= allowed)
    if pod.get("automountServiceAccountToken") is not False:
        yield "a service account's token"
    for container in containers(pod):
        own = container.get("securityContext", {})
        both = {**pod.get("securityContext", {}), **own}
        bad = {
            "allowPrivilegeEscalation": own.get("allowPrivilegeEscalation") is not False,
            "privileged": own.get("privileged", False),
            "capabilities": own.get("capabilities") != {"drop": ["ALL"]},
            "runAsNonRoot": both.get("runAsNonRoot") is not True,
            "runAsUser": both.get("runAsUser", 0) == 0,
            "seccompProfile": both.get("seccompProfile", {}).get("type") not in ("RuntimeDefault", "Localhost"),
            "readOnlyRootFilesystem": own.get("readOnlyRootFilesystem") is not True,
            "hostPort": any("hostPort" in port for port in container.get("ports", [])),
        }
        yield from (f"{container['name']}: {what}" for what, is_bad in bad.items() if is_bad)


def contradictions(pod):
    volumes = {volume["name"] for volume in pod.get("volumes", [])}
    for container in containers(pod):
        name, words = container["name"], container.get("command", []) + container.get("args", [])
        yield from (f"{name}: no volume {mount['name']}" for mount in container.get("volumeMounts", []) if mount["name"] not in volumes)
        ports = {port["name"]: port["containerPort"] for port in container.get("ports", [])}
        probes = [container[kind]["httpGet"] for kind in ("livenessProbe", "readinessProbe", "startupProbe") if kind in container]
        yield from (f"{name}: no port {probe['port']}" for probe in probes if probe["port"] not in ports)
        if "stdiowatch" not in " ".join(words[:1]):
            continue
        # /health is about the servers: a kubelet that acts on it restarts what is not broken.
        if {probe["path"] for probe in probes} != {"/livez", "/readyz"}:
            yield f"{name}: probes have to ask /livez and /readyz, and nothing else"
        listen = words[words.index("--listen") + 1] if "--listen" in words else "127.0.0.1:10779"
        if listen not in (f"0.0.0.0:{port}" for port in ports.values()):
            yield f"{name}: listens on {listen}, and its ports are {ports}"


# --- the static binary ------------------------------------------------------------------------------------------------


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


def status(url):
    with contextlib.suppress(urllib.error.HTTPError, OSError), urllib.request.urlopen(url, timeout=5):
        return ""
    return f"{url} does not answer with 200"


if __name__ == "__main__":
    sys.exit(main())
