#!/usr/bin/env python3
"""A pod for real: the rendered chart in podman, watched by a real Prometheus and a real Alertmanager.

    tests/deploy/pod.py BINARY

The image of the server has a shell and a server that can be broken; stdiowatch's has the static BINARY, which is copied
into the server's as the chart says. Healthy, broken, mended, ended: what /health says, what comes to a webhook, what is left.
podman has no kubelet, so the probes of the manifest are asked from here. Needs root and what install.sh installs.
"""

import base64
import contextlib
import http.server
import json
import os
import pathlib
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import yaml
from checks import TOP, Checks, free_port, start, tool, until
from podman import DEAF, NOTES, USER, Pod, processes

FIRST = 60  # seconds until the pod answers
TOLD = 60  # seconds from a change in the server to the webhook
RESIDENT, CORE = 16 << 20, 0.01  # bytes, and the share of a core: what values.yaml says stdiowatch itself takes


def everything(check, folder, binary):
    folder = folder / "pod"
    folder.mkdir()
    with contextlib.ExitStack() as ends:
        pod = Pod(check, folder, binary, ends)
        if pod.starts():
            base = f"http://127.0.0.1:{pod.port}"
            of_manifest(check, pod, base)
            inside(check, pod)
            alerts(check, ends, folder, pod, base)
            own_use(check, pod)
            ended(check, pod)
        guarded(check, pod)


def get(url, tls=None, **fields):
    """The status and the body of an answer; status 0 if there is none."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=fields), timeout=5, context=tls) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as answer:
        return answer.code, answer.read().decode()
    except OSError as error:
        return 0, str(error)


def wrong(url, status, **how):
    got, body = get(url, **how)
    return "" if got == status else f"{url}: {got} {body}"


def probes(check, pod, name, **how):
    """The probes, as the manifest has them."""
    for kind in ("readinessProbe", "livenessProbe"):
        asked = pod.sidecar[kind]["httpGet"]
        ports = {port["name"]: port["containerPort"] for port in pod.sidecar["ports"]}
        url = f"{asked['scheme'].lower()}://127.0.0.1:{ports[asked['port']]}{asked['path']}"
        bad = until(FIRST, lambda: wrong(url, 200, **how))
        check(f"{name}: its {kind} succeeds", bad and f"{bad}\n{pod.logs()}")


def helm_test(check, pod, name, *options):
    words = [word.replace("//watched-stdiowatch:", "//127.0.0.1:") for word in pod.healthcheck]
    run = ["run", "--rm", "--network", "host", "--user", USER, "--read-only", "--cap-drop", "all", *options, "localhost/stdiowatch:0.1.0", "/stdiowatch"]
    tested = pod.podman(*run, *words)
    check(f"{name}: what `helm test` runs succeeds", tested.stdout + tested.stderr if tested.returncode else "")


def of_manifest(check, pod, base):
    probes(check, pod, "pod")
    check("pod: /health is 200", until(FIRST, lambda: wrong(base + "/health", 200)))
    checked = pod.podman("exec", "watched-stdiowatch", "/opt/stdiowatch/stdiowatch", "check", "--config", "/etc/stdiowatch/stdiowatch.yaml", "notes")
    check("pod: `stdiowatch check` in the sidecar, as docs/kubernetes.md says", checked.stdout + checked.stderr if checked.returncode else "")
    helm_test(check, pod, "pod")


def inside(check, pod):
    """What the sidecar is allowed, as the kernel has it; and what it takes."""
    pid = pod.pid("stdiowatch")
    status = dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)
    check.equal("pod: the sidecar runs as 65532", status["Uid"].split(), [USER] * 4)
    check.equal("pod: with no capability", {status[name].strip() for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}, {"0" * 16})
    check.equal("pod: and can gain none", status["NoNewPrivs"].strip(), "1")
    root = next(line.split() for line in pathlib.Path(f"/proc/{pid}/mountinfo").read_text().splitlines() if line.split()[4] == "/")
    check("pod: its root is read-only", "" if "ro" in root[5].split(",") else " ".join(root))
    check.equal("pod: it is the copied binary", os.readlink(f"/proc/{pid}/exe"), "/opt/stdiowatch/stdiowatch")
    check("pod: in the server's image", "" if pathlib.Path(f"/proc/{pid}/root/bin/notes-server").exists() else "it is another")


# --- alerts -----------------------------------------------------------------------------------------------------------


class Webhook(http.server.BaseHTTPRequestHandler):
    """Keeps what Alertmanager sends, as (name of the alert, status)."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.told += [(alert["labels"]["alertname"], alert["labels"].get("server"), alert["status"]) for alert in body["alerts"]]
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


