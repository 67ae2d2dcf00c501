//! Charts, drawn on the server as SVG.
//!
//! **Invariant:** a chart is never the only place where its numbers stand.

use crate::figure::{HOUR_MS, count};
use crate::label::Tone;
use askama::Template;
use askama::filters::HtmlSafe;

/// Hours on the chart of the overview, the running one included.
pub(crate) const HOURS: u64 = 24;
/// Width of one hour in the chart's own units, and of its bar.
const SLOT: f64 = 10.0;
const BAR: f64 = 6.4;

/// When the chart begins: a whole hour.
pub(crate) const fn since_ms(now_ms: u64) -> u64 {
    (now_ms - now_ms % HOUR_MS).saturating_sub((HOURS - 1) * HOUR_MS)
}

/// One hour.
#[derive(Clone, Debug, PartialEq)]
struct Hour {
    /// `14:00`.
    clock: String,
    delivered: u64,
    withheld: u64,
    x: f64,
    /// Top and height of either bar, in hundredths of the chart's height.
    delivered_bar: (f64, f64),
    withheld_bar: (f64, f64),
}

/// Delivered and withheld by the hour.
#[derive(Clone, Debug, PartialEq, Template)]
#[template(path = "parts/hours.html")]
pub(crate) struct HourChart {
    hours: Vec<Hour>,
    /// From the top down.
    ticks: Vec<String>,
    busiest: String,
    width: f64,
    bar: f64,
}

impl HtmlSafe for HourChart {}

impl HourChart {
    /// Draws counts of hours: (hour start in ms, delivered, withheld); hours without any may be
    /// missing.
    pub(crate) fn draw(counts: &[(u64, u64, u64)], now_ms: u64) -> Self {
        let since_ms = since_ms(now_ms);
        let slots = (0..HOURS).map(|slot| {
            let start = since_ms + slot * HOUR_MS;
            let found = counts.iter().find(|(hour, _, _)| *hour == start);
            (start, found.map_or((0, 0), |(_, delivered, withheld)| (*delivered, *withheld)))
        });
        let slots: Vec<_> = slots.collect();
        let most = slots.iter().map(|(_, (d, w))| d.saturating_add(*w)).max().unwrap_or(0);
        let step = step_for(most);
        let hours = slots.iter().enumerate().map(|(at, slot)| hour(at, *slot, step * 4));
        Self {
            hours: hours.collect(),
            ticks: (0..=4).rev().map(|tick| count(tick * step)).collect(),
            busiest: count(most),
            width: SLOT * to_f64(HOURS),
            bar: BAR,
        }
    }

    /// Every sixth hour gets its time written below.
    fn marked(&self) -> impl Iterator<Item = &str> {
        self.hours.iter().step_by(6).map(|hour| hour.clock.as_str())
    }
}

fn hour(at: usize, (start_ms, (delivered, withheld)): (u64, (u64, u64)), top: u64) -> Hour {
    let height = |count: u64| to_f64(count) * 100.0 / to_f64(top.max(1));
    let (low, high) = (height(delivered), height(withheld));
    Hour {
        clock: format!("{:02}:00", start_ms / HOUR_MS % 24),
        delivered,
        withheld,
        x: to_f64(at as u64) * SLOT + (SLOT - BAR) / 2.0,
        delivered_bar: (100.0 - low, low),
        withheld_bar: (100.0 - low - high, high),
    }
}

/// The step between two lines of the grid, so that four of them hold the busiest hour.
fn step_for(most: u64) -> u64 {
    let mut ten = 1_u64;
    loop {
        for factor in [1, 2, 3, 5] {
            let step = ten.saturating_mul(factor);
            if step.saturating_mul(4) >= most {
                return step;
            }
        }
        ten = ten.saturating_mul(10);
    }
}

/// Counts are far below the precision of a drawing.
#[expect(clippy::cast_precision_loss, reason = "only drawn, never added up")]
const fn to_f64(count: u64) -> f64 {
    count as f64
}

/// A share of a whole as a line, with a tick where a bar lies.
#[derive(Clone, Debug, PartialEq, Template)]
#[template(path = "parts/gauge.html")]
pub(crate) struct Gauge {
    /// 0 to 100.
    filled: f64,
    bar: Option<f64>,
    tone: &'static str,
}

impl HtmlSafe for Gauge {}

impl Gauge {
    /// A share without a bar.
    pub(crate) fn of(share: f64) -> Self {
        Self { filled: percent(share), bar: None, tone: "plain" }
    }

    /// A count among others.
    pub(crate) fn part(part: u64, whole: u64) -> Self {
        Self::of(to_f64(part) / to_f64(whole.max(1)))
    }

    /// With a bar that it is measured against.
    pub(crate) fn against(self, bar: f64, tone: Tone) -> Self {
        Self { bar: Some(percent(bar)), ..self.toned(tone) }
    }

    /// In a colour.
    pub(crate) fn toned(self, tone: Tone) -> Self {
        Self { tone: tone.class(), ..self }
    }
}

fn percent(share: f64) -> f64 {
    if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) * 100.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 500_000 * HOUR_MS + 1_234;

    #[test]
    fn the_chart_covers_the_running_hour_and_23_before() {
        let chart = HourChart::draw(&[], NOW);
        assert_eq!(chart.hours.len(), 24);
        assert_eq!(since_ms(NOW), (500_000 - 23) * HOUR_MS);
        assert_eq!(chart.hours[23].clock, format!("{:02}:00", 500_000 % 24));
        assert_eq!(chart.marked().count(), 4);
        assert_eq!(chart.ticks, ["4", "3", "2", "1", "0"]);
    }

    #[test]
    fn bars_stand_on_each_other_and_inside_the_chart() {
        let last = 500_000 * HOUR_MS;
        let chart = HourChart::draw(&[(last, 30, 10), (last - HOUR_MS, 1, 0), (1, 99, 99)], NOW);
        assert_eq!(chart.busiest, "40");
        let bar = &chart.hours[23];
        assert_eq!((bar.delivered, bar.withheld), (30, 10));
        assert_eq!(bar.delivered_bar, (25.0, 75.0));
        assert_eq!(bar.withheld_bar, (0.0, 25.0));
        assert!((bar.x + BAR) < chart.width);
    }

    #[test]
    fn the_grid_has_round_numbers() {
        for (most, step) in
            [(0, 1), (4, 1), (5, 2), (8, 2), (9, 3), (13, 5), (21, 10), (81, 30), (1_000, 300)]
        {
            assert_eq!(step_for(most), step, "{most}");
        }
        assert!(step_for(u64::MAX) > 0);
    }

    #[test]
    fn the_chart_can_be_read_without_seeing_it() {
        let html = HourChart::draw(&[(500_000 * HOUR_MS, 3, 2)], NOW).to_string();
        for part in ["role=\"img\"", "<title", "<desc", "<table", "<caption", "scope=\"col\""] {
            assert!(html.contains(part), "{part} is missing");
        }
        assert!(!html.contains("style="), "the policy forbids inline style");
    }

    #[test]
    fn gauges_stay_inside() {
        for (share, filled) in [(-1.0, 0.0), (0.5, 50.0), (7.0, 100.0), (f64::NAN, 0.0)] {
            assert!((Gauge::of(share).filled - filled).abs() < 1e-9, "{share}");
        }
        assert!((Gauge::part(1, 0).filled - 100.0).abs() < 1e-9);
    }
}
