"""The pod of the rendered chart in podman, for pod.py. podman has no native sidecars, so that one becomes a plain container.
Images and volumes are in a folder of their own."""

import contextlib
import os
import pathlib
import shutil
import subprocess

import chart
import kube
import yaml
from checks import CONTAINERS_CONF, free_port, tool

USER = "65532"
AGENT = 30  # seconds: agent.terminationGraceSeconds
DEAF = 12  # seconds: what it takes to end the deaf server

NOTES = {"command": "/bin/notes-server", "interval": "1s"}
# Breaks when there is a file: then it prints a banner where only messages may be.
SERVER = """#!/bin/sh
if [ -e /data/broken ]; then echo "Notes server, ready."; fi
exec /bin/sample sample-server sound
"""


class Pod:
    """The pod of the rendered chart, in a store of its own."""

    def __init__(self, check, folder, binary, ends):
        self.check, self.folder, self.port = check, folder, free_port()
        (folder / "containers.conf").write_text(CONTAINERS_CONF)
        self.env = {**os.environ, "CONTAINERS_CONF": str(folder / "containers.conf")}
        self.store = ["--root", folder / "store", "--runroot", folder / "run", "--storage-driver", "vfs"]
        ends.callback(self.remove)
        self.image("stdiowatch:0.1.0", {"stdiowatch": binary})
        self.image("notes:1", {"bin/busybox": shutil.which("busybox"), "bin/sample": binary, "bin/notes-server": SERVER})
        # The second one, which hears neither the end of its input nor SIGTERM, needs all of the grace.
        deaf = {"command": "/bin/sample", "args": ["sample-server", "ignore-sigterm"], "interval": "1s", "shutdown": {"eof": f"{DEAF // 2}s", "term": f"{DEAF // 2}s"}}
        self.manifest = self.render({"config": {"servers": {"notes": NOTES, "deaf": deaf}}})
        check.equal("pod: the grace is the slowest server's ladder, and room", self.grace, DEAF + 5)

    def podman(self, *words, **how):
        return subprocess.run(["podman", *map(str, [*self.store, "--tmpdir", self.folder / "tmp", *words])], env=self.env, capture_output=True, text=True, **how)

    def image(self, name, files):
        place = self.folder / "image"
        for path, content in files.items():
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, str) and content.startswith("#!"):
                (place / path).write_text(content)
            else:
                shutil.copy(content, place / path)
            (place / path).chmod(0o755)
        if (place / "bin/busybox").exists():
            for applet in ("sh", "sleep", "touch", "rm"):
                (place / "bin" / applet).symlink_to("busybox")
        (place / "Containerfile").write_text("FROM scratch\nCOPY . /\n")
        build = ["buildah", *self.store, "bud", "--isolation", "chroot", "-q", "-t", f"localhost/{name}", place]
        tool(self.check, f"pod: the image {name} is built", build, env=self.env)
        shutil.rmtree(place)

    def render(self, more, secrets=None):
        """The chart's objects that podman takes, with the native sidecar as a plain container, and `secrets`, files by
        their names, as ConfigMaps."""
        image = {"tag": "1", "pullPolicy": "Never", "repository": "localhost/notes"}
        idle = "trap 'exit 0' TERM; while :; do sleep 1 & wait; done"
        data = {"name": "data", "mountPath": "/data"}
        values = {
            "image": {"repository": "localhost/stdiowatch", "pullPolicy": "Never"},
            "agent": {"image": image, "container": {"command": ["/bin/sh", "-c", idle], "volumeMounts": [data]}},
            "sidecar": {"port": self.port},
            "extraVolumes": [{"name": "data", "emptyDir": {}}],
            "extraVolumeMounts": [data],
            **more,
        }
        path = self.folder / "values.yaml"
        path.write_text(yaml.safe_dump(values))
        status, out, err = chart.helm("4", "template", "watched", chart.CHART, "-f", path)
        self.check("pod: the chart is rendered", err if status else "")
        things = {thing["kind"]: thing for thing in chart.documents(out)}
        spec = kube.pod_of(things["Deployment"])
        self.sidecar = next(container for container in spec["initContainers"] if kube.is_ours(container))
        self.healthcheck = things["Pod"]["spec"]["containers"][0]["args"]
        # What a native sidecar has of it, once the agent has taken its own.
        self.grace = spec["terminationGracePeriodSeconds"] - AGENT
        # On the host's network podman publishes no port, and will not be told of one.
        plain = {key: value for key, value in self.sidecar.items() if key not in ("restartPolicy", "ports")}
        spec["initContainers"].remove(self.sidecar)
        spec["containers"].append(plain)
        # podman would start it again, and Kubernetes would not while the pod ends.
        spec["restartPolicy"] = "Never"
        for volume in spec["volumes"]:
            if "secret" in volume:
                volume["configMap"] = {"name": volume.pop("secret")["secretName"]}
        maps = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": files} for name, files in (secrets or {}).items()]
        meta = {"name": "watched", "labels": things["Deployment"]["spec"]["template"]["metadata"]["labels"]}
        manifest = self.folder / "pod.yaml"
        manifest.write_text(yaml.safe_dump_all([things["ConfigMap"], *maps, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}]))
        return manifest

    def starts(self):
        # A folder with an image's name would be built, so this runs in one without.
        made = self.podman("play", "kube", "--network", "host", "--start=false", self.manifest, cwd=self.folder)
        if not self.check("pod: podman takes the manifest", made.stderr if made.returncode else ""):
            return False
        # A kubelet lets everybody write to an emptyDir; podman makes root's volumes of them.
        for volume in self.podman("volume", "ls", "-q").stdout.split():
            pathlib.Path(self.podman("volume", "inspect", "-f", "{{.Mountpoint}}", volume).stdout.strip()).chmod(0o777)
        started = self.podman("pod", "start", "watched")
        return self.check("pod: it starts", started.stderr if started.returncode else "")

    def logs(self, name="stdiowatch"):
        done = self.podman("logs", f"watched-{name}")
        return done.stdout + done.stderr

    def exec(self, *words):
        return self.podman("exec", "watched-agent", *words)

    def pid(self, name):
        return int(self.podman("inspect", "-f", "{{.State.Pid}}", f"watched-{name}").stdout or 0)

    def remove(self):
        self.podman("pod", "rm", "-f", "-t", "0", "watched")
        self.podman("rm", "-f", "-t", "0", "-a")
        for mount in [line.split()[1] for line in pathlib.Path("/proc/mounts").read_text().splitlines() if str(self.folder) in line]:
            subprocess.run(["umount", "-l", mount], capture_output=True)


def processes(namespace):
    """What runs in a pid namespace: pids and command lines."""
    found = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.readlink(entry / "ns/pid") == namespace:
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    return found
