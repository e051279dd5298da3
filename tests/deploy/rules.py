"""Holds recording rules, alerts and their runbook against promtool, vmalert, amtool, and against each other."""

import re

from checks import TOP, tool

FOLDER = TOP / "deploy/prometheus"
RULES, TESTS, RUNBOOK = FOLDER / "rules.yaml", FOLDER / "rules.test.yaml", TOP / "docs/alerts.md"
# What is kept of a server or a sidecar must not be lost on the way to Alertmanager. An alert on a whole job has no more.
IDENTITY = ("server", "instance", "job")


def check_all(check, folder):
    import yaml

    tool(check, "rules.yaml: promtool check rules", ["promtool", "check", "rules", "--lint=all", "--lint-fatal", RULES])
    tool(check, "rules.test.yaml: promtool test rules", ["promtool", "test", "rules", TESTS.name], cwd=FOLDER)
    tool(check, "rules.yaml: vmalert reads it", ["vmalert", f"-rule={RULES}", "-dryRun", "-loggerLevel=ERROR"])

    rules = [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
    alerts = {rule["alert"]: rule for rule in rules if "alert" in rule}
    page = RUNBOOK.read_text()
    check("every alert is complete", "\n".join(line for name, alert in alerts.items() for line in incomplete(name, alert)))
    check.equal("every alert has its section in docs/alerts.md", re.findall(r"^## (Stdiowatch\w+)$", page, re.M), list(alerts))
    sections = dict(zip(alerts, re.split(r"^## .*$", page, flags=re.M)[1:]))
    check("every section says what to check and what to do", "\n".join(n for n, text in sections.items() if not all(re.search(rf"\*\*{w}", text) for w in ("Means", "Check", "Do|do:"))))
    check("every alert has tests that it fires, not early, and resolves", "\n".join(untested(alerts, yaml.safe_load(TESTS.read_text())["tests"])))

    known = set(re.findall(r"`(stdiowatch_\w+)`", (TOP / "docs/metrics.md").read_text())) | {"stdiowatch_build_info"}
    known |= {f"stdiowatch_config_last_reload_{what}" for what in ("successful", "success_timestamp_seconds")}
    known |= {"stdiowatch_web_config_last_reload_successful"}
    used = {name for rule in rules for name in re.findall(r"(?<!:)\bstdiowatch_\w+(?!\w*:)", rule["expr"])}
    check.equal("rules use no metric that docs/metrics.md does not have", used - known, set())
    inhibitions(check, folder, page, alerts)


def incomplete(name, alert):
    """What an alert lacks."""
    notes, severity = alert.get("annotations", {}), alert.get("labels", {}).get("severity")
    if severity not in ("critical", "warning", "info"):
        yield f"{name}: severity {severity}"
    if set(notes) != {"summary", "description", "runbook_url"}:
        yield f"{name}: annotations {sorted(notes)}"
    if notes.get("runbook_url") != f"docs/alerts.md#{name.lower()}":
        yield f"{name}: runbook_url {notes.get('runbook_url')}"


def untested(alerts, tests):
    """Alerts of which no test sees silence, then the alert with what identifies it, then silence."""
    for name in alerts:
        for test in tests:
            seen = sorted((seconds(at["eval_time"]), at["exp_alerts"]) for at in test["alert_rule_test"] if at["alertname"] == name)
            if [bool(expected) for _, expected in seen] == [False, True, False]:
                lacking = {*IDENTITY} - set(seen[1][1][0]["exp_labels"])
                if lacking - ({"server"} if "$labels.server" not in str(alerts[name]) else set()) - ({"instance"} if "JobAbsent" in name else set()):
                    yield f"{name}: the labels {lacking} are lost"
                break
        else:
            yield f"{name}: not tested that it fires, not early, and resolves"


def seconds(text):
    return sum(int(n) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[unit] for n, unit in re.findall(r"(\d+)([smhd])", text))


def inhibitions(check, folder, page, alerts):
    """The inhibitions of docs/alerts.md are what Alertmanager takes, and name alerts that there are."""
    rules = re.search(r"```yaml\n(inhibit_rules:.*?)```", page, re.S)[1]
    config = folder / "alertmanager.yml"
    config.write_text("route: {receiver: none}\nreceivers: [{name: none}]\n" + rules)
    tool(check, "docs/alerts.md: amtool check-config on its inhibitions", ["amtool", "check-config", config])
    for matcher in re.findall(r"alertname =~? ?\"?([\w.*|]+)", rules):
        check(f"docs/alerts.md: {matcher} matches an alert", "" if any(re.fullmatch(matcher, name) for name in alerts) else "it does not")
