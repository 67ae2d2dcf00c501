//! How the house itself is doing: connections, gauges, reloads, spans, the process.

use super::{read_counter, write_head};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counted where connections are accepted and configurations loaded.
#[derive(Default)]
pub(crate) struct ServerCounters {
    connections: AtomicU64,
    connections_refused: AtomicU64,
    accept_errors: AtomicU64,
    reloads: AtomicU64,
    reloads_refused: AtomicU64,
    last_reload_refused: AtomicU64,
}

/// What the page needs to know from elsewhere.
pub(crate) struct ServerGauges {
    pub(crate) turns: usize,
    pub(crate) turns_max: usize,
    pub(crate) connections_max: usize,
    pub(crate) is_draining: bool,
    /// Spans sent and dropped, where they are collected.
    pub(crate) spans: Option<(u64, u64)>,
    pub(crate) version: String,
}

impl ServerCounters {
    pub(crate) fn connected(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn disconnected(&self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn connection_refused(&self) {
        self.connections_refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn accept_failed(&self) {
        self.accept_errors.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn reloaded(&self, is_good: bool) {
        let counter = if is_good { &self.reloads } else { &self.reloads_refused };
        counter.fetch_add(1, Ordering::Relaxed);
        self.last_reload_refused.store(u64::from(!is_good), Ordering::Relaxed);
    }

    pub(crate) fn render(&self, page: &mut String, gauges: &ServerGauges) {
        let wide = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let (sent, dropped) = gauges.spans.unwrap_or_default();
        for (name, kind, help, value) in [
            ("conclave_turns_in_flight", "gauge", "Turns being decided.", wide(gauges.turns)),
            ("conclave_turns_max", "gauge", "How many may be.", wide(gauges.turns_max)),
            ("conclave_connections", "gauge", "Open connections.", read_counter(&self.connections)),
            (
                "conclave_connections_max",
                "gauge",
                "How many may be open.",
                wide(gauges.connections_max),
            ),
            (
                "conclave_connections_refused_total",
                "counter",
                "Connections closed at once, because too many were open.",
                read_counter(&self.connections_refused),
            ),
            (
                "conclave_accept_errors_total",
                "counter",
                "Connections the system could not give us: mostly, it was out of descriptors.",
                read_counter(&self.accept_errors),
            ),
            ("conclave_draining", "gauge", "1 while it stops.", u64::from(gauges.is_draining)),
            (
                "conclave_config_last_reload_refused",
                "gauge",
                "1 where the file that was to be loaded last is wrong and the old one is in force.",
                read_counter(&self.last_reload_refused),
            ),
            ("conclave_spans_sent_total", "counter", "Spans a collector took.", sent),
            (
                "conclave_spans_dropped_total",
                "counter",
                "Spans dropped: the queue was full, or the collector did not take them.",
                dropped,
            ),
        ] {
            write_head(page, name, kind, help);
            let _ = writeln!(page, "{name} {value}");
        }
        let name = "conclave_config_reloads_total";
        write_head(page, name, "counter", "Configurations put in force or refused while running.");
        for (result, count) in [("loaded", &self.reloads), ("refused", &self.reloads_refused)] {
            let _ = writeln!(page, "{name}{{result=\"{result}\"}} {}", read_counter(count));
        }
        write_head(
            page,
            "conclave_build_info",
            "gauge",
            "Always 1; the version stands in the label.",
        );
        let _ = writeln!(page, "conclave_build_info{{version=\"{}\"}} 1", gauges.version);
        render_process(page);
    }
}

/// What Linux says of this process, under the names Prometheus' own clients use. Elsewhere, nothing.
fn render_process(page: &mut String) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kibibytes = status.lines().find_map(|line| {
        line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok()
    });
    let open = std::fs::read_dir("/proc/self/fd").map(Iterator::count).ok();
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let most = limits.lines().find_map(|line| {
        line.strip_prefix("Max open files")?.split_whitespace().next()?.parse::<u64>().ok()
    });
    for (name, help, value) in [
        (
            "process_resident_memory_bytes",
            "Memory held.",
            kibibytes.map(|held| held.saturating_mul(1_024)),
        ),
        ("process_open_fds", "Open descriptors.", open.and_then(|open| u64::try_from(open).ok())),
        ("process_max_fds", "How many may be open.", most),
    ] {
        if let Some(value) = value {
            write_head(page, name, "gauge", help);
            let _ = writeln!(page, "{name} {value}");
        }
    }
}
