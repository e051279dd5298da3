#!/usr/bin/env python3
"""Holds a stdiowatch binary's TLS and users against those who really ask: access.py BINARY.

curl, a real Prometheus (`basic_auth`, `tls_config`), blackbox_exporter, and schemathesis with docs/openapi.json; a certificate is
swapped while Prometheus scrapes. Needs install.sh, curl, openssl, and Debian's prometheus and prometheus-blackbox-exporter.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from checks import REAL, TOP, Checks, free_port, start, until

USER, PASSWORD = "prometheus", "correct horse"
ROUND = 60  # seconds until every server of the demo was probed
SCRAPES = 20  # seconds until a scrape shows
FUZZING = 25  # seconds for schemathesis


def main():
    binary = pathlib.Path(sys.argv[1]).resolve()
    missing = [tool for tool in ("curl", "openssl", "prometheus", "prometheus-blackbox-exporter") if not shutil.which(tool)]
    if missing:
        sys.exit(f"not installed: {' '.join(missing)}")
    check = Checks()
    with tempfile.TemporaryDirectory(prefix="stdiowatch-") as folder, contextlib.ExitStack() as ends:
        folder = pathlib.Path(folder)
        authority(folder)
        certify(folder, "server", "subjectAltName=DNS:localhost,IP:127.0.0.1")
        certify(folder, "client", "subjectAltName=DNS:prometheus.example\nextendedKeyUsage=clientAuth")
        (folder / "password").write_text(PASSWORD)
        users, certificates = examples()
        port = demo(check, ends, folder, binary, "users", users)
        curl(check, folder, port)
        routes(check, folder, port)
        health_check(check, binary, folder, port)
        second = demo(check, ends, folder, binary, "certificates", certificates)
        blackbox(check, ends, folder, port)
        prometheus(check, ends, folder, port, second)
        fuzz(check, ends, folder, binary)
    return check.end()


def examples():
    """The first two examples of docs/security.md, as they stand there."""
    return re.findall(r"```yaml\n(# web\.yml.*?)```", (TOP / "docs/security.md").read_text(), re.S)[:2]


def demo(check, ends, folder, binary, name, web):
    """A demo behind this web configuration; its port."""
    port = free_port()
    config = folder / f"{name}.yml"
    config.write_text(web)
    start(ends, folder / f"{name}.log", [binary, "serve", "--demo", "--enable-actions", "--listen", f"127.0.0.1:{port}", "--web-config", config])
    ready = until(ROUND, lambda: "" if asked(folder, f"https://localhost:{port}/readyz")[0] == 200 else (folder / f"{name}.log").read_text()[-1000:])
    check(f"{name}: the demo is ready, for everybody to see", ready)
    return port


# --- certificates -----------------------------------------------------------------------------------------------------


def openssl(*argv):
    subprocess.run(["openssl", *map(str, argv)], check=True, capture_output=True)


def authority(folder):
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", 2, "-subj", "/CN=authority", "-keyout", folder / "ca.key", "-out", folder / "ca.crt")


def certify(folder, name, extensions):
    """A new certificate and its key, RSA as most are, each put in place by renaming it."""
    new = {suffix: folder / f"{name}.new.{suffix}" for suffix in ("key", "csr", "crt", "ext")}
    new["ext"].write_text(extensions)
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}", "-keyout", new["key"], "-out", new["csr"])
    openssl("x509", "-req", "-in", new["csr"], "-days", 2, "-CA", folder / "ca.crt", "-CAkey", folder / "ca.key", "-CAcreateserial", "-extfile", new["ext"], "-out", new["crt"])
    for suffix in ("crt", "key"):
        os.rename(new[suffix], folder / f"{name}.{suffix}")


def shown(port):
    """The certificate that is shown there, in PEM."""
    told = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{port}"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return "".join(re.findall(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", told.stdout, re.S)[:1])


# --- curl -------------------------------------------------------------------------------------------------------------


def asked(folder, url, *options):
    """What curl gets: the status (0 without an answer), the head, the body."""
    argv = ["curl", "-sS", "-i", "--max-time", "10", "--cacert", folder / "ca.crt", *options, url]
    got = subprocess.run([str(word) for word in argv], capture_output=True, text=True)
    head, _, body = got.stdout.partition("\n\n")
    status = re.match(r"HTTP/\S+ (\d+)", head)
    return (int(status[1]) if status else 0), head, body or got.stderr


def curl(check, folder, port):
    known = ["-u", f"{USER}:{PASSWORD}"]
    base = f"https://localhost:{port}"
    for name, url, options, wanted in [
        ("a path for everybody", "/livez", [], 200),
        ("nobody", "/metrics", [], 401),
        ("a wrong password", "/metrics", ["-u", f"{USER}:wrong"], 401),
        ("a wrong user", "/metrics", ["-u", f"nobody:{PASSWORD}"], 401),
        ("a user", "/metrics", known, 200),
        ("TLS 1.2", "/livez", ["--tls-max", "1.2"], 200),
        ("TLS 1.3", "/livez", ["--tlsv1.3"], 200),
        ("TLS 1.1", "/livez", ["--tlsv1.0", "--tls-max", "1.1", "--ciphers", "DEFAULT@SECLEVEL=0"], 0),
        ("HTTP/2, if it likes", "/livez", ["--http2"], 200),
        ("an action", "/-/resume/sound", [*known, "-X", "POST"], 200),
        ("an action of a page's", "/-/resume/sound", [*known, "-X", "POST", "-H", "Origin: https://evil.example"], 403),
    ]:
        check.equal(f"curl: {name}", asked(folder, base + url, *options)[0], wanted)
    status, head, body = asked(folder, f"http://localhost:{port}/livez")
    check.equal("curl: plain HTTP on the port of TLS", (status, body.strip()), (400, "this is HTTPS: the request came over plain HTTP"))
    status, _, told = asked(folder, f"{base}/livez", "--cacert", "/etc/ssl/certs/ca-certificates.crt")
    check("curl: does not believe an authority that it does not know", "" if status == 0 and "certificate" in told else f"{status} {told}")


def routes(check, folder, port):
    """Every path and method of docs/openapi.json."""
    document = json.loads((TOP / "docs/openapi.json").read_text())
    free = re.search(r"auth_excluded_paths: \[(.*)\]", examples()[0])[1].split(", ")
    wrong, count = [], 0
    for path, item in document["paths"].items():
        path = path.replace("{NAME}", "sound").replace("{FILE}", "sound.svg")
        for method in [*item, "options", "delete"]:
            status, head, _ = asked(folder, f"https://localhost:{port}{path}", "-X", method.upper())
            count += 1
            if (status == 401) == (path in free) or "nosniff" not in head or "no-referrer" not in head:
                wrong.append(f"{method} {path}: {status}")
    check(f"401 for nobody, {count} times", "\n".join(wrong))


def health_check(check, binary, folder, port):
    def exits(*options, **more):
        return subprocess.run([binary, "healthcheck", *map(str, options)], env={**os.environ, **more}, capture_output=True).returncode

    url, pair = f"https://localhost:{port}/metrics", {"STDIOWATCH_BASIC_AUTH": f"{USER}:{PASSWORD}"}
    check.equal("healthcheck: by an authority", exits(url, "--ca", folder / "ca.crt", **pair), 0)
    check.equal("healthcheck: by anybody, here", exits(url, "--insecure", **pair), 0)
    check.equal("healthcheck: without a password", exits(url, "--ca", folder / "ca.crt"), 1)


# --- blackbox_exporter ------------------------------------------------------------------------------------------------


def blackbox(check, ends, folder, port):
    http = {"tls_config": {"ca_file": str(folder / "ca.crt")}, "fail_if_not_ssl": True}
    known = {"username": USER, "password": PASSWORD}
    modules = {"known": {**http, "basic_auth": known}, "nobody": http}
    config, own = folder / "blackbox.yml", free_port()
    config.write_text(json.dumps({"modules": {name: {"prober": "http", "timeout": "5s", "http": http} for name, http in modules.items()}}))
    start(ends, folder / "blackbox.log", ["prometheus-blackbox-exporter", f"--config.file={config}", f"--web.listen-address=127.0.0.1:{own}"])

    def wrong(module, path, wanted):
        query = urllib.parse.urlencode({"module": module, "target": f"https://localhost:{port}{path}"})
        try:
            text = urllib.request.urlopen(f"http://127.0.0.1:{own}/probe?{query}", timeout=10).read().decode()
        except OSError as error:
            return str(error)
        got = dict(line.split(" ") for line in text.splitlines() if line.startswith(("probe_success ", "probe_http_status_code ")))
        return "" if got == wanted else f"{got}"

    for module, path, success, status in [("known", "/metrics", 1, 200), ("nobody", "/metrics", 0, 401), ("nobody", "/livez", 1, 200)]:
        wanted = {"probe_success": str(success), "probe_http_status_code": str(status)}
        check(f"blackbox_exporter: {module} {path} is {status}", until(10, lambda: wrong(module, path, wanted)))


# --- Prometheus -------------------------------------------------------------------------------------------------------


def prometheus(check, ends, folder, port, second):
    tls = {"ca_file": str(folder / "ca.crt"), "server_name": "localhost"}
    own_certificate = {"cert_file": str(folder / "client.crt"), "key_file": str(folder / "client.key")}
    known = {"basic_auth": {"username": USER, "password_file": str(folder / "password")}}
    jobs = {
        "user": (port, {**known, "tls_config": tls}, "1"),
        "nobody": (port, {"tls_config": tls}, "0"),
        "certificate": (second, {"tls_config": {**tls, **own_certificate}}, "1"),
        "none": (second, {"tls_config": tls}, "0"),
    }
    config, own = folder / "prometheus.yml", free_port()
    scrapes = [{"job_name": job, "scheme": "https", "static_configs": [{"targets": [f"127.0.0.1:{to}"]}], **how} for job, (to, how, _) in jobs.items()]
    config.write_text(json.dumps({"global": {"scrape_interval": "1s", "scrape_timeout": "1s"}, "scrape_configs": scrapes}))
    start(ends, folder / "prometheus.log", ["prometheus", f"--config.file={config}", f"--web.listen-address=127.0.0.1:{own}", f"--storage.tsdb.path={folder / 'tsdb'}"])

    def api(path, **query):
        try:
            return json.loads(urllib.request.urlopen(f"http://127.0.0.1:{own}/api/v1/{path}?{urllib.parse.urlencode(query)}", timeout=10).read())["data"]
        except OSError:
            return {}

    def wrong_value(query, wanted):
        got = [series["value"][1] for series in api("query", query=query).get("result", [])]
        return "" if got == [wanted] else f"{query}: {got}"

    for job, (_, _, wanted) in jobs.items():
        check(f"Prometheus: up of {job} is {wanted}", until(SCRAPES, lambda: wrong_value(f'up{{job="{job}"}}', wanted)))
    errors = {target["labels"]["job"]: target["lastError"] for target in api("targets")["activeTargets"]}
    for job in ("nobody", "none"):
        check(f"Prometheus: {job} is told 401", "" if "401" in errors[job] else errors[job])

    # A first scrape has to check a password, which takes its time; from here on none may fail.
    check("Prometheus: every scrape of 3 s succeeds", until(SCRAPES, lambda: wrong_value('min_over_time(up{job="user"}[3s])', "1")))
    first, begin = shown(port), time.time()
    certify(folder, "server", "subjectAltName=DNS:localhost,IP:127.0.0.1")
    new = (folder / "server.crt").read_text().strip()
    check("the new certificate is shown", until(10, lambda: "" if shown(port) == new != first else "it is not"))
    time.sleep(3)  # three scrapes
    seconds = int(time.time() - begin) + 1
    check(f"Prometheus: no scrape has failed in these {seconds} s", wrong_value(f'min_over_time(up{{job="user"}}[{seconds}s])', "1"))
    reloaded = "stdiowatch_web_config_last_reload_successful"
    check("Prometheus: the web configuration is in order", until(5, lambda: wrong_value(f'{reloaded}{{job="user"}}', "1")))
    (folder / "server.crt").write_text("garbage")
    check("Prometheus: and then it is not", until(10, lambda: wrong_value(f'{reloaded}{{job="user"}}', "0")))
    check.equal("the certificate before is still shown", shown(port), new)
    check("Prometheus: and still scrapes", wrong_value('up{job="user"}', "1"))


# --- schemathesis -----------------------------------------------------------------------------------------------------


def fuzz(check, ends, folder, binary):
    port = free_port()
    start(ends, folder / "fuzz.log", [binary, "serve", "--demo", "--enable-actions", "--listen", f"127.0.0.1:{port}"])
    up = lambda: "" if asked(folder, f"http://127.0.0.1:{port}/readyz")[0] == 200 else (folder / "fuzz.log").read_text()[-1000:]
    check("schemathesis: there is something to fuzz", until(ROUND, up))
    # An answer of 503 is one: the demo is not well. A probe takes its time, and /events has no end.
    argv = [
        REAL / "venv/schemathesis/bin/schemathesis", "run", TOP / "docs/openapi.json", "--url", f"http://127.0.0.1:{port}",
        "--checks", "status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance,unsupported_method,allow_header_conformance",
        "--exclude-path", "/events", "--exclude-path", "/probe", "--phases", "coverage,fuzzing", "--max-time", str(FUZZING), "--workers", "2",
        "--warnings", "off", "--no-color",
    ]  # fmt: skip
    run = subprocess.run([str(word) for word in argv], capture_output=True, text=True, cwd=folder)
    check("schemathesis has found nothing", run.stdout[-3000:] + run.stderr[-1000:] if run.returncode else "")
    print("      " + " ".join(line.strip() for line in run.stdout.splitlines() if "generated" in line))
    check("and it is still well", up())


if __name__ == "__main__":
    sys.exit(main())
