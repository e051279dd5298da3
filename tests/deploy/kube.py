"""Kubernetes manifests: against the schemas of several versions, the Pod Security Standard "restricted", and themselves."""

from checks import TOP, tool

DEPLOY = TOP / "deploy"
KUBERNETES = ("1.29", "1.33", "1.37")  # the first with native sidecars, one between, the newest


def everything(check):
    for manifest in sorted((DEPLOY / "kubernetes").glob("*.yaml")):
        kubernetes(check, manifest)


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
