#!/usr/bin/env python3
"""The Helm chart and the kustomize folder: rendered by Helm 3 and 4 over the files of values/, held against Kubernetes
(kube.py) and against each other; values that have to be refused (refused.yaml). `everything` is called by run.py.

    tests/deploy/chart.py --write BINARY

renews what is a copy: the part of values.schema.json that comes from `stdiowatch config schema`, and the rules of
components/monitoring.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import kube
import yaml
from checks import REAL, TOP, Checks, tool

HERE = pathlib.Path(__file__).resolve().parent
CHART = TOP / "deploy/helm/stdiowatch"
KUSTOMIZE = TOP / "deploy/kubernetes"
HELMS = ("3", "4")
# What the files of values/ say to be there already.
ELSEWHERE = {
    "agent": ["Secret/agent-keys", "Secret/agent-token"],
    "alone": ["ServiceAccount/watcher"],
    "my-agent": ["Secret/my-agent-keys"],
    "everything": ["Secret/a", "Secret/b", "Secret/c", "Secret/d", "Secret/web", "PersistentVolumeClaim/data"],
}
# The grace of each: 5 s beside the slowest server's ladder, and the agent's time before a native sidecar's.
GRACE = {"default": 45, "agent": 60 + 32 + 5, "alone": 15, "plain": 30, "everything": 75}
SAME = {"default": [], "plain": ["plain"], "claim": ["state-claim"], "network": ["network-policy"], "monitoring": ["monitoring"]}


def everything(check, folder, binary):
    folder = folder / "kubernetes"
    folder.mkdir()
    rendered = {}
    for path in [None, *sorted((HERE / "values").glob("*.yaml"))]:
        name = path.stem if path else "default"
        by_helm = {number: chart(check, name, path, number, folder) for number in HELMS}
        check.equal(f"chart, {name}: both Helms render the same", by_helm["3"], by_helm["4"])
        things = rendered[name] = by_helm["4"]
        kube.manifests(check, f"chart, {name}", things, folder, ELSEWHERE.get(name, ()))
        configurations(check, name, things, folder, binary)
        if name in GRACE:
            check.equal(f"chart, {name}: the grace is the ladder's sum, and room", pods(things)[0]["terminationGracePeriodSeconds"], GRACE[name])
    kube.sabotage(check, rendered["monitoring"], folder)
    runbooks = [rule["annotations"].get("runbook_url", "https://wiki.example/") for rule in alerts(rendered["everything"])]
    check("chart, everything: runbooks are where they are served", "\n".join(url for url in runbooks if not url.startswith("https://wiki.example/")))
    reached(check, rendered)
    refused(check)
    packaged(check, folder)
    dependency(check, folder)
    same(check, rendered, folder)
    kube.schemas(check, folder)
    copies(check, binary)


def helm(number, *words):
    done = subprocess.run([REAL / f"helm/{number}/helm", *map(str, words)], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def documents(text):
    return [thing for thing in yaml.safe_load_all(text) if thing]


def chart(check, name, path, number, folder):
    values = ["-f", path] if path else []
    status, out, err = helm(number, "lint", "--strict", CHART, *values)
    check(f"chart, {name}: helm {number} lint --strict", (out + err) if status else "")
    status, out, err = helm(number, "template", "stdiowatch", CHART, *values)
    check(f"chart, {name}: helm {number} template", err if status else "")
    return documents(out)


def pods(things):
    """The pods that stdiowatch is in."""
    return [kube.pod_of(thing) for thing in things if thing["kind"] == "Deployment"]


def alerts(things):
    return [rule for thing in things if thing["kind"] == "PrometheusRule" for group in thing["spec"]["groups"] for rule in group["rules"] if "alert" in rule]


def configurations(check, name, things, folder, binary):
    for thing in things:
        for file, text in thing.get("data", {}).items() if thing["kind"] == "ConfigMap" else ():
            if file in ("stdiowatch.yaml", "mcp.json"):
                (folder / file).write_text(text)
                # The variables and files that it names are not here.
                tokens = folder / "token"
                tokens.write_text("x")
                (folder / file).write_text(text.replace("/run/keys/token", str(tokens)))
                tool(check, f"chart, {name}: stdiowatch reads the configuration", [binary, "config", "check", folder / file], env={**os.environ, "API_KEY": "x"})


def reached(check, rendered):
    """Who scrapes a sidecar with TLS and passwords can; and a policy leaves the agent's own ports open."""
    [[endpoint]] = [thing["spec"]["endpoints"] for thing in rendered["everything"] if thing["kind"] == "ServiceMonitor"]
    tls = {"ca": {"secret": {"name": "web", "key": "ca.crt"}}, "serverName": "watch", "insecureSkipVerify": True}
    check.equal("chart, everything: the monitor knows the authority and the Service's name", endpoint["tlsConfig"], tls)
    check.equal("chart, everything: the monitor has a user", endpoint["basicAuth"]["password"], {"name": "web-user", "key": "password"})
    [[ours, agents]] = [thing["spec"]["ingress"] for thing in rendered["agent"] if thing["kind"] == "NetworkPolicy"]
    check.equal("chart, agent: stdiowatch is for those of the policy", (ours["ports"][0]["port"], ours["from"]), (10779, [{"podSelector": {}}]))
    check.equal("chart, agent: the agent's port is for everybody", agents, {"ports": [{"port": 8080, "protocol": "TCP"}]})


