"""deploy/compose: its file against the specification and against what it says of itself; then what it sets up, run here.

There is no registry to have the images from. So the very configurations run with this machine's own Prometheus and
Alertmanager and the static binary, in which only addresses and places are others: `service:port` and mounted paths.
"""

import contextlib
import json
import pathlib
import re
import subprocess
import urllib.error
import urllib.request

from checks import free_port, until
from common import DEPLOY, tool

FOLDER = DEPLOY / "compose"
LONG = 60  # seconds


def everything(check, folder, binary):
    import yaml

    folder = folder / "compose"
    folder.mkdir()
    path = FOLDER / "compose.yaml"
    tool(check, "compose.yaml: has the specification's keys", ["check-jsonschema", "--builtin-schema", "vendor.compose-spec", path])
    compose = yaml.safe_load(path.read_text())
    for name, service in compose["services"].items():
        check(f"compose.yaml: {name} may no more than it needs", "\n".join(lax(service)))
        check(f"compose.yaml: what {name} mounts is there", "\n".join(missing(service, compose["volumes"])))
    check.equal("compose.yaml: every volume is used", set(compose["volumes"]), {v.split(":")[0] for s in compose["services"].values() for v in s["volumes"] if v[0] not in "./"})
    check("compose.yaml: Grafana finds its data and its dashboards", "\n".join(grafana(compose, yaml)))
    page = re.search(r"```yaml\n(inhibit_rules:.*?)```", (DEPLOY.parent / "docs/alerts.md").read_text(), re.S)[1]
    check.equal("alertmanager.yml: inhibits what docs/alerts.md says", yaml.safe_load((FOLDER / "alertmanager.yml").read_text())["inhibit_rules"], yaml.safe_load(page)["inhibit_rules"])
    with contextlib.ExitStack() as ends:
        live(check, folder, binary, compose, ends)


def lax(service):
    """What a service may that it need not."""
    right = {"read_only": True, "cap_drop": ["ALL"], "security_opt": ["no-new-privileges:true"]}
    yield from (f"{key} is {service.get(key)}" for key, value in right.items() if service.get(key) != value)
    yield from (f"{key} is set" for key in ("privileged", "cap_add", "network_mode", "pid", "user", "devices") if key in service)
    yield from (f"port {port} is open to others" for port in service["ports"] if not port.startswith("127.0.0.1:"))
    if not re.search(r":v?\d+\.\d+\.\d+$", service["image"]):
        yield f"{service['image']} is not pinned"
    if not service.get("healthcheck", {}).get("test"):
        yield "no healthcheck"


def missing(service, volumes):
    for source, _, *mode in (volume.split(":") for volume in service["volumes"]):
        if source.startswith("."):
            if not (FOLDER / source).exists():
                yield f"{source} is not there"
            if mode != ["ro"]:
                yield f"{source} can be written to"
        elif source not in volumes:
            yield f"no volume {source}"


def grafana(compose, yaml):
    mounts = {target: source for source, target, *_ in (volume.split(":") for volume in compose["services"]["grafana"]["volumes"])}
    source = yaml.safe_load((FOLDER / mounts["/etc/grafana/provisioning/datasources"] / "prometheus.yaml").read_text())["datasources"][0]
    if source["type"] != "prometheus" or source["url"] != "http://prometheus:9090" or not source["isDefault"]:
        yield f"the data source is {source}"
    provider = yaml.safe_load((FOLDER / mounts["/etc/grafana/provisioning/dashboards"] / "stdiowatch.yaml").read_text())["providers"][0]
    place = mounts.get(provider["options"]["path"])
    if not place or not list((FOLDER / place).glob("*.json")):
        yield f"no dashboard in {provider['options']['path']}"


# --- run --------------------------------------------------------------------------------------------------------------