def hurried(rules):
    """The rules of this repository, with a second in the place of each minute: a test does not wait for flaps."""
    for group in rules["groups"]:
        group.pop("interval", None)
        for rule in group["rules"]:
            rule.update({key: "1s" for key in ("for", "keep_firing_for") if key in rule})
    return rules


def alerts(check, ends, folder, pod, base):
    hook = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Webhook)
    hook.told = []
    threading.Thread(target=hook.serve_forever, daemon=True).start()
    ends.callback(hook.shutdown)
    manager, own = free_port(), free_port()

    def write(name, what):
        (folder / name).write_text(json.dumps(what))  # which is YAML too

    write("rules.yml", hurried(yaml.safe_load((TOP / "deploy/prometheus/rules.yaml").read_text())))
    write(
        "alertmanager.yml",
        {
            "route": {"receiver": "hook", "group_wait": "1s", "group_interval": "1s", "repeat_interval": "1h"},
            "receivers": [{"name": "hook", "webhook_configs": [{"url": f"http://127.0.0.1:{hook.server_port}/", "send_resolved": True}]}],
        },
    )
    write(
        "prometheus.yml",
        {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": ["rules.yml"],
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": [f"127.0.0.1:{manager}"]}]}]},
            "scrape_configs": [{"job_name": "stdiowatch", "static_configs": [{"targets": [base.removeprefix("http://")]}]}],
        },
    )
    start(
        ends,
        folder / "alertmanager.log",
        ["prometheus-alertmanager", f"--config.file={folder / 'alertmanager.yml'}", f"--web.listen-address=127.0.0.1:{manager}", "--cluster.listen-address=", f"--storage.path={folder / 'alertmanager'}"],
    )
    start(
        ends,
        folder / "prometheus.log",
        ["prometheus", f"--config.file={folder / 'prometheus.yml'}", f"--web.listen-address=127.0.0.1:{own}", f"--storage.tsdb.path={folder / 'tsdb'}"],
    )
    up = f"http://127.0.0.1:{own}/api/v1/query?query=stdiowatch_up%7Bserver%3D%22notes%22%7D%20%3D%3D%201"
    check("pod: Prometheus sees the server up", until(TOLD, lambda: "" if '"notes"' in get(up)[1] else get(up)[1]))
    down = ("StdiowatchServerDown", "notes")
    check.equal("pod: nobody was told that it is down", [told for told in hook.told if told[:2] == down], [])

    begin = time.monotonic()
    for what, word, status, mark in [("broken", "touch", 503, "firing"), ("mended", "rm", 200, "resolved")]:
        changed = pod.exec(f"/bin/{word}", "/data/broken")
        check(f"pod: the server is {what}", changed.stderr if changed.returncode else "")
        # A server that goes on failing is put off, so being well again can take some rounds.
        check(f"pod: {what}, /health is {status}", until(TOLD, lambda: wrong(base + "/health", status)))
        check(f"pod: {what}, the webhook is told: {mark}", until(TOLD, lambda: "" if (*down, mark) in hook.told else f"{hook.told}"))
        print(f"      {time.monotonic() - begin:.1f} s after the server broke")


# --- the end ----------------------------------------------------------------------------------------------------------


