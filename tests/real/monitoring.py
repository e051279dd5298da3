#!/usr/bin/env python3
"""Holds a stdiowatch binary against real monitoring: monitoring.py BINARY.

Watches the demo's servers with promtool, the strict OpenMetrics parser of prometheus-client, and a real Prometheus and a
real VictoriaMetrics with the rules and the dashboards of this repository. Then SIGTERM: exit status 0, and no server left.
Needs install.sh.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import dashboards_live
from checks import TOP, Checks, free_port, start, until

FIRST_ROUND = 60  # seconds until every server of the demo was probed
DATA = 90  # seconds until every query has data: two probes of each server
ALERTS = 60  # seconds until alerts that take three probes see them: a few more of the demo's
GRACE = 10  # seconds from SIGTERM to the end: the demo's graces, and room
LEFT = 1  # seconds for what outlives the exit

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPEN_METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
# A second sidecar, with what the demo does not have: an objective that nothing can meet.
SECOND = """
listen: 127.0.0.1:{port}
defaults: {{interval: 5s, timeouts: {{startup: 5s, request: 2s}}, objectives: {{startup: 1ms}}}}
servers:
  changing: {{command: "{binary}", args: [sample-server, drift]}}
  failing: {{command: "{binary}", args: [sample-server, banner]}}
"""
PROMETHEUS = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"


def main():
    binary = pathlib.Path(sys.argv[1]).resolve()
    check = Checks()
    missing = [tool for tool in ("promtool", "prometheus", "victoria-metrics", "vmalert") if not shutil.which(tool)]
    if missing:
        sys.exit(f"not installed: {' '.join(missing)} (tests/real/install.sh does it)")
    with tempfile.TemporaryDirectory(prefix="stdiowatch-") as folder, contextlib.ExitStack() as ends:
        folder, port = pathlib.Path(folder), free_port()
        # Its servers inherit HOME, so this is how they are told from all else that runs here.
        home = {**os.environ, "HOME": str(folder)}
        demo = start(ends, folder / "serve.log", [binary, "serve", "--demo", "--listen", f"127.0.0.1:{port}"], env=home)
        base = f"http://127.0.0.1:{port}"
        if not check("every server of the demo is probed", until(FIRST_ROUND, lambda: wrong_status(base + "/readyz", 200))):
            print((folder / "serve.log").read_text()[-2000:])
            return check.end()

        metrics(check, base)
        second = free_port()
        (folder / "second.yaml").write_text(SECOND.format(port=second, binary=binary))
        other = start(ends, folder / "second.log", [binary, "serve", "--config", folder / "second.yaml"], env={**home, "HOME": str(folder / "second")})
        if not check("a second stdiowatch serves", until(10, lambda: wrong_status(f"http://127.0.0.1:{second}/livez", 200))):
            print((folder / "second.log").read_text()[-2000:])
        results = prometheus(check, ends, folder, port, second)
        other.send_signal(signal.SIGTERM)
        absent = f'ALERTS{{alertname="StdiowatchSidecarAbsent", instance="127.0.0.1:{second}"}}'
        check("rules: StdiowatchSidecarAbsent has begun for one that has ended", until(30, lambda: "" if results(absent) else "it has not"))
        check.equal("rules: and for no other", [s["metric"]["instance"] for s in results('ALERTS{alertname="StdiowatchSidecarAbsent"}')], [f"127.0.0.1:{second}"])
        on_demand(check, ends, folder, port)

        check("a probe is running", until(30, lambda: "" if in_flight(base) else "none in 30 s"))
        begin = time.monotonic()
        demo.send_signal(signal.SIGTERM)
        try:
            check.equal("SIGTERM ends it with status 0", demo.wait(GRACE), 0)
            print(f"      after {time.monotonic() - begin:.1f} s")
        except subprocess.TimeoutExpired:
            check("SIGTERM ends it with status 0", f"it still runs after {GRACE} s")
        check("no process of the demo is left", until(LEFT, lambda: " ".join(of_home(folder))))
    return check.end()


def of_home(folder):
    """What runs with this HOME, as `PID NAME`."""
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"HOME={folder}".encode() in (process / "environ").read_bytes().split(b"\0"):
                yield f"{process.name} {(process / 'comm').read_text().strip()}"


# --- HTTP -------------------------------------------------------------------------------------------------------------


def get(url, **fields):
    """The status, the header fields and the body of an answer; status 0 if there is none."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=fields), timeout=10) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as answer:
        return answer.code, answer.headers, answer.read().decode()
    except OSError as error:
        return 0, {}, str(error)


