"""Runs every query of the dashboards against a Prometheus that scrapes live sidecars."""

import json
import re
import time

from checks import TOP, until

INTERVALS = {"__rate_interval": "1m", "__interval": "15s", "__range": "5m", "datasource": "prometheus"}


def check_all(check, api, deadline, instance, servers, engine=""):
    """Each dashboard with everything that can be chosen, and with one sidecar and some of its `servers`. `api` asks Prometheus."""
    for path in sorted((TOP / "dashboards").glob("*.json")):
        board = json.loads(path.read_text())
        offered = variables(check, api, engine + path.stem, board)
        for name, chosen in [("all", {}), ("chosen", {"job": ["stdiowatch"], "instance": [instance], "server": servers})]:
            values = INTERVALS | {one["name"]: value(one, chosen.get(one["name"]), servers) for one in offered}
            queries(check, api, f"{engine}{path.stem}, {name}", board, values, deadline)


def value(variable, chosen, servers):
    """As Grafana writes it: what All stands for, one value, or several as an expression."""
    if not variable["multi"]:
        return servers[0]
    return "|".join(map(re.escape, chosen)) if chosen else variable["allValue"]


def variables(check, api, name, board):
    """Each query of a variable finds something, with everything chosen in the ones before."""
    found, values = [one for one in board["templating"]["list"] if one["type"] == "query"], dict(INTERVALS)
    for one in found:
        metric, label = re.fullmatch(r"label_values\((.*), (\w+)\)", one["query"]["query"]).groups()
        answer = api(f"label/{label}/values", **{"match[]": filled(metric, values)})
        check(f"{name}: ${one['name']} has values", "" if answer.get("data") else f"{metric}: {answer}")
        values[one["name"]] = ".+"
    return found


def filled(text, values):
    return re.sub(r"\$\{?(\w+)\}?", lambda name: values[name[1]].replace("\\", "\\\\"), text)


def queries(check, api, name, board, values, deadline):
    left = lambda: deadline - time.monotonic()
    for panel in board["panels"]:
        # Labels by which a link, or a table's column, finds what it needs.
        needed = set(re.findall(r"__(?:field\.labels|data\.fields)\.(\w+)", json.dumps(panel))) | columns(panel)
        for target in panel.get("targets", []):
            first = needed if target["refId"] == "A" else set()
            wanted = first | set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            expr = filled(target["expr"], values)
            check(f"{name}: {panel['title']} {target['refId']} ({target['legendFormat']})", until(left(), lambda: wrong(api, expr, wanted)))
    for one in board["annotations"]["list"]:
        wanted = set(one["tagKeys"].split(",")) | set(re.findall(r"\{\{(\w+)\}\}", one["textFormat"]))
        check(f"{name}: marks of {one['name']}", until(left(), lambda: wrong(api, filled(one["expr"], values), wanted)))


def columns(panel):
    """The labels that a table shows."""
    organized = [t["options"]["indexByName"] for t in panel.get("transformations", []) if t["id"] == "organize"]
    return {column for index in organized for column in index if not column.startswith("Value #")}


def wrong(api, expr, labels):
    """What is wrong with a query: no data, or not all of its selectors have some, or `labels` are missing."""
    answer = api("query", query=expr)
    found = answer.get("data", {}).get("result")
    if not found:
        return f"{expr}\n{answer.get('error', 'no data')}"
    if all(series["value"][1] == "NaN" for series in found):
        return f"{expr}\nnothing but NaN"
    lacking = {label for label in labels for series in found if label not in series["metric"]}
    # `or vector(0)` answers in the place of what does not exist, and so does the other side of an `or`.
    for selector in re.findall(r"\w+\{[^}]*\}|\b(?:stdiowatch|process)_\w+\b(?!\{)", expr):
        if not api("query", query=f"count({selector})").get("data", {}).get("result"):
            return f"{expr}\nnothing is selected by {selector}"
    return f"{expr}\nthe labels {sorted(lacking)} are missing" if lacking else ""