def own_use(check, pod):
    """What stdiowatch itself took, its guard included, against what values.yaml says."""
    resident = cpu = 0
    pid = pod.pid("stdiowatch")
    for other, line in processes(os.readlink(f"/proc/{pid}/ns/pid")).items():
        if line.startswith("/opt/stdiowatch/stdiowatch") or other == pid:
            process = pathlib.Path(f"/proc/{other}")
            resident += int(next(line.split()[1] for line in (process / "status").read_text().splitlines() if line.startswith("VmHWM"))) << 10
            times = (process / "stat").read_text().rpartition(")")[2].split()
            cpu += (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")
    began = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
    lived = float(pathlib.Path("/proc/uptime").read_text().split()[0]) - began
    check(f"pod: stdiowatch itself took {resident / 2**20:.1f} MiB at the most", "" if resident <= RESIDENT else f"more than {RESIDENT >> 20}")
    check(f"pod: and {1000 * cpu / lived:.1f}m of a core, over {lived:.0f} s", "" if cpu / lived <= CORE else f"more than {1000 * CORE:.0f}m")


def ended(check, pod):
    """SIGTERM at the worst moment: the deaf server has just been launched, and its whole ladder is to come."""
    pid = pod.pid("stdiowatch")
    namespace = os.readlink(f"/proc/{pid}/ns/pid")

    def deaf():
        return {other for other, line in processes(namespace).items() if "ignore-sigterm" in line}

    before = deaf()
    check("pod: the deaf server is launched", until(60, lambda: "" if deaf() - before else f"only {before}"))
    begin = time.monotonic()
    os.kill(pid, signal.SIGTERM)
    try:
        waited = pod.podman("wait", "watched-stdiowatch", timeout=2 * pod.grace)
    except subprocess.TimeoutExpired:
        check("pod: SIGTERM ends the sidecar", pod.logs())
        return
    took = time.monotonic() - begin
    check.equal("pod: SIGTERM ends the sidecar with status 0", waited.stdout.strip(), "0")
    check(f"pod: within {pod.grace} s, its part of the grace, of which the ladder took {took:.1f}", "" if DEAF - 2 < took < pod.grace else pod.logs())
    check("pod: nothing of it is left", until(2, lambda: "\n".join(processes(namespace).values())))


# --- TLS and a password -----------------------------------------------------------------------------------------------

WEB = """tls_server_config: {cert_file: server.crt, key_file: server.key}
basic_auth_users: {monitor: "%s"}
auth_excluded_paths: [/livez, /readyz]
"""
HASH = "$2b$04$6sj9Wi3x4KE8bTPbXobdRu0jw3aXXTleovKR3RE5vGal2.3LumtEm"  # of `secret`


def guarded(check, pod):
    """A pod with webConfig: the kubelet's probes need no password and get one nowhere; everything else does."""
    name, files = "pod with webConfig", pod.folder / "web"
    files.mkdir()
    names = "subjectAltName=DNS:watched-stdiowatch,IP:127.0.0.1"
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", files / "server.key"]
    tool(check, f"{name}: a certificate", ["openssl", "req", "-x509", *key, "-out", files / "server.crt", "-days", "2", "-subj", "/CN=watched", "-addext", names, "-addext", "basicConstraints=critical,CA:FALSE"])
    (files / "web-config.yml").write_text(WEB % HASH)
    pod.podman("pod", "rm", "-f", "-t", "0", "watched")
    web = {"existingSecret": "web", "tls": True, "caKey": "server.crt"}
    pod.manifest = pod.render({"config": {"servers": {"notes": NOTES}}, "webConfig": web}, {"web": {path.name: path.read_text() for path in files.iterdir()}})
    if not pod.starts():
        return
    tls = ssl.create_default_context(cafile=files / "server.crt")
    base = f"https://127.0.0.1:{pod.port}"
    probes(check, pod, name, tls=tls)
    check(f"{name}: /health and /metrics are 401 without", "\n".join(wrong(base + path, 401, tls=tls) for path in ("/health", "/metrics")).strip())
    known = "Basic " + base64.b64encode(b"monitor:secret").decode()
    check(f"{name}: /health is 200 with it", wrong(base + "/health", 200, tls=tls, authorization=known))
    check(f"{name}: nothing is said without TLS", "" if get(base.replace("https", "http") + "/livez")[0] != 200 else "it is")
    helm_test(check, pod, name, "-v", f"{files}:/etc/stdiowatch-ca:ro")


def main():
    check = Checks()
    with tempfile.TemporaryDirectory(prefix="stdiowatch-pod-") as folder:
        everything(check, pathlib.Path(folder), pathlib.Path(sys.argv[1]).resolve())
    return check.end()


if __name__ == "__main__":
    sys.exit(main())
