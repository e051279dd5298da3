#!/usr/bin/env python3
"""Checks deploy/ and dashboards/ by machine: run.py [OUT], where OUT keeps the static binary.

Dockerfile, Kubernetes manifests, Prometheus rules, systemd unit and Grafana dashboards against their own tools; then the
static binary, built from what the Dockerfile copies, in an empty root and in one with /proc, as a user without rights.
Needs root, tests/real/install.sh, and Debian's prometheus and systemd. Whether rules and dashboards mean something on a
live sidecar is for tests/real/monitoring.py.
"""

import json
import pathlib
import re
import shutil
import sys
import tempfile

import image
import unit
from common import DEPLOY, TOP, tool
from checks import Checks

HERE = pathlib.Path(__file__).resolve().parent
KUBERNETES = ("1.29", "1.33", "1.37")  # the first with native sidecars, one between, the newest


def main():
    check = Checks()
    with tempfile.TemporaryDirectory(prefix="stdiowatch-deploy-") as folder:
        folder = pathlib.Path(folder)
        scripts(check)
        rules(check)
        dashboards(check, folder)
        unit.unit(check, folder)
        for manifest in sorted((DEPLOY / "kubernetes").glob("*.yaml")):
            kubernetes(check, manifest)
        binary = image.dockerfile(check, folder, pathlib.Path(sys.argv[1]) if sys.argv[1:] else folder / "static")
        if binary:
            for proc in (False, True):
                image.run_in_root(check, binary, folder, proc)
    return check.end()


def scripts(check):
    found = [TOP / ".ci/run", *TOP.glob("deploy/**/*.sh"), *TOP.glob("tests/real/*.sh")]
    tool(check, "shellcheck has nothing to say", ["shellcheck", *found], silent=True)


def rules(check):
    folder = DEPLOY / "prometheus"
    tool(check, "rules.yaml: promtool check rules", ["promtool", "check", "rules", "--lint=all", "--lint-fatal", folder / "rules.yaml"])
    tool(check, "rules.test.yaml: promtool test rules", ["promtool", "test", "rules", "rules.test.yaml"], cwd=folder)
    alerts, tests = (set(re.findall(r"(?:- alert|alertname): (\w+)", (folder / name).read_text())) for name in ("rules.yaml", "rules.test.yaml"))
    check.equal("every alert has a test", alerts ^ tests, set())


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


if __name__ == "__main__":
    sys.exit(main())
