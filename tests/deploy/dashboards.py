"""Holds the dashboards against what writes them, Grafana's own types, its SDK, and each other.

Whether a query means something is for tests/real/dashboards_live.py.
"""

import json
import os
import pathlib
import re
import shutil
import sys
import urllib.parse

from checks import TOP, tool

HERE = pathlib.Path(__file__).resolve().parent
FOLDER = TOP / "dashboards"
TSC = ["node_modules/.bin/tsc", "--noEmit", "--strict", "--skipLibCheck", "--module", "esnext", "--moduleResolution", "bundler", "--target", "es2022"]
# Keys that Grafana's Prometheus plugin reads, and that no type has: they are dropped in a round trip.
PLUGIN = {"expr", "useValueForTime", "titleFormat", "textFormat", "tagKeys"}


def check_all(check, folder):
    boards = {path: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}
    written(check, folder, boards)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, folder)
    if tool(check, "Grafana's types are installed", ["npm", "ci", "--legacy-peer-deps", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=folder):
        for path, board in boards.items():
            (folder / f"{path.stem}.ts").write_text(typed(board))
        tool(check, "dashboards: have Grafana's types", [*TSC, *(f"{path.stem}.ts" for path in boards)], cwd=folder)
    uids = {board["uid"]: board for board in boards.values()}
    for path, board in boards.items():
        check(f"{path.name}: comes back whole from Grafana's SDK", "\n".join(dropped(board)))
        ids = [panel["id"] for panel in board["panels"]]
        check.equal(f"{path.name}: panels have ids of their own", len(set(ids)), len(ids))
        check(f"{path.name}: panels do not overlap", overlap(board["panels"]))
        check(f"{path.name}: can be imported and provisioned", "\n".join(tied(board)))
        check(f"{path.name}: every panel says what it is, in a unit", "\n".join(mute(board)))
        check(f"{path.name}: links lead somewhere", "\n".join(dead_links(board, uids)))


def written(check, folder, boards):
    out = folder / "dashboards"
    out.mkdir()
    if tool(check, "dashboards/build.py runs", [sys.executable, FOLDER / "build.py", out], env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}):
        check.equal("dashboards are what build.py writes", [p.name for p in boards if (out / p.name).read_text() != p.read_text()], [])


def typed(board):
    """TypeScript that reads the JSON against the types of the dashboard, of each panel, and of its options."""
    # Enums are nominal in TypeScript: this turns them into what JSON has.
    lines = [
        "type Plain<T> = T extends string ? `${T}` : T extends number ? (number extends T ? T : `${T}` extends `${infer N extends number}` ? N : T)"
        " : T extends boolean | null | undefined ? T : T extends (infer U)[] ? Plain<U>[] : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;",
        "import type { Dashboard, Panel, RowPanel } from '@grafana/schema/dist/esm/raw/dashboard/x/Dashboard_types.gen';",
    ]
    annotations = [{key: value for key, value in one.items() if key not in PLUGIN} for one in board["annotations"]["list"]]
    lines.append(f"export const board: Plain<Partial<Dashboard>> = {json.dumps({**board, 'annotations': {'list': annotations}, 'panels': []})};")
    for kind in sorted({panel["type"] for panel in board["panels"]} - {"row"}):
        module = kind.replace("-", "")
        name = "".join(word.capitalize() for word in kind.split("-")).replace("Timeseries", "TimeSeries").replace("Bargauge", "BarGauge")
        lines.append(f"import type {{ Options as {name} }} from '@grafana/schema/dist/esm/raw/composable/{module}/panelcfg/x/{name}PanelCfg_types.gen';")
        lines += [f"export const options{p['id']}: Plain<Partial<{name}>> = {json.dumps(p['options'])};" for p in board["panels"] if p["type"] == kind]
    for panel in board["panels"]:
        lines.append(f"export const panel{panel['id']}: Plain<Partial<{'RowPanel' if panel['type'] == 'row' else 'Panel'}>> = {json.dumps(panel)};")
    return "\n".join(lines) + "\n"


def dropped(board):
    """What Grafana's SDK does not keep, or changes."""
    from grafana_foundation_sdk.cog import plugins
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.models.dashboard import Dashboard

    plugins.register_default_plugins()
    back = json.loads(JSONEncoder(sort_keys=True).encode(Dashboard.from_json(board)))
    yield from differences(board, back, "")


def differences(ours, theirs, path):
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key, value in ours.items():
            if key in theirs:
                yield from differences(value, theirs[key], f"{path}.{key}")
            elif not (path.startswith(".annotations") and key in PLUGIN):
                yield f"{path}.{key}: dropped"
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for n, (one, other) in enumerate(zip(ours, theirs)):
            yield from differences(one, other, f"{path}[{n}]")
    elif ours != theirs:
        yield f"{path}: {ours!r} became {theirs!r}"


def overlap(panels):
    taken = {}
    for panel in panels:
        at = panel["gridPos"]
        for cell in [(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])]:
            if cell[0] >= 24 or taken.setdefault(cell, panel["id"]) != panel["id"]:
                return f"panel {panel['id']} ({panel['title']}) at {cell}"
    return ""


def tied(board):
    """What ties a dashboard to the Grafana that it was made in."""
    yield from (key for key in ("__inputs", "__requires", "__elements", "id", "version", "gnetId") if key in board)
    variables = board["templating"]["list"]
    if variables[0]["type"] != "datasource":
        yield "the first variable is not the data source"
    yield from (f"${one['name']} has a current value" for one in variables if "current" in one or one["options"])
    sources = [*variables[1:], *board["annotations"]["list"], *(p for p in board["panels"] if p["type"] != "row"), *(t for p in board["panels"] for t in p.get("targets", []))]
    yield from (f"{one.get('name') or one.get('title') or one.get('refId')} has another data source" for one in sources if one["datasource"] != {"type": "prometheus", "uid": "${datasource}"})


def mute(board):
    for panel in board["panels"]:
        if panel["type"] == "row":
            continue
        if not panel["description"].endswith("."):
            yield f"{panel['title']}: {panel['description']!r}"
        of_fields = [p["value"] for o in panel["fieldConfig"]["overrides"] for p in o["properties"] if p["id"] == "unit"]
        without_values = any(t["id"] == "organize" and "Value" in t["options"]["excludeByName"] for t in panel.get("transformations", []))
        if not (panel["fieldConfig"]["defaults"].get("unit") or of_fields or without_values or panel["type"] == "heatmap"):
            yield f"{panel['title']}: no unit"


def dead_links(board, uids):
    """Links to dashboards that there are not, and to variables that they do not have; both dashboards have to be found by a tag."""
    text = json.dumps(board)
    for url in set(re.findall(r'"url": "(/[^"]+)"', text)):
        address = urllib.parse.urlsplit(url)
        target = uids.get(address.path.removeprefix("/d/"))
        if not target:
            yield url
            continue
        names = {f"var-{one['name']}" for one in target["templating"]["list"]}
        yield from (f"{url}: {part}" for part in address.query.split("&") if "=" in part and part.split("=")[0] not in names)
    links = [link for link in board["links"] if link["type"] == "dashboards" and link["includeVars"] and link["keepTime"]]
    if not links or any(not set(links[0]["tags"]) <= set(other["tags"]) for other in uids.values()):
        yield "no link finds all dashboards"
