"""What has to hold of Kubernetes manifests, wherever they come from: the schemas of several versions, the Prometheus
operator's types, the Pod Security Standard "restricted", and that they agree with themselves."""

import copy
import subprocess

import yaml

from checks import REAL, tool

KUBERNETES = ("1.29", "1.33", "1.37")  # the first with native sidecars, one between, the newest
OPERATOR = "monitoring.coreos.com/v1"
SCHEMAS = "schemas"  # the folder of what waits for kubernetes-validate
BINARY = "/opt/stdiowatch"  # where the sidecar finds it


def manifests(check, name, things, folder, elsewhere=()):
    """Checks `things`, the documents of one rendering; `elsewhere` are objects, as Kind/name, that it may expect.
    `schemas` does the rest, for all at once."""
    path = folder / SCHEMAS / f"{name.replace(' ', '-').replace(',', '')}.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump_all([thing for thing in things if thing["apiVersion"] != OPERATOR]))
    operated = [thing for thing in things if thing["apiVersion"] == OPERATOR]
    if operated:
        check(f"{name}: the operator knows every field of {', '.join(thing['kind'] for thing in operated)}", unknown(operated, folder))
    check(f"{name} is restricted", "\n".join(wrong for thing in things for wrong in unrestricted(thing)))
    check(f"{name} agrees with itself", "\n".join(contradictions(things, set(elsewhere))))


def schemas(check, folder):
    found = sorted((folder / SCHEMAS).glob("*.yaml"))
    for version in KUBERNETES:
        tool(check, f"kubernetes-validate {version}, of {len(found)} renderings", ["kubernetes-validate", "--quiet", "--strict", "-k", version, *found])


def unknown(things, folder):
    path = folder / "operated.yaml"
    path.write_text(yaml.safe_dump_all(things))
    done = subprocess.run([REAL / "venv/crds/bin/python", __file__.replace("kube.py", "crds.py"), path], capture_output=True, text=True)
    return done.stdout + done.stderr


def pod_of(thing):
    return {"Pod": lambda: thing["spec"], "Deployment": lambda: thing["spec"]["template"]["spec"]}.get(thing["kind"], dict)()


def containers(pod):
    return pod.get("initContainers", []) + pod["containers"]


def unrestricted(thing):
    """What the Pod Security Standard "restricted" forbids, and a root that can be written to."""
    pod = pod_of(thing)
    if not pod:
        return
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


# --- agreement --------------------------------------------------------------------------------------------------------


def contradictions(things, elsewhere=frozenset()):
    there = {f"{thing['kind']}/{thing['metadata']['name']}" for thing in things} | elsewhere | {"ServiceAccount/default"}
    if len({(thing["kind"], thing["metadata"]["name"]) for thing in things}) < len(things):
        yield "an object stands there twice"
    for thing in things:
        pod = pod_of(thing)
        if pod:
            yield from of_pod(pod)
            yield from (f"there is no {name}" for name in needed(pod) if name not in there)
    watched = [thing for thing in things if thing["kind"] == "Deployment" and any(is_ours(c) for c in containers(pod_of(thing)))]
    for deployment in watched:
        yield from of_selectors(things, deployment)
        yield from of_configuration(things, pod_of(deployment))
    services = [thing for thing in things if thing["kind"] == "Service"]
    for monitor in (thing for thing in things if thing["kind"] == "ServiceMonitor"):
        chosen = [s for s in services if within(monitor["spec"]["selector"]["matchLabels"], s["metadata"]["labels"])]
        names = {port["name"] for service in chosen for port in service["spec"]["ports"]}
        yield from (f"ServiceMonitor: no Service has a port {e['port']}" for e in monitor["spec"]["endpoints"] if e["port"] not in names)


def is_ours(container):
    return container["name"] == "stdiowatch"


def within(labels, others):
    return bool(labels) and labels.items() <= others.items()


