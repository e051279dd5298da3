"""What both dashboards are made of."""

import json

SOURCE = {"type": "prometheus", "uid": "${datasource}"}
SIDECAR = 'job=~"$job", instance=~"$instance"'
SERVER = f'{SIDECAR}, server=~"$server"'
# A server as a sidecar sees it: what identifies a row, a line, a link.
EACH = "job, instance, server"
START = 'sum by (job, instance, server) (stdiowatch_phase_duration_seconds{{phase=~"spawn|handshake", {0}}})'.format(SERVER)
# One number for a verdict, so that it can be drawn: the worst is 0.
VERDICT = (
    f"max by ({EACH}) ("
    + " or ".join(f'stdiowatch_verdict{{verdict="{word}", {SERVER}}} * {n}' for n, word in enumerate(["fail", "unknown", "warn", "pass"]))
    + ")"
)

GREEN, ORANGE, RED, PURPLE, BLUE, PLAIN = "green", "orange", "red", "purple", "blue", "text"
VERDICTS = [("fail", RED), ("unknown", PURPLE), ("warn", ORANGE), ("pass", GREEN)]


def steps(first, *others):
    """Thresholds: a colour, and (from, colour) for each further one."""
    return {"mode": "absolute", "steps": [{"color": first, "value": None}, *({"color": color, "value": at} for at, color in others)]}


def mapping(*words):
    """Texts and colours for 0, 1, ..."""
    return [{"type": "value", "options": {str(n): {"text": text, "color": color, "index": n} for n, (text, color) in enumerate(words)}}]


VERDICT_FIELD = {
    "unit": "short",
    "color": {"mode": "thresholds"},
    "thresholds": steps(RED, (1, PURPLE), (2, ORANGE), (3, GREEN)),
    "mappings": mapping(*VERDICTS),
}

# Where a row, a line or a bar leads to. Grafana puts its own root in front, and escapes the values.
TO_SERVER = "/d/stdiowatch-server?var-datasource=${datasource}&var-job=%s&var-instance=%s&var-server=%s&${__url_time_range}"
LINE_LINKS = [
    {"title": "The server", "url": TO_SERVER % tuple("${__field.labels.%s:percentencode}" % label for label in ("job", "instance", "server"))},
    {"title": "Its page at stdiowatch", "url": "http://${__field.labels.instance}/servers/${__field.labels.server:percentencode}", "targetBlank": True},
]


def query(expr, legend="", **more):
    return {"expr": expr, "legendFormat": legend, **more}


def panel(kind, title, size, description, queries, field, options, overrides=(), **more):
    """Without its place and its number, which `board` gives it: `size` is (width, height)."""
    targets = [{"refId": "ABCDEFGHIJ"[n], "datasource": SOURCE, **q} for n, q in enumerate(queries)]
    return {
        "type": kind,
        "title": title,
        "description": description,
        "datasource": SOURCE,
        "gridPos": {"w": size[0], "h": size[1]},
        "targets": targets,
        "fieldConfig": {"defaults": field, "overrides": list(overrides)},
        "options": options,
        **more,
    }


def row(title):
    return {"type": "row", "title": title, "collapsed": False, "panels": [], "gridPos": {"w": 24, "h": 1}}


LAST = {"calcs": ["lastNotNull"], "values": False}


def stat(title, description, queries, width=3, unit="short", thresholds=None, mappings=(), text="auto", links=(), fields=""):
    field = {"unit": unit, "color": {"mode": "thresholds"}, "thresholds": thresholds or steps(PLAIN), "mappings": list(mappings), "links": list(links)}
    shown = {"colorMode": "value", "graphMode": "none", "justifyMode": "auto", "orientation": "auto", "textMode": text, "wideLayout": True}
    options = {**shown, "showPercentChange": False, "percentChangeColorMode": "standard", "reduceOptions": {**LAST, "fields": fields}}
    return panel("stat", title, (width, 4), description, [{**q, "instant": True} for q in queries], field, options)


def count_of(title, what, expr, color, **more):
    """How many there are, 0 included; any is worth a look."""
    return stat(title, what, [query(f"count({expr}) or vector(0)", title)], thresholds=steps(GREEN, (1, color)), **more)


LEGEND = {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []}


def lines(title, description, queries, unit="short", size=(8, 8), stacked=False, links=(), overrides=(), least=0, thresholds=None):
    """A graph over time: lines, or bars on top of each other for what is counted."""
    custom = {"drawStyle": "bars" if stacked else "line", "lineWidth": 1, "fillOpacity": 60 if stacked else 5, "showPoints": "never" if stacked else "auto", "spanNulls": False}
    custom["stacking"] = {"mode": "normal" if stacked else "none", "group": "A"}
    field = {"unit": unit, "color": {"mode": "palette-classic"}, "custom": custom, "links": list(links)}
    if thresholds:
        field["thresholds"], custom["thresholdsStyle"] = thresholds, {"mode": "dashed"}
    if least is not None:
        field["min"] = least
    options = {"legend": LEGEND, "tooltip": {"mode": "multi", "sort": "desc"}}
    return panel("timeseries", title, size, description, queries, field, options, overrides)


def limit(name, color):
    """A line that something should stay under."""
    dashes = {"fill": "dash", "dash": [8, 6]}
    look = {"color": {"mode": "fixed", "fixedColor": color}, "custom.lineStyle": dashes, "custom.lineWidth": 2, "custom.fillOpacity": 0, "custom.showPoints": "never"}
    return {"matcher": {"id": "byName", "options": name}, "properties": [{"id": key, "value": value} for key, value in look.items()]}


