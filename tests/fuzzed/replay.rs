//! Recordings from elsewhere: read, replayed, judged and shown in every way.

use stdiowatch::judge::{Listing, Reference, Rules, judge};
use stdiowatch::probe::{Plan, Recording};
use stdiowatch::show::{github, human, junit, nagios, transcript};
use stdiowatch::words::{At, ServerName, is_printable};

/// The input is the text of the file.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(recording) = Recording::from_lines(text) else { return };
    let Ok(name) = ServerName::new(&recording.server) else { return };
    let observation = recording.replay();
    let again = Recording::from_lines(&recording.to_lines()).expect("what was written is read").replay();
    assert_eq!(super::everything(&observation), super::everything(&again));
    let rules = Rules::default();
    let mut report = judge(&name, recording.started_at.clone(), &observation, &rules, Reference::nothing());
    let nothing = Reference::nothing();
    if let Some(listing) = observation.judged().and_then(|launch| Listing::of(launch, nothing.environment)) {
        report.add_items(&listing, nothing.redactor);
    }
    for (elapsed, happening) in recording.happenings() {
        let line = transcript::line(Some("a"), At::after(elapsed), happening).unwrap_or_default();
        assert!(line.chars().all(is_shown), "{line:?}");
    }
    shown(report, &recording.plan, &rules);
}

/// However it is shown, it is shown, and no terminal obeys it.
fn shown(report: stdiowatch::judge::Report, plan: &Plan, rules: &Rules) {
    let look = human::Look { width: Some(100), ..human::Look::default() };
    let reports = [report];
    let probed = nagios::Probed { report: &reports[0], plan, rules };
    let texts = [
        human::reports(&reports, look),
        nagios::output(&[probed], &[], false),
        github::annotations(&reports),
        // The sign of a warning, which is ours, is two characters.
        github::summary(&reports, &[], 1 << 20).replace("⚠\u{fe0f}", ""),
        junit::document(&reports, &[], false).expect("it is written to memory"),
    ];
    for text in texts {
        // What was on stderr may have tabs.
        assert!(text.chars().all(|c| c == '\t' || is_shown(c)), "{text:?}");
    }
    serde_json::to_string(&reports).expect("a report is JSON");
}

fn is_shown(c: char) -> bool {
    c == '\n' || is_printable(c)
}