def of_pod(pod):
    volumes, mounted = {volume["name"] for volume in pod.get("volumes", [])}, set()
    names = [container["name"] for container in containers(pod)]
    if len(set(names)) < len(names):
        yield f"two containers have one name: {names}"
    for container in containers(pod):
        name, mounts = container["name"], container.get("volumeMounts", [])
        mounted |= {mount["name"] for mount in mounts}
        yield from (f"{name}: no volume {mount['name']}" for mount in mounts if mount["name"] not in volumes)
        places = [mount["mountPath"] for mount in mounts]
        if len(set(places)) < len(places):
            yield f"{name}: two mounts in one place: {places}"
        variables = [variable["name"] for variable in container.get("env", [])]
        if len(set(variables)) < len(variables):
            yield f"{name}: a variable stands there twice: {variables}"
        ports = {port["name"]: port["containerPort"] for port in container.get("ports", [])}
        probes = {kind: container[kind]["httpGet"] for kind in ("livenessProbe", "readinessProbe", "startupProbe") if kind in container}
        yield from (f"{name}: no port {probe['port']}" for probe in probes.values() if probe["port"] not in ports)
        if is_ours(container):
            yield from of_sidecar(pod, container, ports, probes)
    yield from (f"nobody mounts {volume}" for volume in sorted(volumes - mounted))


def of_sidecar(pod, container, ports, probes):
    words = container["command"] + container["args"]
    # /health is about the servers: a kubelet that acts on it restarts what is not broken.
    right = {"livenessProbe": "/livez", "readinessProbe": "/readyz"}
    if not probes or any(right.get(kind) != probe["path"] for kind, probe in probes.items()):
        yield "the sidecar's probes have to ask /livez and /readyz, and nothing else"
    if words[words.index("--listen") + 1] not in (f":{port}" for port in ports.values()):
        yield f"the sidecar listens on {words[words.index('--listen') + 1]}, and its ports are {ports}"
    if ("--web-config" in words) < any(probe["scheme"] == "HTTPS" for probe in probes.values()):
        yield "the sidecar is asked over TLS, and has none"
    for option in ("--state-dir", "--config", "--web-config"):
        place = words[words.index(option) + 1] if option in words else None
        if place and not any(place == m["mountPath"] or place.startswith(m["mountPath"] + "/") for m in container["volumeMounts"]):
            yield f"the sidecar has nothing mounted for {option} {place}"
    # An init container that runs before has put the binary into the volume from which it is executed.
    before = [other["name"] for other in pod["initContainers"]]
    if container in pod["initContainers"]:
        before = before[: before.index("stdiowatch")]
        if container.get("restartPolicy") != "Always":
            yield "the sidecar is an init container that has to end"
    copier = next((other for other in pod["initContainers"] if other["name"] in before and other.get("args", [])[:1] == ["copy-self"]), None)
    if not copier or copier["args"][1] != BINARY or container["command"] != [f"{BINARY}/stdiowatch"]:
        yield f"nobody has copied the binary to where {container['command']} is, before"
    elif len({mount["name"] for c in (copier, container) for mount in c["volumeMounts"] if mount["mountPath"] == BINARY}) != 1:
        yield "the binary is copied into another volume"


def needed(pod):
    """The objects that a pod expects."""
    yield f"ServiceAccount/{pod.get('serviceAccountName', 'default')}"
    for volume in pod.get("volumes", []):
        for kind, key, name in (("configMap", "name", "ConfigMap"), ("secret", "secretName", "Secret"), ("persistentVolumeClaim", "claimName", "PersistentVolumeClaim")):
            if kind in volume:
                yield f"{name}/{volume[kind][key]}"
    for container in containers(pod):
        for source in container.get("envFrom", []):
            yield from (f"{name}/{source[kind]['name']}" for kind, name in (("secretRef", "Secret"), ("configMapRef", "ConfigMap")) if kind in source)


def of_selectors(things, deployment):
    """Whatever selects pods selects this one, and finds the port there."""
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    ours = next(container for container in containers(pod_of(deployment)) if is_ours(container))
    ports = {port["name"]: port["containerPort"] for port in ours["ports"]}
    all_ports = {port["containerPort"] for container in containers(pod_of(deployment)) for port in container.get("ports", [])}
    for thing in [deployment, *(thing for thing in things if thing["kind"] in ("Service", "PodMonitor", "NetworkPolicy", "PodDisruptionBudget"))]:
        kind, spec = thing["kind"], thing["spec"]
        selector = spec.get("podSelector", spec.get("selector", {}))
        if not within(selector.get("matchLabels", selector), labels):
            yield f"{kind} selects {selector}, and the pod has {labels}"
        if kind == "Service":
            yield from (f"Service: {port['targetPort']} is no port of stdiowatch" for port in spec["ports"] if port["targetPort"] not in ports.values())
        if kind == "PodMonitor":
            yield from (f"PodMonitor: {e['port']} is no port of stdiowatch" for e in spec["podMetricsEndpoints"] if e["port"] not in ports)
        if kind == "NetworkPolicy" and not any(port["port"] in ports.values() for rule in spec["ingress"] for port in rule.get("ports", [])):
            yield f"NetworkPolicy: nobody may reach {ports}, of {all_ports}"


