//! What a probe saw, in words.

use super::words::{size, took};
use crate::judge::{Report, Shutdown};
use crate::show::told::{counted, ended};
use crate::words::printable;

/// The longest text of a server's own, in characters.
const MAX_TEXT: usize = 200;

/// What was seen, each with what it is.
pub(super) fn facts(report: &Report, show_private: bool) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    let mut add = |what, told: Option<String>| facts.extend(told.map(|told| (what, told)));
    add("Speaks", speaks(report));
    add(
        "Calls itself",
        report.server_info.as_ref().map(|info| {
            let version = if show_private { format!(" {}", info.version) } else { String::new() };
            printable(format!("{}{version}", info.name).trim_end(), MAX_TEXT)
        }),
    );
    add("Offers", (!report.capabilities.is_empty()).then(|| printable(&report.capabilities.join(", "), MAX_TEXT)));
    let lists: Vec<String> = report.lists.each().into_iter().filter_map(|(kind, count)| Some(counted(count?, kind.word()))).collect();
    add("Lists", (!lists.is_empty()).then(|| lists.join(", ")));
    add("First reply", report.timings.startup_ms.map(|ms| format!("{} after the launch", took(ms))));
    add("End", report.shutdown.as_ref().map(|shutdown| end(shutdown, report.timings.shutdown_ms)));
    add("Wrote", wrote(report));
    add("Used", used(report));
    add("Launches", (report.spawns > 1).then(|| format!("{}, to find out how it is spoken to", report.spawns)));
    add("Live copies", (!report.peers.live.is_empty()).then(|| report.peers.live.len().to_string()));
    facts
}

fn speaks(report: &Report) -> Option<String> {
    let era = report.era?;
    let version = report.protocol_version.as_deref().map(|v| format!(", protocol {}", printable(v, 40))).unwrap_or_default();
    Some(format!("{era} era{version}"))
}

fn end(shutdown: &Shutdown, ms: Option<f64>) -> String {
    let mut out = ended(shutdown.ended_by, ms);
    match (shutdown.exit_code, shutdown.signal) {
        (Some(code), _) => out.push_str(&format!(", exit status {code}")),
        (None, Some(signal)) => out.push_str(&format!(", by signal {signal}")),
        (None, None) => {}
    }
    let left = shutdown.leftover_group + shutdown.leftover_escaped;
    if left > 0 {
        out.push_str(&format!("; left {} behind", counted(left, "processes").replace("1 processe", "1 process")));
    }
    out
}

fn wrote(report: &Report) -> Option<String> {
    let io = &report.io;
    let messages = counted(usize::try_from(io.messages).unwrap_or(usize::MAX), "messages");
    (io.stdout_bytes + io.stderr_bytes > 0).then(|| format!("{messages} in {} on stdout; {} on stderr", size(io.stdout_bytes), size(io.stderr_bytes)))
}

fn used(report: &Report) -> Option<String> {
    let usage = report.usage?;
    let memory = usage.max_rss_bytes.map(|bytes| format!("{} of memory, ", size(bytes))).unwrap_or_default();
    Some(format!("{memory}{} of CPU time", took(usage.cpu_seconds * 1e3)))
}
