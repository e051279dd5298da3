"""Holds the recording rules and alerts against promtool, and against each other."""

import re

from checks import TOP, tool

FOLDER = TOP / "deploy/prometheus"


def check_all(check):
    tool(check, "rules.yaml: promtool check rules", ["promtool", "check", "rules", "--lint=all", "--lint-fatal", FOLDER / "rules.yaml"])
    tool(check, "rules.test.yaml: promtool test rules", ["promtool", "test", "rules", "rules.test.yaml"], cwd=FOLDER)
    alerts, tests = (set(re.findall(r"(?:- alert|alertname): (\w+)", (FOLDER / name).read_text())) for name in ("rules.yaml", "rules.test.yaml"))
    check.equal("every alert has a test", alerts ^ tests, set())
