//! What is measured of the process itself: what it is, its configuration, what it uses. It lives in
//! a `prometheus` registry and is joined to the servers' series in every scrape.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{Counter, Gauge, GaugeVec, Opts, Registry};
use rustix::process::{Resource, getrlimit};

use crate::outside::clock;
use crate::outside::tls::Expiry;
use crate::words::Moment;

/// The registry of what is the process' own.
#[derive(Debug)]
pub struct Own {
    registry: Registry,
    reload_ok: Gauge,
    reloaded: Gauge,
}

impl Own {
    /// A registry that knows the build, the configuration (loaded at `loaded`), and the process.
    ///
    /// # Errors
    ///
    /// When two metrics have one name: a mistake in this file.
    pub fn new(loaded: Moment) -> Result<Own, prometheus::Error> {
        let build = Opts::new("stdiowatch_build_info", "The version of stdiowatch.").const_label("version", env!("CARGO_PKG_VERSION"));
        let build = Gauge::with_opts(build)?;
        build.set(1.0);
        let own = Own {
            registry: Registry::new(),
            reload_ok: Gauge::new(
                "stdiowatch_config_last_reload_successful",
                "Whether the configuration was accepted when it was last read (1), or the one before is still used (0).",
            )?,
            reloaded: Gauge::new("stdiowatch_config_last_reload_success_timestamp_seconds", "When the configuration that is used was read.")?,
        };
        own.reloaded(true, loaded);
        own.registry.register(Box::new(build))?;
        own.registry.register(Box::new(own.reload_ok.clone()))?;
        own.registry.register(Box::new(own.reloaded.clone()))?;
        own.registry.register(Box::new(Process::new()?))?;
        Ok(own)
    }

    /// The configuration was read again at `now`, and accepted or not.
    pub fn reloaded(&self, accepted: bool, now: Moment) {
        self.reload_ok.set(f64::from(u8::from(accepted)));
        if accepted {
            self.reloaded.set(now.unix_seconds());
        }
    }

    /// The registry, to add to.
    #[must_use]
    pub const fn registry(&self) -> &Registry {
        &self.registry
    }

    /// What it holds now.
    #[must_use]
    pub fn gather(&self) -> Vec<MetricFamily> {
        self.registry.gather()
    }
}

/// How the web configuration was last read, and until when its certificates are of use; metrics only where there is one.
#[derive(Clone, Debug)]
pub struct WebConfig {
    accepted: Gauge,
    expiry: GaugeVec,
}

impl WebConfig {
    /// The metrics, with a reading that went well.
    ///
    /// # Errors
    ///
    /// When a name is none: a mistake in this file.
    pub fn new() -> Result<WebConfig, prometheus::Error> {
        let accepted = Gauge::new(
            "stdiowatch_web_config_last_reload_successful",
            "Whether the web configuration and its certificates were accepted when they were last read (1), or those before are still used (0).",
        )?;
        let expiry = Opts::new(
            "stdiowatch_web_certificate_expiry_timestamp_seconds",
            "When the certificate that is used expires: that of the server, or the last one of client_ca.",
        );
        let told = WebConfig { accepted, expiry: GaugeVec::new(expiry, &["certificate"])? };
        told.read(true);
        Ok(told)
    }

    /// It was read, and accepted or not.
    pub fn read(&self, accepted: bool) {
        self.accepted.set(f64::from(u8::from(accepted)));
    }

    /// These certificates are used.
    pub fn uses(&self, expiry: Expiry) {
        self.expiry.reset();
        for (certificate, at) in [("server", expiry.server), ("client_ca", expiry.client_authority)] {
            if let Some(at) = at {
                self.expiry.with_label_values(&[certificate]).set(Moment { unix_ms: at.saturating_mul(1000), ..Moment::default() }.unix_seconds());
            }
        }
    }

    /// Whether the last reading was refused.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.accepted.get() < 0.5
    }

    /// For a registry.
    #[must_use]
    pub fn collectors(&self) -> [Box<dyn Collector>; 2] {
        [Box::new(self.accepted.clone()), Box::new(self.expiry.clone())]
    }
}

/// The `process_*` metrics that every client library has
/// (<https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics>), from
/// `/proc/self`. Where that is not mounted, what it would tell is missing.
struct Process {
    cpu: Counter,
    /// CPU time that is counted already, in ticks.
    counted: AtomicU64,
    resident: Gauge,
    virtual_memory: Gauge,
    open_fds: Gauge,
    max_fds: Gauge,
    threads: Gauge,
    start: Gauge,
}

impl Process {
    fn new() -> Result<Process, prometheus::Error> {
        Ok(Process {
            cpu: Counter::new("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.")?,
            counted: AtomicU64::new(0),
            resident: Gauge::new("process_resident_memory_bytes", "Resident memory size in bytes.")?,
            virtual_memory: Gauge::new("process_virtual_memory_bytes", "Virtual memory size in bytes.")?,
            open_fds: Gauge::new("process_open_fds", "Number of open file descriptors.")?,
            max_fds: Gauge::new("process_max_fds", "Maximum number of open file descriptors.")?,
            threads: Gauge::new("process_threads", "Number of OS threads in the process.")?,
            start: Gauge::new("process_start_time_seconds", "Start time of the process since unix epoch in seconds.")?,
        })
    }

