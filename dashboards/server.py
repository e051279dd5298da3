"""One server, as every stdiowatch sees it that was chosen."""

from parts import BLUE, GREEN, ORANGE, PLAIN, RED, SERVER, START, VERDICT, VERDICT_FIELD, board, limit, lines, mapping, panel, query, row, stat, steps, timeline


def of(metric, more=""):
    return f"{metric}{{{SERVER}{more}}}"


def counted(metric, by):
    return query(f"sum by ({by}) (increase({of(metric)}[$__rate_interval]))", f"{{{{{by}}}}}")


def quantile(q, metric, over="30m"):
    return query(f"histogram_quantile({q}, sum by (le) (rate({of(metric + '_bucket')}[{over}])))", f"p{q * 100:g}")


def slow(over):
    code = ', code="latency.slow"'
    return query(f"sum(increase({of('stdiowatch_findings_total', code)}[{over}])) / sum(increase({of('stdiowatch_probes_total')}[{over}]))", f"in {over}")


def per_probe(metric, legend):
    return query(f"sum by (instance) (rate({of(metric)}[30m])) / sum by (instance) (rate({of('stdiowatch_probes_total')}[30m]))", legend)


def heatmap():
    queries = [query(f"sum by (le) (increase({of('stdiowatch_startup_duration_seconds_bucket')}[$__rate_interval]))", "{{le}}", format="heatmap")]
    look = {"calculate": False, "cellGap": 1, "cellValues": {"unit": "short"}, "showValue": "never", "legend": {"show": True}, "yAxis": {"unit": "s"}}
    look["color"] = {"mode": "scheme", "scheme": "Oranges", "steps": 64, "exponent": 0.5, "fill": "dark-orange", "reverse": False}
    look |= {"exemplars": {"color": "orange"}, "filterValues": {"le": 1e-9}, "rowsFrame": {"layout": "auto"}, "tooltip": {"mode": "single", "yHistogram": True}}
    return panel("heatmap", "Start-ups", (8, 8), "How many start-ups took how long.", queries, {}, look)


AGE = f"time() - {of('stdiowatch_last_probe_timestamp_seconds')}"
YES_NO = mapping(("no", GREEN), ("yes", RED))
PAGE = [{"title": "Its page at stdiowatch", "url": "http://${__field.labels.instance}/servers/${__field.labels.server:percentencode}", "targetBlank": True}]