def timeline(description, legend, size):
    field = {**VERDICT_FIELD, "custom": {"fillOpacity": 80, "lineWidth": 0}, "links": LINE_LINKS}
    options = {"showValue": "never", "rowHeight": 0.8, "mergeValues": True, "alignValue": "left", "legend": LEGEND, "tooltip": {"mode": "single", "sort": "none"}}
    return panel("state-timeline", "Verdicts", size, description, [query(VERDICT, legend)], field, options)


def bars(title, description, expr, unit, thresholds, size=(12, 8)):
    field = {"unit": unit, "min": 0, "color": {"mode": "thresholds"}, "thresholds": thresholds, "links": LINE_LINKS}
    look = {"displayMode": "gradient", "valueMode": "color", "namePlacement": "auto", "showUnfilled": True, "sizing": "auto"}
    look |= {"minVizWidth": 8, "minVizHeight": 16, "maxVizHeight": 300, "orientation": "horizontal", "legend": {**LEGEND, "showLegend": False}}
    return panel("bargauge", title, size, description, [query(expr, "{{server}} on {{instance}}", instant=True)], field, {**look, "reduceOptions": LAST})


def table(title, description, queries, columns, more, sort, size, first):
    """One row for what `queries` have in common. `columns` are name, unit and more of the field of each, in the order of `queries`;
    without them values are not shown. `first` are the labels, in their order; `more` has further properties of their fields."""
    names = {f"Value #{'ABCDEFGHIJ'[n]}": name for n, (name, _, _) in enumerate(columns)}
    order = {name: n for n, name in enumerate([*first, *names])}
    tidied = {"excludeByName": {"Time": True} | ({} if columns else {"Value": True}), "indexByName": order, "renameByName": names}
    overrides = []
    for name, unit, look in columns:
        properties = {"unit": unit, **look}
        overrides.append({"matcher": {"id": "byName", "options": name}, "properties": [{"id": key, "value": value} for key, value in properties.items()]})
    for name, value in more.items():
        overrides.append({"matcher": {"id": "byName", "options": name}, "properties": value})
    return panel(
        "table",
        title,
        size,
        description,
        [{**q, "instant": True, "format": "table"} for q in queries],
        {"custom": {"align": "auto", "cellOptions": {"type": "auto"}, "filterable": True}},
        {"showHeader": True, "cellHeight": "sm", "sortBy": [{"displayName": name, "desc": desc} for name, desc in sort]},
        overrides,
        transformations=[{"id": "merge", "options": {}}, {"id": "organize", "options": tidied}],
    )


COLORED = {"custom.cellOptions": {"type": "color-text"}}


def variable(name, label, of, within, many, every=".+"):
    """A variable with the values of a label."""
    value = {
        "type": "query",
        "name": name,
        "label": label,
        "datasource": SOURCE,
        "query": {"query": f"label_values({of}{{{within}}}, {name})" if within else f"label_values({of}, {name})", "refId": name},
        "refresh": 2,
        "sort": 1,
        "hide": 0,
        "multi": many,
        "includeAll": many,
        "options": [],
    }
    return {**value, "allValue": every} if many else value


def annotation(name, expr, text, tags, color):
    """A mark at the moment that the value of a series is."""
    more = {"useValueForTime": "on", "titleFormat": name, "textFormat": text, "tagKeys": tags}
    return {"name": name, "datasource": SOURCE, "enable": True, "hide": False, "iconColor": color, "expr": f"{expr} * 1000", **more}


def board(uid, title, description, one, panels):
    """A dashboard, its panels side by side as long as they fit."""
    x = y = height = 0
    for number, each in enumerate(panels, 1):
        place = each["gridPos"]
        if x + place["w"] > 24:
            x, y, height = 0, y + height, 0
        each["gridPos"] = {"x": x, "y": y, **place}
        each["id"] = number
        x, height = x + place["w"], max(height, place["h"])
    source = {"type": "datasource", "name": "datasource", "label": "Data source", "query": "prometheus", "refresh": 1, "hide": 0}
    return {
        "uid": uid,
        "title": title,
        "description": description,
        "tags": ["mcp", "stdiowatch"],
        "schemaVersion": 39,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "annotations": {
            "list": [
                annotation("Schema changed", f"stdiowatch_schema_last_change_timestamp_seconds{{{SERVER}}}", "{{server}} on {{instance}}", "server,instance", BLUE),
                annotation("stdiowatch restarted", f"(process_start_time_seconds{{{SIDECAR}}} and on (job, instance) stdiowatch_build_info)", "{{instance}}", "instance", PURPLE),
            ]
        },
        "links": [
            {"type": "dashboards", "title": "stdiowatch", "icon": "dashboard", "tags": ["stdiowatch"], "asDropdown": False, "includeVars": True, "keepTime": True, "targetBlank": False, "tooltip": "", "url": ""}
        ],
        "templating": {
            "list": [
                {**source, "multi": False, "includeAll": False, "options": []},
                variable("job", "Job", "stdiowatch_up", "", True),
                variable("instance", "Instance", "stdiowatch_up", 'job=~"$job"', True),
                variable("server", "Server", "stdiowatch_up", SIDECAR, not one),
            ]
        },
        "panels": panels,
    }


def tidy(value, indent=0, width=150):
    """JSON with everything on one line that fits there."""
    short = json.dumps(value)
    if len(short) + indent <= width or not isinstance(value, dict | list) or not value:
        return short
    inner = [f"{json.dumps(k)}: {tidy(v, indent + 2, width - 2)}" for k, v in value.items()] if isinstance(value, dict) else [tidy(v, indent + 2, width) for v in value]
    space = "\n" + " " * (indent + 2)
    start, end = "{}" if isinstance(value, dict) else "[]"
    return start + space + ("," + space).join(inner) + "\n" + " " * indent + end
