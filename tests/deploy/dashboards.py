"""Holds the dashboards against Grafana's own types, and against what run.py knows of a good one."""

import json
import pathlib
import shutil

from checks import TOP, tool

HERE = pathlib.Path(__file__).resolve().parent


def check_all(check, folder):
    """Grafana's types for the dashboard, its panels and their options; TypeScript reads the JSON against them."""
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, folder)
    if not tool(check, "Grafana's types are installed", ["npm", "ci", "--legacy-peer-deps", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=folder):
        return
    for path in sorted((TOP / "dashboards").glob("*.json")):
        board = json.loads(path.read_text())
        (folder / "dashboard.ts").write_text(typed(board))
        tool(check, f"{path.name}: has Grafana's types", ["node_modules/.bin/tsc", "--noEmit", "--strict", "--skipLibCheck", "--module", "esnext", "--moduleResolution", "bundler", "--target", "es2022", "dashboard.ts"], cwd=folder)
        ids = [panel["id"] for panel in board["panels"]]
        check.equal(f"{path.name}: panels have ids of their own", len(set(ids)), len(ids))
        check(f"{path.name}: panels do not overlap", overlap(board["panels"]))


def typed(board):
    # Enums are nominal in TypeScript: this turns them into what JSON has.
    lines = [
        "type Plain<T> = T extends string ? `${T}` : T extends number ? (number extends T ? T : `${T}` extends `${infer N extends number}` ? N : T)"
        " : T extends boolean | null | undefined ? T : T extends (infer U)[] ? Plain<U>[] : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;",
        "import type { Dashboard, Panel, RowPanel } from '@grafana/schema/dist/esm/raw/dashboard/x/Dashboard_types.gen';",
        f"export const board: Plain<Partial<Dashboard>> = {json.dumps({**board, 'panels': []})};",
    ]
    kinds = {panel["type"] for panel in board["panels"]} - {"row"}
    for kind in sorted(kinds):
        module = kind.replace("-", "")
        name = "".join(word.capitalize() for word in kind.split("-")).replace("Timeseries", "TimeSeries").replace("Bargauge", "BarGauge")
        lines.append(f"import type {{ Options as {name} }} from '@grafana/schema/dist/esm/raw/composable/{module}/panelcfg/x/{name}PanelCfg_types.gen';")
        lines += [f"export const options{p['id']}: Plain<Partial<{name}>> = {json.dumps(p['options'])};" for p in board["panels"] if p["type"] == kind]
    for panel in board["panels"]:
        lines.append(f"export const panel{panel['id']}: Plain<Partial<{'RowPanel' if panel['type'] == 'row' else 'Panel'}>> = {json.dumps(panel)};")
    return "\n".join(lines) + "\n"


def overlap(panels):
    taken = {}
    for panel in panels:
        at = panel["gridPos"]
        for cell in [(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])]:
            if cell[0] >= 24 or taken.setdefault(cell, panel["id"]) != panel["id"]:
                return f"panel {panel['id']} ({panel['title']}) at {cell}"
    return ""