PANELS = [
    stat("Verdict", "The worst of those who watch it. Its page says what was found and what to do.", [query(f"bottomk(1, {VERDICT})", "{{instance}}")], thresholds=VERDICT_FIELD["thresholds"], mappings=VERDICT_FIELD["mappings"], links=PAGE),
    stat("Last success", "How long ago a probe last ended with pass or warn.", [query(f"max(time() - {of('stdiowatch_last_success_timestamp_seconds')})", "Last success")], unit="s", thresholds=steps(PLAIN)),
    stat("Failures in a row", "Of the last probes.", [query(f"max({of('stdiowatch_consecutive_failures')})", "Failures in a row")], thresholds=steps(GREEN, (1, ORANGE), (3, RED))),
    stat("Start-up", "From the launch to the first reply, in the last probe.", [query(f"max({START})", "Start-up")], unit="s"),
    stat("Held", "A live copy died in a probe: it is not probed until a person resumes it.", [query(f"max({of('stdiowatch_probing_held')})", "Held")], thresholds=steps(GREEN, (1, RED)), mappings=YES_NO),
    stat("Drifted", "It lists something else than was accepted.", [query(f"max({of('stdiowatch_schema_drift')})", "Drifted")], thresholds=steps(GREEN, (1, ORANGE)), mappings=mapping(("no", GREEN), ("yes", ORANGE))),
    stat("Calls itself", "As it described itself in the last probe.", [query(f"max by (name, version, protocol_version) ({of('stdiowatch_server_info')})", "{{name}} {{version}}, MCP {{protocol_version}}")], width=6, text="name", thresholds=steps(BLUE)),
    timeline("Unknown: nothing can be said about the server (the sidecar's own trouble, or a verdict that is overdue).", "{{server}} on {{instance}}", (24, 6)),
    row("How it starts"),
    lines(
        "Start-up, objective, timeout",
        "From the launch to the first valid reply: quantiles of half an hour, what it should take, and what it may take.",
        [
            *(quantile(q, "stdiowatch_startup_duration_seconds") for q in (0.5, 0.95, 0.99)),
            query("max(" + of("stdiowatch_phase_objective_seconds", ', phase="startup"') + ")", "objective"),
            query("max(" + of("stdiowatch_phase_timeout_seconds", ', phase="handshake"') + ")", "timeout"),
            query(f"max by (instance) ({START})", "last on {{instance}}"),
        ],
        unit="s",
        overrides=[limit("objective", ORANGE), limit("timeout", RED)],
    ),
    heatmap(),
    lines("Over an objective", "The share of probes in which something was slower than its objective: one in twenty is allowed. Empty without probes.", [slow("10m"), slow("1h")], unit="percentunit", thresholds=steps(GREEN, (0.05, ORANGE), (0.5, RED))),
    lines("Phases", "Of the last probe. A phase that it did not complete is missing.", [query(f"max by (phase) ({of('stdiowatch_phase_duration_seconds')})", "{{phase}}")], unit="s"),
    lines("Findings", "Probes in which something was found, by its code: `stdiowatch explain CODE` says what it means.", [query(f"sum by (code) (increase({of('stdiowatch_findings_total')}[$__rate_interval])) > 0", "{{code}}")], stacked=True),
    lines("Failed probes by reason", "The family of the first finding that made a probe fail; and probes that said nothing about the server.", [counted("stdiowatch_probe_failures_total", "reason"), query(f"sum(increase({of('stdiowatch_probe_unknown_total')}[$__rate_interval]))", "unknown")], stacked=True),
    row("How it ends, and what it lists"),
    lines("Ended by", "What it took to end the server. End-of-file should be enough.", [counted("stdiowatch_shutdowns_total", "ended_by")], stacked=True, size=(6, 8)),
    lines("Left behind", "Processes that outlived the server: in its process group, or escaped from it.", [counted("stdiowatch_leftover_processes_total", "kind")], stacked=True, size=(6, 8)),
    lines("Shutdown", "From the end of its stdin to the end of its process: quantiles of half an hour.", [quantile(q, "stdiowatch_shutdown_duration_seconds") for q in (0.5, 0.95)], unit="s", size=(6, 8)),
    lines("Age of the verdict", "How long ago the server was last probed, and when the next probe is due. Far over it, the verdict is unknown.", [query(f"max by (instance) ({AGE})", "age on {{instance}}"), query(f"max by (instance) ({of('stdiowatch_interval_seconds')} + {of('stdiowatch_backoff_seconds')})", "due on {{instance}}")], unit="s", size=(6, 8)),
    lines("Listed", "Items on each list.", [query(f"max by (list) ({of('stdiowatch_listed_items')})", "{{list}}")], size=(6, 8)),
    lines("Schema changes", "Listed items that changed from one listing to the next.", [counted("stdiowatch_schema_changes_total", "change")], stacked=True, size=(6, 8)),
    lines("Drift", "How the lists differ from what was accepted, by what that means for callers.", [query(f"max by (class) ({of('stdiowatch_schema_drift_changes')})", "{{class}}")], size=(6, 8)),
    lines("Skipped probes", "They were due and did not take place.", [counted("stdiowatch_probe_skipped_total", "reason")], stacked=True, size=(6, 8)),
    row("What it uses"),
    lines("Memory", "Peak resident memory of the server and its descendants in the last probe that looked at it.", [query(f"max by (instance) ({of('stdiowatch_server_max_rss_bytes')})", "{{instance}}")], unit="bytes"),
    lines("CPU of a probe", "Time that the server's processes used in each probe, on average of half an hour.", [per_probe("stdiowatch_server_cpu_seconds_total", "{{instance}}")], unit="s"),
    lines("Written in a probe", "On average of half an hour.", [per_probe("stdiowatch_stdout_bytes_total", "stdout on {{instance}}"), per_probe("stdiowatch_stderr_bytes_total", "stderr on {{instance}}")], unit="bytes"),
]

BOARD = board("stdiowatch-server", "MCP server", "How one MCP stdio server starts, answers, keeps its schema and ends, as stdiowatch sees it.", True, PANELS)
