//! `serve --demo`: the built-in sample servers, as servers to watch.

use std::time::Duration;

use anyhow::Context as _;

use crate::outside::process::LaunchSpec;
use crate::probe::Times;
use crate::running::Watched;
use crate::sample::Kind;
use crate::words::ServerName;

/// One server for each sample worth looking at, probed every `interval`, with short limits: a demo
/// should show something within seconds.
pub(super) fn servers(interval: Duration) -> anyhow::Result<Vec<Watched>> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let command = program.to_str().context("this program's path is no UTF-8")?.to_owned();
    let times = Times {
        startup: Duration::from_secs(5),
        discovery: Duration::from_secs(2),
        request: Duration::from_secs(2),
        total: Duration::from_secs(20),
        eof_grace: Duration::from_secs(1),
        term_grace: Duration::from_secs(1),
        ..Times::default()
    };
    // A flood is a fault to test with, not one to keep two cores warm with.
    let kinds = Kind::ALL.iter().filter(|kind| **kind != Kind::Flood);
    kinds
        .map(|kind| {
            let spec =
                LaunchSpec { command: command.clone(), args: vec!["sample-server".to_owned(), kind.name().to_owned()], ..LaunchSpec::default() };
            let name = ServerName::new(kind.name()).context("a sample's name")?;
            Ok(Watched { times, ..Watched::new(name, spec, interval) })
        })
        .collect()
}