def of_configuration(things, pod):
    """The file of --config is in the ConfigMap that is mounted there."""
    ours = next(container for container in containers(pod) if is_ours(container))
    folder, _, name = ours["args"][ours["args"].index("--config") + 1].rpartition("/")
    volume = next((mount["name"] for mount in ours["volumeMounts"] if mount["mountPath"] == folder), None)
    maps = {v["name"]: v["configMap"]["name"] for v in pod["volumes"] if "configMap" in v}
    for thing in things:
        if thing["kind"] == "ConfigMap" and thing["metadata"]["name"] == maps.get(volume) and name not in thing["data"]:
            yield f"ConfigMap {maps[volume]} has no {name}, but {sorted(thing['data'])}"
    if volume not in maps:
        yield f"no ConfigMap is mounted at {folder}"


# --- what these checks are worth --------------------------------------------------------------------------------------


def sabotage(check, things, folder):
    """Breaks a sound rendering (native, with a PodMonitor and a Service) in ways that have to be noticed."""

    def broken(change):
        copied = copy.deepcopy(things)
        deployment = next(thing for thing in copied if thing["kind"] == "Deployment")
        pod = pod_of(deployment)
        change({thing["kind"]: thing for thing in copied}, pod, next(c for c in containers(pod) if is_ours(c)))
        return "\n".join([*(wrong for thing in copied for wrong in unrestricted(thing)), *contradictions(copied)])

    for name, change in {
        "another name of the port": lambda all, pod, ours: ours["ports"][0].update(name="metrics"),
        "another port of the monitor": lambda all, pod, ours: all["PodMonitor"]["spec"]["podMetricsEndpoints"][0].update(port="http"),
        "another port of the Service": lambda all, pod, ours: all["Service"]["spec"]["ports"][0].update(targetPort=1),
        "another label of the pod": lambda all, pod, ours: all["Deployment"]["spec"]["template"]["metadata"]["labels"].update({"app.kubernetes.io/name": "x"}),
        "no drop: [ALL]": lambda all, pod, ours: ours["securityContext"].update(capabilities={}),
        "a root that can be written to": lambda all, pod, ours: ours["securityContext"].update(readOnlyRootFilesystem=False),
        "a probe of /health": lambda all, pod, ours: ours["readinessProbe"]["httpGet"].update(path="/health"),
        "the sidecar before its binary": lambda all, pod, ours: pod["initContainers"].reverse(),
        "no state mounted": lambda all, pod, ours: ours["volumeMounts"].pop(2),
        "another ConfigMap": lambda all, pod, ours: all["ConfigMap"]["metadata"].update(name="x"),
    }.items():
        check(f"noticed: {name}", "" if broken(change) else "it is not")
    misspelt = copy.deepcopy([thing for thing in things if thing["kind"] == "Deployment"])
    pod_of(misspelt[0])["terminationGraceSeconds"] = 45
    path = folder / "misspelt.yaml"
    path.write_text(yaml.safe_dump_all(misspelt))
    done = subprocess.run(["kubernetes-validate", "--strict", "-k", KUBERNETES[0], path], capture_output=True, text=True)
    check("noticed: a field that Kubernetes does not know", "" if "terminationGraceSeconds" in done.stdout + done.stderr and done.returncode else done.stdout + done.stderr + "it is not")
    monitors = [copy.deepcopy(thing) for thing in things if thing["kind"] == "PodMonitor"]
    monitors[0]["spec"]["podMetricsEndpoints"][0]["schema"] = "http"
    check("noticed: a field that the operator does not know", "" if unknown(monitors, folder) else "it is not")