def live(check, folder, binary, compose, ends):
    ports = {name: free_port() for name in ("stdiowatch", "prometheus", "alertmanager")}
    mounts = {target: (name, source) for name in ports for source, target, *_ in (volume.split(":") for volume in compose["services"][name]["volumes"])}
    places = {target: folder / name / pathlib.Path(target).name for target, (name, _) in mounts.items()}
    for target, (_, source) in mounts.items():
        places[target].parent.mkdir(exist_ok=True)
        if source.startswith("."):
            places[target].write_text(moved((FOLDER / source).read_text(), ports, {**places, "/stdiowatch": binary}))
    config = places["/etc/prometheus/prometheus.yml"]
    tool(check, "prometheus.yml: promtool check config, with its rules", ["promtool", "check", "config", config])
    tool(check, "alertmanager.yml: amtool check-config", ["amtool", "check-config", places["/etc/alertmanager/alertmanager.yml"]])

    programs = {"stdiowatch": binary, "prometheus": "prometheus", "alertmanager": "prometheus-alertmanager"}
    for name, program in programs.items():
        words = [moved(word, ports, places) for word in compose["services"][name]["command"]]
        # In its own container each has the port to itself.
        words += [] if name == "stdiowatch" else [f"--web.listen-address=127.0.0.1:{ports[name]}"]
        with open(folder / f"{name}.log", "wb") as log:
            running = subprocess.Popen([str(program), *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        ends.callback(running.wait)
        ends.callback(running.terminate)
    for name, test in health(compose, ports).items():
        check(f"compose: {name} is healthy, as its healthcheck asks", until(LONG, lambda test=test: "" if ask(test)[0] == 200 else f"{test}: {ask(test)}"))

    base = f"http://127.0.0.1:{ports['prometheus']}/api/v1"
    check("compose: every target is up", until(LONG, lambda: targets(base, {"stdiowatch", "prometheus", "alertmanager"})))
    alerts = {rule["name"] for group in answer(f"{base}/rules")["groups"] for rule in group["rules"] if rule["type"] == "alerting"}
    check.equal("compose: the alerts are loaded", alerts, set(re.findall(r"- alert: (\w+)", (DEPLOY / "prometheus/rules.yaml").read_text())))
    check("compose: Prometheus knows Alertmanager", until(LONG, lambda: "" if answer(f"{base}/alertmanagers")["activeAlertmanagers"] else "none"))
    up = until(LONG, lambda: "" if verdicts(base) == {"sound": "1", "banner": "0"} else f"{verdicts(base)}")
    check("compose: Prometheus sees the one sample up and the other down", up)


def moved(text, ports, places):
    """The same, with other addresses and places."""
    for name, port in ports.items():
        text = re.sub(rf"\b{name}:\d+\b", f"127.0.0.1:{port}", text)
    text = re.sub(r"\blocalhost:9090\b", f"127.0.0.1:{ports['prometheus']}", text).replace("0.0.0.0:10779", f"127.0.0.1:{ports['stdiowatch']}")
    for target in sorted(places, key=len, reverse=True):
        text = re.sub(rf"(?<![\w./]){re.escape(target)}(?![\w./-])", str(places[target]), text)
    return text


def health(compose, ports):
    """The URL that each healthcheck asks, here."""
    urls = {name: compose["services"][name]["healthcheck"]["test"][-1] for name in ports}
    return {name: re.sub(r":\d+/", f":{ports[name]}/", url) for name, url in urls.items()}


def ask(url):
    try:
        with urllib.request.urlopen(url, timeout=5) as got:
            return got.status, got.read().decode()
    except (urllib.error.HTTPError, OSError) as error:
        return 0, str(error)


def answer(url):
    return json.loads(ask(url)[1])["data"]


def targets(base, wanted):
    found = {target["labels"]["job"]: target["health"] for target in answer(f"{base}/targets")["activeTargets"]}
    return "" if found == {job: "up" for job in wanted} else f"{found}"


def verdicts(base):
    return {series["metric"]["server"]: series["value"][1] for series in answer(f"{base}/query?query=stdiowatch_up")["result"]}
