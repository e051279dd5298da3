"""All servers, worst first: what is wrong, since when, with whom."""

from parts import BLUE, COLORED, EACH, GREEN, LINE_LINKS, ORANGE, PLAIN, PURPLE, RED, SERVER, SIDECAR, START, TO_SERVER, VERDICT, VERDICT_FIELD, bars, board, count_of, lines, mapping, query, row, stat, steps, table, timeline


def all_of(metric, more=""):
    return f"{metric}{{{SERVER}{more}}}"


def rows(expr):
    return query(f"max by ({EACH}) ({expr})")


def with_verdict(word):
    return f'stdiowatch_verdict{{verdict="{word}", {SERVER}}} == 1'


LATE = f"(time() - {all_of('stdiowatch_last_probe_timestamp_seconds')}) / ({all_of('stdiowatch_interval_seconds')} + {all_of('stdiowatch_backoff_seconds')})"
TIMEOUT = all_of("stdiowatch_phase_timeout_seconds", ', phase="handshake"')
NOT_SCRAPED = f"up{{{SIDECAR}}} == 0 and on (job, instance) last_over_time(stdiowatch_build_info[$__range])"
OWN = f"* on (job, instance) group_left () max by (job, instance) (stdiowatch_build_info{{{SIDECAR}}})"
ALERT = "alertstate, severity, alertname, server, instance, job"
LINKS = [
    {"title": "The server", "url": TO_SERVER % tuple("${__data.fields.%s:percentencode}" % label for label in ("job", "instance", "server"))},
    {"title": "Its page at stdiowatch", "url": "http://${__data.fields.instance}/servers/${__data.fields.server:percentencode}", "targetBlank": True},
]
ROW_LINKS = [{"id": "links", "value": LINKS}]
SEVERITIES = [{"type": "value", "options": {word: {"color": color, "index": n} for n, (word, color) in enumerate([("critical", RED), ("warning", ORANGE), ("info", BLUE)])}}]
YES_NO = {"mappings": mapping(("", GREEN), ("yes", RED)), "thresholds": steps(GREEN, (1, RED)), **COLORED}
DRIFTED = {"mappings": mapping(("", GREEN), ("yes", ORANGE)), "thresholds": steps(GREEN, (1, ORANGE)), **COLORED}

