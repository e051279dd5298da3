#!/usr/bin/env python3
"""Checks deploy/ and dashboards/ by machine: run.py [OUT], where OUT keeps the static binary.

Dockerfile, Prometheus rules, systemd unit and Grafana dashboards against their own tools; then the static binary, built
from what the Dockerfile copies, in an empty root and in one with /proc, as a user without rights; the Helm chart and the
kustomize folder (chart.py), and a pod of the rendered chart (pod.py).
Needs root, tests/real/install.sh, and Debian's prometheus and systemd; install.sh, which it calls, installs the rest. Whether rules and dashboards mean something on a
live sidecar is for tests/real/monitoring.py.
"""

import contextlib
import json
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
import chart
import pod
from checks import TOP, Checks, free_port, tool, until

HERE = pathlib.Path(__file__).resolve().parent
DEPLOY = TOP / "deploy"
SIZE = 8 << 20  # bytes: the static binary
NOBODY = "65532"


def main():
    check = Checks()
    subprocess.run([HERE / "install.sh"], check=True)
    with tempfile.TemporaryDirectory(prefix="stdiowatch-deploy-") as folder:
        folder = pathlib.Path(folder)
        scripts(check)
        rules(check)
        dashboards(check, folder)
        unit(check, folder)
        binary = dockerfile(check, folder, pathlib.Path(sys.argv[1]) if sys.argv[1:] else folder / "static")
        if binary:
            for proc in (False, True):
                run_in_root(check, binary, folder, proc)
            chart.everything(check, folder, binary)
            pod.everything(check, folder, binary)
    return check.end()


def scripts(check):
    found = [TOP / ".ci/run", *TOP.glob("deploy/**/*.sh"), *TOP.glob("tests/real/*.sh"), HERE / "install.sh"]
    tool(check, "shellcheck has nothing to say", ["shellcheck", *found], silent=True)


def rules(check):
    folder = DEPLOY / "prometheus"
    tool(check, "rules.yaml: promtool check rules", ["promtool", "check", "rules", "--lint=all", "--lint-fatal", folder / "rules.yaml"])
    tool(check, "rules.test.yaml: promtool test rules", ["promtool", "test", "rules", "rules.test.yaml"], cwd=folder)
    alerts, tests = (set(re.findall(r"(?:- alert|alertname): (\w+)", (folder / name).read_text())) for name in ("rules.yaml", "rules.test.yaml"))
    check.equal("every alert has a test", alerts ^ tests, set())


def unit(check, folder):
    for path in sorted((DEPLOY / "systemd").glob("*.service")):
        # systemd-analyze wants the program to be there.
        copy = folder / path.name
        copy.write_text(path.read_text().replace("/usr/local/bin/stdiowatch", "/bin/true"))
        # It ends with 0 even where it does not know a key, but then it says so.
        tool(check, f"{path.name}: systemd-analyze verify", ["systemd-analyze", "verify", copy], silent=True)
        tool(check, f"{path.name}: exposure under 2.0", ["systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager", copy])


# --- dashboards -------------------------------------------------------------------------------------------------------


def dashboards(check, folder):
    """Grafana's types for the dashboard, its panels and their options; TypeScript reads the JSON against them."""
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, folder)
    if not tool(check, "Grafana's types are installed", ["npm", "ci", "--legacy-peer-deps", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=folder):
        return
    for path in sorted((TOP / "dashboards").glob("*.json")):
        board = json.loads(path.read_text())
        (folder / "dashboard.ts").write_text(typed(board))
        tool(check, f"{path.name}: has Grafana's types", ["node_modules/.bin/tsc", "--noEmit", "--strict", "--skipLibCheck", "--module", "esnext", "--moduleResolution", "bundler", "--target", "es2022", "dashboard.ts"], cwd=folder)
        ids = [panel["id"] for panel in board["panels"]]
        check.equal(f"{path.name}: panels have ids of their own", len(set(ids)), len(ids))
        check(f"{path.name}: panels do not overlap", overlap(board["panels"]))


def typed(board):
    # Enums are nominal in TypeScript: this turns them into what JSON has.
    lines = [
        "type Plain<T> = T extends string ? `${T}` : T extends number ? (number extends T ? T : `${T}` extends `${infer N extends number}` ? N : T)"
        " : T extends boolean | null | undefined ? T : T extends (infer U)[] ? Plain<U>[] : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;",
        "import type { Dashboard, Panel, RowPanel } from '@grafana/schema/dist/esm/raw/dashboard/x/Dashboard_types.gen';",
        f"export const board: Plain<Partial<Dashboard>> = {json.dumps({**board, 'panels': []})};",
    ]
    kinds = {panel["type"] for panel in board["panels"]} - {"row"}
    for kind in sorted(kinds):
        module = kind.replace("-", "")
        name = "".join(word.capitalize() for word in kind.split("-")).replace("Timeseries", "TimeSeries").replace("Bargauge", "BarGauge")
        lines.append(f"import type {{ Options as {name} }} from '@grafana/schema/dist/esm/raw/composable/{module}/panelcfg/x/{name}PanelCfg_types.gen';")
        lines += [f"export const options{p['id']}: Plain<Partial<{name}>> = {json.dumps(p['options'])};" for p in board["panels"] if p["type"] == kind]
    for panel in board["panels"]:
        lines.append(f"export const panel{panel['id']}: Plain<Partial<{'RowPanel' if panel['type'] == 'row' else 'Panel'}>> = {json.dumps(panel)};")
    return "\n".join(lines) + "\n"


def overlap(panels):
    taken = {}
    for panel in panels:
        at = panel["gridPos"]
        for cell in [(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])]:
            if cell[0] >= 24 or taken.setdefault(cell, panel["id"]) != panel["id"]:
                return f"panel {panel['id']} ({panel['title']}) at {cell}"
    return ""


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
