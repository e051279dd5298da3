#!/usr/bin/env python3
"""Holds a stdiowatch binary against real monitoring: monitoring.py BINARY.

Watches the demo's servers with promtool, the strict OpenMetrics parser of prometheus-client, and a real Prometheus with the
rules and the dashboards of this repository. Then SIGTERM: exit status 0, and no server left. Needs install.sh.
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
from checks import TOP, Checks, free_port, start, until

FIRST_ROUND = 60  # seconds until every server of the demo was probed
DATA = 90  # seconds until every query has data: two probes of each server
GRACE = 10  # seconds from SIGTERM to the end: the demo's graces, and room
LEFT = 1  # seconds for what outlives the exit

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPEN_METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
PROMETHEUS = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"


def main():
    binary = pathlib.Path(sys.argv[1]).resolve()
    check = Checks()
    missing = [tool for tool in ("promtool", "prometheus") if not shutil.which(tool)]
    if missing:
        sys.exit(f"not installed: {' '.join(missing)} (Debian's package prometheus)")
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
        prometheus(check, ends, folder, port)
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


def prometheus(check, ends, folder, port):
    config, own = folder / "prometheus.yml", free_port()
    config.write_text(
        json.dumps(
            {
                "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                "rule_files": [str(TOP / "deploy/prometheus/rules.yaml")],
                "scrape_configs": [{"job_name": "stdiowatch", "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}],
            }
        )
    )
    begin = time.monotonic()
    start(
        ends,
        folder / "prometheus.log",
        ["prometheus", f"--config.file={config}", f"--web.listen-address=127.0.0.1:{own}", f"--storage.tsdb.path={folder / 'tsdb'}"],
    )

    def api(path, **query):
        body = get(f"http://127.0.0.1:{own}/api/v1/{path}?{urllib.parse.urlencode(query)}")[2]
        try:
            return json.loads(body)
        except ValueError:
            return {"status": "error", "error": body}

    def results(query):
        return api("query", query=query).get("data", {}).get("result", [])

    def wrong_value(query, wanted):
        got = [series["value"][1] for series in results(query)]
        return "" if got == [wanted] else f"{query}: {got}"

    for query, wanted in [
        ('up{job="stdiowatch"}', "1"),
        ('stdiowatch_up{server="sound"}', "1"),
        ('stdiowatch_up{server="banner"}', "0"),
        ('stdiowatch_verdict{server="banner", verdict="fail"}', "1"),
    ]:
        check(f"Prometheus: {query} is {wanted}", until(30, lambda: wrong_value(query, wanted)))

    # An alert is firing in ALERTS only after its time; it is pending there at once.
    down = 'ALERTS{alertname="StdiowatchServerDown"}'
    check("rules: StdiowatchServerDown has begun for banner", until(30, lambda: "" if results(down[:-1] + ', server="banner"}') else "it has not"))
    check.equal("rules: and for no sound server", [s["metric"]["server"] for s in results(down) if s["metric"]["server"].startswith("sound")], [])
    rules = [rule for group in api("rules").get("data", {}).get("groups", []) for rule in group["rules"]]
    check("rules: every one is evaluated", "\n".join(f"{r['name']}: {r.get('lastError')}" for r in rules if r["health"] != "ok") or ("" if rules else "there is none"))

    for path in sorted((TOP / "dashboards").glob("*.json")):
        dashboard(check, api, path, begin + DATA)


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


def dashboard(check, api, path, deadline):
    """Every query of a dashboard has data, with every label that its legend names."""
    board = json.loads(path.read_text())
    variables = {"__rate_interval": "1m", "__interval": "15s", "__range": "5m", "datasource": "prometheus"}
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"]["query"]).groups()
            values = api(f"label/{label}/values", **{"match[]": metric}).get("data")
            check(f"{path.name}: ${variable['name']} has values", "" if values else "it has none")
            variables[variable["name"]] = "|".join(map(re.escape, values or ["none"]))

    def wrong(expr, legend):
        answer = api("query", query=expr)
        found = answer.get("data", {}).get("result")
        if not found:
            return f"{expr}\n{answer.get('error', 'no data')}"
        if all(series["value"][1] == "NaN" for series in found):
            return f"{expr}\nnothing but NaN"
        lacking = {label for label in re.findall(r"\{\{(\w+)\}\}", legend) for series in found if label not in series["metric"]}
        return f"{expr}\nthe legend's {lacking} is missing" if lacking else ""

    for panel in board["panels"]:
        for target in panel.get("targets", []):
            expr = re.sub(r"\$\{?(\w+)\}?", lambda name: variables[name[1]].replace("\\", "\\\\"), target["expr"])
            name = f"{path.name}: {panel['title']} ({target['legendFormat']})"
            check(name, until(deadline - time.monotonic(), lambda: wrong(expr, target["legendFormat"])))


if __name__ == "__main__":
    sys.exit(main())