def refused(check):
    for case in yaml.safe_load((HERE / "refused.yaml").read_text()):
        for number in HELMS:
            status, _, err = helm(number, "template", "x", CHART, "--set", case["set"], *(["--kube-version", case["kube"]] if "kube" in case else []))
            missing = [word for word in case["says"] if word not in err]
            check(f"refused by helm {number}: {case['set'] or case['kube']}", "it is not" if not status else f"{err}\ndoes not say {missing}" if missing else "")


def packaged(check, folder):
    """A packed chart holds what the links point to."""
    for number in HELMS:
        out = folder / f"packed-{number}"
        status, _, err = helm(number, "package", "-d", out, CHART)
        if not check(f"helm {number} package", err if status else ""):
            continue
        shutil.unpack_archive(next(out.glob("*.tgz")), out)
        for name, source in [("rules.yaml", TOP / "deploy/prometheus/rules.yaml"), *((f"dashboards/{p.name}", p) for p in (TOP / "dashboards").glob("*.json"))]:
            there = out / "stdiowatch/files" / name
            check(f"packed by helm {number}: {name} as it is", "" if there.is_file() and there.read_bytes() == source.read_bytes() else f"{there} is another")


def dependency(check, folder):
    """A chart that has the templates put into its own Deployment, as _sidecar.tpl says."""
    parent = folder / "parent"
    shutil.copytree(HERE / "parent", parent)
    for number, native in [(number, native) for number in HELMS for native in ("true", "false")]:
        shutil.rmtree(parent / "charts", ignore_errors=True)
        shutil.copytree(CHART, parent / "charts/stdiowatch")
        status, out, err = helm(number, "template", "mine", parent, "--set", f"stdiowatch.sidecar.native={native}")
        name = f"a chart that includes the templates, helm {number}, native {native}"
        if check(name, err if status else ""):
            kube.manifests(check, name, documents(out), folder)


def refuse_differences(check, name, one, other):
    """Says where two structures differ, not only that they do."""

    def walk(a, b, path):
        if isinstance(a, dict) and isinstance(b, dict):
            for key in sorted({*a, *b}, key=str):
                yield from walk(a.get(key, "(nothing)"), b.get(key, "(nothing)"), f"{path}.{key}")
        elif a != b:
            yield f"{path}: {a!r} and {b!r}"

    check(name, "\n".join(walk(one, other, "")))


def normal(things):
    """What matters: without Helm's own labels, namespaces and hooks, and with what has a name under its name."""
    found = {}
    for thing in json.loads(json.dumps(things)):
        meta = thing["metadata"]
        if "helm.sh/hook" in meta.get("annotations", {}):
            continue
        for key in ("helm.sh/chart", "app.kubernetes.io/managed-by", "app.kubernetes.io/version"):
            meta.get("labels", {}).pop(key, None)
        meta.pop("namespace", None)
        meta.pop("annotations", None)
        pod = kube.pod_of(thing)
        for key in ("containers", "initContainers") if pod else ():
            for container in pod[key]:
                container["volumeMounts"] = {mount["mountPath"]: mount for mount in container.get("volumeMounts", [])}
            # The order of init containers matters.
            pod[key] = dict(enumerate(pod[key])) if key == "initContainers" else {c["name"]: c for c in pod[key]}
        if pod:
            for volume in pod["volumes"]:
                # A file's mode may be said or left out; nothing else of a volume.
                volume.get("configMap", {}).pop("defaultMode", None)
            pod["volumes"] = {volume["name"]: volume for volume in pod["volumes"]}
        for rule in alerts([thing]):
            # kustomize adds line breaks, which PromQL does not mind.
            rule["expr"] = " ".join(rule["expr"].split())
        if thing["kind"] == "ConfigMap":
            thing["data"] = {name: yaml.safe_load(text) for name, text in thing["data"].items()}
        found[f"{thing['kind']} {meta['name']}"] = thing
    return found


def kustomized(check, name, place):
    done = subprocess.run([REAL / "helm/4/kubectl", "kustomize", place], capture_output=True, text=True)
    check(f"kustomize, {name}", done.stderr)
    return documents(done.stdout)


def same(check, rendered, folder):
    shutil.copytree(KUSTOMIZE, folder / "all")
    for name, components in SAME.items():
        place = folder / "all/overlays/tried"
        place.mkdir(exist_ok=True)
        (place / "kustomization.yaml").write_text(yaml.safe_dump({"resources": ["../../base"], "components": [f"../../components/{c}" for c in components]}))
        things = kustomized(check, name, place)
        kube.manifests(check, f"kustomize, {name}", things, folder)
        refuse_differences(check, f"kustomize and the chart come to the same: {name}", normal(things), normal(rendered[name]))
    things = kustomized(check, "my-agent", KUSTOMIZE / "overlays/my-agent")
    kube.manifests(check, "kustomize, my-agent", things, folder, ELSEWHERE["my-agent"])
    refuse_differences(check, "kustomize and the chart come to the same: the sidecar of my-agent", ours(things), ours(rendered["my-agent"]))
    patched(check, folder)


