//! Figures as lines of text for a terminal.
//!
//! **Invariant:** names come from files and may be hostile: nothing but what can be seen is printed.

use crate::baseline::{Change, FigureChange};
use crate::estimate::Estimate;
use crate::figures::{Figures, Latency};
use crate::group::{Group, Kind};
use crate::panel::PanelFigures;
use crate::report::Report;
use crate::row::clipped;
use std::fmt::Write;

const NAME_WIDTH: usize = 34;

/// A column: its heading and where its figure stands.
type Column = (&'static str, fn(&Figures) -> Option<Estimate>);

const COLUMNS: [Column; 11] = [
    ("prec", |figures| figures.precision),
    ("recall", |figures| figures.recall),
    ("FPR", |figures| figures.fpr),
    ("F1", |figures| figures.f1),
    ("AUROC", |figures| figures.auroc),
    ("AUPRC", |figures| figures.auprc),
    ("R@1%", |figures| figures.recall_at_1_fpr),
    ("R@5%", |figures| figures.recall_at_5_fpr),
    ("s.block", |figures| figures.safe_blocked),
    ("s.>=.70", |figures| figures.safe_over_floor),
    ("h.block", |figures| figures.harmful_blocked),
];

impl Report {
    /// The report as a compact table.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for kind in Kind::ALL {
            let mut groups = self.of_kind(kind).peekable();
            if groups.peek().is_none() {
                continue;
            }
            text.push_str(&heading(kind));
            groups.for_each(|group| text.push_str(&line(group)));
            text.push('\n');
        }
        text.extend(self.panel.as_ref().map(PanelFigures::to_text));
        text.push_str(&crate::scorecard::to_text(&self.scorecard));
        text.push_str(&self.speed());
        text.push_str(&self.differences());
        text
    }

    fn speed(&self) -> String {
        let names = ["p50 ms", "p95 ms", "p99 ms", "texts/s on a core"];
        let mut text = padded("Speed", NAME_WIDTH);
        text.extend(names.iter().map(|name| format!(" {name:>8}")));
        text.push('\n');
        for group in self.of_kind(Kind::Task) {
            let Latency { p50_ms, p95_ms, p99_ms } = group.figures.latency;
            let rate = group.figures.texts_per_core_second.unwrap_or_default();
            let name = padded(&group.name, NAME_WIDTH);
            let line = format!("{name} {p50_ms:>8.2} {p95_ms:>8.2} {p99_ms:>8.2} {rate:>17.0}\n");
            text.push_str(&line);
        }
        text.push('\n');
        text.push_str(&self.speed_of_all());
        text
    }

    fn speed_of_all(&self) -> String {
        let Self { rows, seconds, latency, .. } = self;
        let rate = self.texts_per_second.unwrap_or_default();
        let mut text = format!(
            "{rows} rows in {seconds:.1} s, {rate:.0} texts/s; each took {:.2} ms (p50), \
             {:.2} ms (p95), {:.2} ms (p99)\n",
            latency.p50_ms, latency.p95_ms, latency.p99_ms,
        );
        if let (Some(spent), Some(rate)) = (self.cpu_seconds, self.rows_per_cpu_second) {
            let _ = writeln!(text, "{spent:.1} s of processor time, {rate:.1} rows a CPU-second");
        }
        text
    }

    /// What turned for the better or the worse since the baseline.
    fn differences(&self) -> String {
        if self.baseline.is_none() {
            return String::new();
        }
        let clear: Vec<_> =
            self.changes.iter().filter(|c| c.turn != FigureChange::Unclear).collect();
        let mut text = format!(
            "\nAgainst the baseline: {} of {} figures differ by more than chance allows\n",
            clear.len(),
            self.changes.len(),
        );
        clear.into_iter().for_each(|change| text.push_str(&difference(change)));
        text
    }
}

fn difference(change: &Change) -> String {
    let word = if change.turn == FigureChange::Better { "better" } else { "WORSE " };
    let Change { name, scope, figure, before, after, .. } = change;
    let (low, high) = (change.difference.low, change.difference.high);
    let name = shown(&format!("{name} ({scope})"), NAME_WIDTH + 8);
    format!("  {word}  {name}  {figure}: {before:.3} -> {after:.3} [{low:+.3}, {high:+.3}]\n")
}

fn heading(kind: Kind) -> String {
    let mut line = padded(kind.heading(), NAME_WIDTH);
    let _ = write!(line, " {:>6} {:>6}", "n", "harmf.");
    for (name, _) in COLUMNS {
        let _ = write!(line, " {name:>7}");
    }
    line.push('\n');
    line
}

fn line(group: &Group) -> String {
    let scoped = matches!(group.kind, Kind::Facet | Kind::Language | Kind::Source);
    let name = match group.scope.as_str() {
        "prompt+text" => group.name.clone(),
        scope if scoped => format!("{} ({scope})", group.name),
        _ => group.name.clone(),
    };
    let mut line = padded(&shown(&name, NAME_WIDTH), NAME_WIDTH);
    let _ = write!(line, " {:>6} {:>6}", group.figures.n, group.figures.harmful);
    for (_, of) in COLUMNS {
        let figure = of(&group.figures).map_or("-".to_owned(), |one| format!("{:.3}", one.value));
        let _ = write!(line, " {figure:>7}");
    }
    line.push('\n');
    line
}

/// A name without what a terminal would obey.
fn shown(name: &str, width: usize) -> String {
    let seen = |c: char| if c.is_control() || crate::visible::is_hidden(c) { '?' } else { c };
    clipped(&name.chars().map(seen).collect::<String>(), width)
}

fn padded(name: &str, width: usize) -> String {
    format!("{name:<width$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{Judged, Outcome};
    use crate::report::Setting;
    use crate::row::{Label, Row, Task};

    #[test]
    fn the_table_has_a_line_a_group_and_obeys_no_name() {
        let row = Row {
            categories: vec!["self_harm".into()],
            source: "evil\u{1b}[31m\u{202e}".into(),
            ..Row::made_up(Label::Harmful, Task::Crisis)
        };
        let judged = Judged { crisis: 0.9, ..Judged::default() };
        let outcomes = [Outcome { row, judged, votes: vec![] }];
        let report = Report::of(Setting::default(), &outcomes, 0.5);
        let text = report.clone().to_text();
        assert!(!text.contains("CPU-second"), "nobody said how long it took: {text}");
        let text_with_time = report.with_cpu_seconds(Some(0.5)).to_text();
        assert!(text_with_time.ends_with("0.5 s of processor time, 2.0 rows a CPU-second\n"));
        assert!(text.contains("self_harm (crisis)"), "{text}");
        assert!(text.contains("evil?[31m?"), "{text}");
        assert!(!text.contains('\u{1b}') && text.contains("1 rows in 0.5 s, 2 texts/s"), "{text}");
        let crisis = text.lines().find(|line| line.starts_with("crisis ")).unwrap();
        let fields: Vec<_> = crisis.split_whitespace().collect();
        assert_eq!(fields[..6], ["crisis", "1", "1", "-", "1.000", "-"], "{crisis}");
    }
}