    fn gauges(&self) -> [&Gauge; 6] {
        [&self.resident, &self.virtual_memory, &self.open_fds, &self.max_fds, &self.threads, &self.start]
    }

    /// Takes in what `/proc/self/stat` says.
    fn take(&self, stat: &Stat) -> Vec<MetricFamily> {
        let hertz = ticks_per_second();
        let before = self.counted.fetch_max(stat.cpu_ticks, Ordering::Relaxed);
        self.cpu.inc_by(as_f64(stat.cpu_ticks.saturating_sub(before)) / hertz);
        self.resident.set(as_f64(stat.resident_pages * rustix::param::page_size() as u64));
        self.virtual_memory.set(as_f64(stat.virtual_bytes));
        self.threads.set(as_f64(stat.threads));
        if self.start.get() == 0.0 {
            let now = clock::now();
            let since_boot = as_f64(stat.started_ticks) / hertz;
            self.start.set(((now.unix_seconds() - now.up.as_secs_f64() + since_boot) * 1e2).round() / 1e2);
        }
        let known = [&self.resident, &self.virtual_memory, &self.threads, &self.start];
        known.into_iter().flat_map(Collector::collect).chain(self.cpu.collect()).collect()
    }
}

impl Collector for Process {
    fn desc(&self) -> Vec<&Desc> {
        self.gauges().into_iter().flat_map(Collector::desc).chain(self.cpu.desc()).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let stat = fs::read_to_string("/proc/self/stat").ok().and_then(|text| Stat::parse(&text));
        let mut families = stat.map(|stat| self.take(&stat)).unwrap_or_default();
        if let Ok(fds) = fs::read_dir("/proc/self/fd") {
            // One of them is the directory that is being read.
            self.open_fds.set(as_f64((fds.count() as u64).saturating_sub(1)));
            families.extend(self.open_fds.collect());
        }
        if let Some(limit) = getrlimit(Resource::Nofile).current {
            self.max_fds.set(as_f64(limit));
            families.extend(self.max_fds.collect());
        }
        families
    }
}

/// What is taken from `/proc/PID/stat` (proc_pid_stat(5)).
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    cpu_ticks: u64,
    threads: u64,
    started_ticks: u64,
    virtual_bytes: u64,
    resident_pages: u64,
}

impl Stat {
    fn parse(text: &str) -> Option<Stat> {
        // The second field is the program's name, in parentheses, and may hold anything; the third
        // is the first one here.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(Stat {
            cpu_ticks: field(14)? + field(15)?,
            threads: field(20)?,
            started_ticks: field(22)?,
            virtual_bytes: field(23)?,
            resident_pages: field(24)?,
        })
    }
}

fn ticks_per_second() -> f64 {
    as_f64(rustix::param::clock_ticks_per_second())
}

#[allow(clippy::cast_precision_loss, reason = "a sample is a double; bytes and ticks are far below 2^53")]
const fn as_f64(n: u64) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_may_be_called_anything() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 2 3 4 50 60 0 0 20 0 3 0 9000 123456 78 18446744073709551615 0";
        assert_eq!(Stat::parse(stat), Some(Stat { cpu_ticks: 110, threads: 3, started_ticks: 9000, virtual_bytes: 123_456, resident_pages: 78 }));
        assert_eq!(Stat::parse("7 (a"), None);
        assert_eq!(Stat::parse("7 (a) S 1"), None);
    }

    #[test]
    fn the_process_is_measured() {
        let own = Own::new(Moment { unix_ms: 1_000, ..Moment::default() }).unwrap();
        let value = |name: &str| {
            let families = own.gather();
            let family = families.iter().find(|f| f.name() == name).unwrap_or_else(|| panic!("{name}"));
            let metric = &family.get_metric()[0];
            metric.get_gauge().get_value() + metric.get_counter().get_value()
        };
        assert!(value("process_resident_memory_bytes") > 1e5);
        assert!(value("process_virtual_memory_bytes") > value("process_resident_memory_bytes"));
        assert!(value("process_open_fds") >= 3.0);
        assert!(value("process_max_fds") >= value("process_open_fds"));
        assert!(value("process_threads") >= 1.0);
        let now = clock::now().unix_seconds();
        assert!((now - 3600.0..=now + 1.0).contains(&value("process_start_time_seconds")));
        assert!(value("process_cpu_seconds_total") >= 0.0);
        assert_eq!(value("stdiowatch_build_info"), 1.0);
    }

    #[test]
    fn a_refused_configuration_leaves_the_time_of_the_accepted_one() {
        let at = |seconds: i64| Moment { unix_ms: seconds * 1000, ..Moment::default() };
        let own = Own::new(at(5)).unwrap();
        own.reloaded(false, at(9));
        assert_eq!((own.reload_ok.get(), own.reloaded.get()), (0.0, 5.0));
        own.reloaded(true, at(11));
        assert_eq!((own.reload_ok.get(), own.reloaded.get()), (1.0, 11.0));
    }
}