PANELS = [
    stat("Watched", "Servers that are configured, each counted once for every stdiowatch that watches it.", [query(f"count({all_of('stdiowatch_up')})", "Watched")]),
    count_of("Failing", "Their verdict is fail: a client could not rely on them.", with_verdict("fail"), RED),
    count_of("Unknown", "Nothing can be said of them: not probed yet, overdue, or the sidecar's own trouble.", with_verdict("unknown"), PURPLE),
    count_of("With a warning", "They can be used, and something should be mended.", with_verdict("warn"), ORANGE),
    count_of("Held", "A live copy died in a probe: they are not probed until a person resumes them.", all_of("stdiowatch_probing_held") + " == 1", RED),
    count_of("Drifted", "They list something else than was accepted.", all_of("stdiowatch_schema_drift") + " == 1", ORANGE),
    count_of("Sidecars not scraped", "Targets that were a stdiowatch in the time that is shown, and cannot be scraped now: nobody watches their servers.", NOT_SCRAPED, RED),
    stat("Most overdue", "The age of the oldest verdict, in intervals. Well over 1, that server is not probed as it should be.", [query(f"max({LATE})", "Most overdue")], thresholds=steps(GREEN, (2, ORANGE), (4, RED))),
    table(
        "Alerts",
        "Of deploy/prometheus/rules.yaml, firing or pending; docs/alerts.md says what to do about each. Empty too where those rules are not loaded.",
        [query(f'max by ({ALERT}) (ALERTS{{alertname=~"Stdiowatch.+", job=~"$job"}})')],
        [],
        {"server": ROW_LINKS, "severity": [{"id": "mappings", "value": SEVERITIES}, {"id": "custom.cellOptions", "value": {"type": "color-text"}}]},
        [("alertstate", False), ("severity", False)],
        (24, 6),
        ALERT.split(", "),
    ),
    table(
        "Servers, worst first",
        "Click on a name for the server's own dashboard, or its page at stdiowatch.",
        [
            query(VERDICT),
            rows(f"time() - {all_of('stdiowatch_last_success_timestamp_seconds')}"),
            rows(all_of("stdiowatch_consecutive_failures")),
            query(START),
            rows(f"time() - {all_of('stdiowatch_last_probe_timestamp_seconds')}"),
            rows(all_of("stdiowatch_schema_drift")),
            rows(all_of("stdiowatch_probing_held")),
        ],
        [
            ("Verdict", "short", {"mappings": VERDICT_FIELD["mappings"], "thresholds": VERDICT_FIELD["thresholds"], "custom.cellOptions": {"type": "color-background", "mode": "basic"}}),
            ("Last success ago", "s", {}),
            ("Failures in a row", "short", {"thresholds": steps(PLAIN, (1, ORANGE), (3, RED)), **COLORED}),
            ("Start-up", "s", {}),
            ("Last probe ago", "s", {}),
            ("Drifted", "short", DRIFTED),
            ("Held", "short", YES_NO),
        ],
        {"server": ROW_LINKS},
        [("Verdict", False), ("Failures in a row", True)],
        (24, 10),
        ("server", "instance", "job"),
    ),
    timeline("Unknown: nothing can be said about the server (the sidecar's own trouble, or a verdict that is overdue).", "{{server}} on {{instance}}", (24, 10)),
    lines("Failed probes by reason", "The family of the first finding that made a probe fail.", [query(f"sum by (reason) (increase({all_of('stdiowatch_probe_failures_total')}[$__rate_interval])) > 0", "{{reason}}")], stacked=True),
    lines("Failed probes by server", "Who fails, and when it began.", [query(f"topk(20, sum by ({EACH}) (increase({all_of('stdiowatch_probe_failures_total')}[$__rate_interval])) > 0)", "{{server}} on {{instance}}")], stacked=True, links=LINE_LINKS),
    lines("Findings", "Probes in which something was found, by its code: `stdiowatch explain CODE` says what it means.", [query(f"sum by (code) (increase({all_of('stdiowatch_findings_total')}[$__rate_interval])) > 0", "{{code}}")], stacked=True),
    bars("Slowest start-ups", "From the launch to the first reply, in the last probe.", f"topk(10, {START})", "s", steps(GREEN, (5, ORANGE), (20, RED))),
    bars(
        "Closest to their timeout",
        "The last start-up, as a share of what it may take.",
        f'topk(10, {START} / max by ({EACH}) ({TIMEOUT}))',
        "percentunit",
        steps(GREEN, (0.5, ORANGE), (0.8, RED)),
    ),
    row("stdiowatch itself"),
    lines("Scheduler lag", "By how much probes begin after they are due. If it grows, there are too many servers for the interval and the cores.", [query(f"max by (instance) (stdiowatch_scheduler_lag_seconds{{{SIDECAR}}})", "{{instance}}")], unit="s", thresholds=steps(GREEN, (5, ORANGE), (30, RED)), size=(6, 8)),
    lines("Probes in flight", "Servers that are being probed at this moment.", [query(f"max by (instance) (stdiowatch_probes_in_flight{{{SIDECAR}}})", "{{instance}}")], size=(6, 8)),
    lines("CPU", "Of the sidecars alone. What the servers use in probes is on their own dashboards.", [query(f"rate(process_cpu_seconds_total{{{SIDECAR}}}[$__rate_interval]) {OWN}", "{{instance}}")], unit="percentunit", size=(6, 8)),
    lines("Memory", "Resident, of the sidecars alone.", [query(f"process_resident_memory_bytes{{{SIDECAR}}} {OWN}", "{{instance}}")], unit="bytes", size=(6, 8)),
    table(
        "Sidecars",
        "What runs, since when, and whether its configuration and its state are in order.",
        [
            query(f"max by (job, instance, version) (stdiowatch_build_info{{{SIDECAR}}})"),
            query(f"max by (job, instance) ((time() - process_start_time_seconds{{{SIDECAR}}}) {OWN})"),
            query(f"max by (job, instance) (stdiowatch_config_last_reload_successful{{{SIDECAR}}})"),
            query(f"max by (job, instance) (time() - stdiowatch_config_last_reload_success_timestamp_seconds{{{SIDECAR}}})"),
            query(f"max by (job, instance) (stdiowatch_state_kept{{{SIDECAR}}})"),
            query(f"max by (job, instance) (stdiowatch_state_write_failures_total{{{SIDECAR}}})"),
            query(f"count by (job, instance) ({all_of('stdiowatch_up')})"),
        ],
        [
            ("Runs", "short", {"mappings": mapping(("no", RED), ("yes", GREEN))}),
            ("Since", "s", {}),
            ("Configuration", "short", {"mappings": mapping(("refused", RED), ("accepted", GREEN)), "thresholds": steps(RED, (1, GREEN)), **COLORED}),
            ("Read ago", "s", {}),
            ("State", "short", {"mappings": mapping(("not kept", ORANGE), ("kept", GREEN)), "thresholds": steps(ORANGE, (1, GREEN)), **COLORED}),
            ("Write failures", "short", {"thresholds": steps(PLAIN, (1, ORANGE)), **COLORED}),
            ("Servers", "short", {}),
        ],
        {},
        [("instance", False)],
        (24, 7),
        ("instance", "job", "version"),
    ),
]

BOARD = board("stdiowatch-fleet", "MCP servers", "Whether MCP stdio servers start, answer, keep their schema and end, as stdiowatch sees them.", False, PANELS)