def wrong_status(url, wanted):
    status, _, body = get(url)
    return "" if status == wanted else f"{url}: {status} {body}"


def in_flight(base):
    return float(re.search(r"^stdiowatch_probes_in_flight (.+)$", get(base + "/metrics")[2], re.M)[1])


# --- /metrics ---------------------------------------------------------------------------------------------------------


def metrics(check, base):
    from prometheus_client.openmetrics.parser import text_string_to_metric_families as strict
    from prometheus_client.parser import text_string_to_metric_families as lenient

    status, head, text = get(base + "/metrics")
    check.equal("/metrics is text 0.0.4 unless asked otherwise", (status, head["content-type"]), (200, TEXT))
    lint = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True)
    check("promtool check metrics has nothing to say", lint.stdout + lint.stderr + (f"exit {lint.returncode}" if lint.returncode else ""))

    status, head, body = get(base + "/metrics", Accept=PROMETHEUS)
    check.equal("/metrics is OpenMetrics 1.0.0 for Prometheus", (status, head["content-type"]), (200, OPEN_METRICS))
    try:
        samples = {sample.name for family in strict(body) for sample in family.samples}
        check("the strict OpenMetrics parser accepts it")
    except ValueError as error:
        check("the strict OpenMetrics parser accepts it", error)
    else:
        both = {sample.name for family in lenient(text) for sample in family.samples}
        check.equal("both formats have the same series", both ^ samples, set())


# --- Prometheus -------------------------------------------------------------------------------------------------------


def asked(port):
    """How to ask what has Prometheus' HTTP API."""

    def api(path, **query):
        body = get(f"http://127.0.0.1:{port}/api/v1/{path}?{urllib.parse.urlencode(query)}")[2]
        try:
            return json.loads(body)
        except ValueError:
            return {"status": "error", "error": body}

    return api