def patched(check, folder):
    """What docs/kubernetes.md says to add to a copy of the overlay."""
    place = folder / "all/overlays/copied"
    shutil.copytree(KUSTOMIZE / "overlays/my-agent", place)
    more = re.search(r"```yaml\n(# more of kustomization.yaml\n.*?)```", (TOP / "docs/kubernetes.md").read_text(), re.S)[1]
    whole = {**yaml.safe_load((place / "kustomization.yaml").read_text()), **yaml.safe_load(more)}
    (place / "kustomization.yaml").write_text(yaml.safe_dump(whole))
    things = kustomized(check, "my-agent, patched", place)
    kube.manifests(check, "kustomize, my-agent, patched", things, folder, ELSEWHERE["my-agent"])
    by_kind = {thing["kind"]: thing["spec"] for thing in things if "spec" in thing}
    check.equal("kustomize, my-agent, patched: pods are selected by their own labels", [by_kind["PodMonitor"]["selector"], by_kind["NetworkPolicy"]["podSelector"]], [by_kind["Deployment"]["selector"]] * 2)


def ours(things):
    """What stdiowatch adds to a pod."""
    [pod] = [kube.pod_of(thing) for thing in normal(things).values() if thing["kind"] == "Deployment"]
    volumes = {name: volume for name, volume in pod["volumes"].items() if name.startswith("stdiowatch")}
    return {"init": pod["initContainers"], "volumes": volumes, "grace": pod["terminationGracePeriodSeconds"], "images": {c["name"]: c["image"] for c in pod["containers"].values()}}


# --- copies -----------------------------------------------------------------------------------------------------------


def configuration_schema(binary):
    """The chart's copy of our configuration's schema, without what only editors need."""

    def bare(schema):
        if isinstance(schema, dict):
            return {key: {name: bare(s) for name, s in value.items()} if key == "properties" else bare(value) for key, value in schema.items() if key not in ("description", "default")}
        return [bare(item) for item in schema] if isinstance(schema, list) else schema

    whole = json.loads(subprocess.run([binary, "config", "schema"], capture_output=True, text=True, check=True).stdout)
    servers, defaults = (bare(whole["properties"][key]) for key in ("servers", "defaults"))
    one = servers["additionalProperties"]
    settings = one["properties"]
    links = {key: {"$ref": f"#/$defs/settings/properties/{key}"} for key in settings}
    one["properties"] = links
    assert {key: settings[key] for key in defaults["properties"]} == defaults["properties"], "a default is not a key of a server"
    defaults["properties"] = {key: links[key] for key in defaults["properties"]}
    # The chart says by itself when there is no server.
    servers.pop("minProperties", None)
    return servers, defaults, {"properties": settings}


def with_schema(binary):
    schema = json.loads((CHART / "values.schema.json").read_text())
    config = schema["properties"]["config"]["properties"]
    config["servers"], config["defaults"], schema["$defs"]["settings"] = configuration_schema(binary)
    return json.dumps(schema, indent=2) + "\n"


def rules():
    text = (TOP / "deploy/prometheus/rules.yaml").read_text()
    head = "# A copy of deploy/prometheus/rules.yaml, made by tests/deploy/chart.py --write.\n"
    labels = "  labels:\n    app.kubernetes.io/name: stdiowatch\n    app.kubernetes.io/instance: stdiowatch\n"
    whole = f"apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  name: stdiowatch\n{labels}spec:\n"
    return head + whole + "".join(f"  {line}\n" if line else "\n" for line in text.splitlines())


COPIED = KUSTOMIZE / "components/monitoring/rules.yaml"


def copies(check, binary):
    check.equal("the chart's schema of config is stdiowatch's (chart.py --write)", (CHART / "values.schema.json").read_text(), with_schema(binary))
    check.equal("components/monitoring has the rules (chart.py --write)", COPIED.read_text(), rules())
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())
    version = subprocess.run([binary, "--version"], capture_output=True, text=True).stdout.split()[1]
    check.equal("the chart's appVersion is the program's version", about["appVersion"], version)
    tags = {word.strip() for path in KUSTOMIZE.rglob("*.yaml") for line in path.read_text().splitlines() if "stdiowatch:" in line and "image:" in line for word in [line.split("stdiowatch:")[1]]}
    check.equal("kustomize has the image of this version", tags, {version})


def main():
    if sys.argv[1:2] == ["--write"]:
        (CHART / "values.schema.json").write_text(with_schema(sys.argv[2]))
        COPIED.write_text(rules())
        return 0
    check = Checks()
    with tempfile.TemporaryDirectory(prefix="stdiowatch-chart-") as folder:
        everything(check, pathlib.Path(folder), pathlib.Path(sys.argv[1]).resolve())
    return check.end()


if __name__ == "__main__":
    sys.exit(main())