def engines(ends, folder, targets):
    """Prometheus with the rules, and VictoriaMetrics with vmalert, which has them; how to ask each of the three."""
    rules, config, ports = TOP / "deploy/prometheus/rules.yaml", folder / "prometheus.yml", [free_port() for _ in range(3)]
    jobs = {"global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "scrape_configs": [{"job_name": "stdiowatch", "static_configs": [{"targets": targets}]}]}
    (folder / "scrape.yml").write_text(json.dumps({**jobs, "global": {"scrape_interval": "1s"}}))
    config.write_text(json.dumps({**jobs, "rule_files": [str(rules)]}))
    first, second, third = (f"127.0.0.1:{port}" for port in ports)
    start(ends, folder / "prometheus.log", ["prometheus", f"--config.file={config}", f"--web.listen-address={first}", f"--storage.tsdb.path={folder / 'tsdb'}"])
    victoria = ["-search.latencyOffset=1s", "-search.disableCache", f"-promscrape.config={folder / 'scrape.yml'}", f"-storageDataPath={folder / 'victoria'}"]
    start(ends, folder / "victoria.log", ["victoria-metrics", f"-httpListenAddr={second}", *victoria])
    until(10, lambda: wrong_status(f"http://{second}/health", 200))
    vmalert = [f"-rule={rules}", f"-datasource.url=http://{second}", f"-remoteWrite.url=http://{second}", "-notifier.url=http://127.0.0.1:9", "-evaluationInterval=1s"]
    start(ends, folder / "vmalert.log", ["vmalert", f"-httpListenAddr={third}", *vmalert])
    return [asked(port) for port in ports]


def prometheus(check, ends, folder, port, second):
    """Rules and dashboards, live; returns how to ask further."""
    begin = time.monotonic()
    api, victoria, vmalert = engines(ends, folder, [f"127.0.0.1:{port}", f"127.0.0.1:{second}"])

    def results(query):
        return api("query", query=query).get("data", {}).get("result", [])

    def wrong_value(query, wanted):
        got = [series["value"][1] for series in results(query)]
        return "" if got == [wanted] else f"{query}: {got}"

    first = f'instance="127.0.0.1:{port}"'
    for query, wanted in [
        (f'up{{job="stdiowatch", {first}}}', "1"),
        (f"instance:stdiowatch_sidecar:known{{{first}}}", "1"),
        ('stdiowatch_phase_objective_seconds{server="changing", phase="startup"}', "0.001"),
        ('stdiowatch_up{server="sound"}', "1"),
        ('stdiowatch_up{server="banner"}', "0"),
        ('stdiowatch_verdict{server="banner", verdict="fail"}', "1"),
    ]:
        check(f"Prometheus: {query} is {wanted}", until(30, lambda: wrong_value(query, wanted)))

    # An alert is firing in ALERTS only after its time; it is pending there at once.
    down = 'ALERTS{alertname="StdiowatchServerDown"}'
    check("rules: StdiowatchServerDown has begun for banner", until(30, lambda: "" if results(down[:-1] + ', server="banner"}') else "it has not"))
    check.equal("rules: and for no sound server", [s["metric"]["server"] for s in results(down) if s["metric"]["server"].startswith("sound")], [])
    check("rules: every one is evaluated", "\n".join(errors(api)))

    dashboards_live.check_all(check, api, begin + DATA, f"127.0.0.1:{second}", ["changing", "failing"])
    # And with another engine.
    dashboards_live.check_all(check, victoria, begin + DATA, f"127.0.0.1:{second}", ["changing", "failing"], "VictoriaMetrics: ")
    check("vmalert: StdiowatchServerDown has begun for banner", until(30, lambda: "" if "'banner'" in str(victoria("query", query=down)) else "it has not"))
    check("vmalert: every rule is evaluated", "\n".join(errors(vmalert)))
    # These do not wait: what makes them true is counted already.
    for alert, server in [("ForcedKills", "ignore-eof"), ("ForcedKills", "ignore-sigterm"), ("Leftovers", "helper"), ("ObjectiveBurnFast", "changing")]:
        seen = f'ALERTS{{alertname="Stdiowatch{alert}", server="{server}"}}'
        check(f"rules: Stdiowatch{alert} tells of {server}", until(ALERTS, lambda: "" if results(seen) else "it does not"))
    return results


def errors(api):
    """What evaluating the rules came to, if not to something, and if there are any."""
    rules = [rule for group in api("rules").get("data", {}).get("groups", []) for rule in group["rules"]]
    yield from (f"{rule['name']}: {rule.get('health')} {rule.get('lastError')}" for rule in rules if rule.get("health") != "ok" or rule.get("lastError"))
    if not rules:
        yield "there is none"


def on_demand(check, ends, folder, port):
    """The configuration of docs/on-demand.md, for the demo's servers."""
    example = re.search(r"```yaml\n(.*?)```", (TOP / "docs/on-demand.md").read_text(), re.S)[1]
    for there, here in [("[files, github]", "[sound, banner, mute, nobody]"), ("127.0.0.1:10779", f"127.0.0.1:{port}"), ("60s", "6s"), ("30s", "2s")]:
        check.equal(f"on-demand.md has {there}", example.count(there), 1)
        example = example.replace(there, here)
    config, own = folder / "on-demand.yml", free_port()
    config.write_text(example)
    start(
        ends,
        folder / "on-demand.log",
        ["prometheus", f"--config.file={config}", f"--web.listen-address=127.0.0.1:{own}", f"--storage.tsdb.path={folder / 'on-demand'}"],
    )

    def wrong_value(query, wanted):
        body = get(f"http://127.0.0.1:{own}/api/v1/query?{urllib.parse.urlencode({'query': query})}")[2]
        try:
            got = [series["value"][1] for series in json.loads(body)["data"]["result"]]
        except (ValueError, KeyError):
            return body
        return "" if got == [wanted] else f"{query}: {got}"

    for query, wanted in [
        ('up{instance="sound"}', "1"),
        ('probe_success{instance="sound"}', "1"),
        ('stdiowatch_up{instance="sound", server="sound"}', "1"),
        ('probe_success{instance="banner"}', "0"),
        # It answers nothing for longer than is waited for: that says nothing of stdiowatch.
        ('up{instance="mute"}', "1"),
        ('probe_success{instance="mute"}', "0"),
        ('stdiowatch_on_demand{instance="mute", answer="late"}', "1"),
        ('up{instance="nobody"}', "0"),
    ]:
        check(f"Prometheus, on demand: {query} is {wanted}", until(30, lambda: wrong_value(query, wanted)))


if __name__ == "__main__":
    sys.exit(main())
