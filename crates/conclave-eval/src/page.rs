//! The report as one HTML page that needs nothing else: no script, no font, no network.
//!
//! **Invariant:** every text that came from a row or a file name is escaped, and its invisible
//! characters are spelled out.

use crate::baseline::{Change, FigureChange};
use crate::calibration::Bin;
use crate::detail::{Detail, Example};
use crate::estimate::{Estimate, count};
use crate::figures::{Figures, Latency};
use crate::group::{Group, Kind};
use crate::report::Report;
use crate::visible::{Piece, pieces};
use askama::Template;

/// A column: its heading and where its figure stands.
type Column = (&'static str, fn(&Figures) -> Option<Estimate>);

const HEADLINE: [Column; 11] = [
    ("recall", |figures| figures.recall),
    ("FPR", |figures| figures.fpr),
    ("AUROC", |figures| figures.auroc),
    ("AUPRC", |figures| figures.auprc),
    ("R@1 %", |figures| figures.recall_at_1_fpr),
    ("R@5 %", |figures| figures.recall_at_5_fpr),
    ("precision", |figures| figures.precision),
    ("F1", |figures| figures.f1),
    ("safe blocked", |figures| figures.safe_blocked),
    ("safe ≥ .70", |figures| figures.safe_over_floor),
    ("harmful blocked", |figures| figures.harmful_blocked),
];
/// A part has often only one class, so that the rest would be empty.
const PARTS: [Column; 7] = [
    ("recall", |figures| figures.recall),
    ("FPR", |figures| figures.fpr),
    ("safe blocked", |figures| figures.safe_blocked),
    ("harmful blocked", |figures| figures.harmful_blocked),
    ("safe ≥ .70", |figures| figures.safe_over_floor),
    ("AUROC", |figures| figures.auroc),
    ("AUPRC", |figures| figures.auprc),
];

#[derive(Template)]
#[template(path = "eval.html")]
struct Page {
    rows: usize,
    files: Vec<Piece>,
    mode: String,
    version: String,
    speed: String,
    headline: Section,
    facets: Section,
    folded: Vec<Section>,
    speeds: Vec<[String; 5]>,
    details: Vec<DetailView>,
    compared: bool,
    changes: Vec<ChangeView>,
    unclear: usize,
    bad_lines: usize,
    bad: Vec<Vec<Piece>>,
}

struct Section {
    title: &'static str,
    columns: Vec<&'static str>,
    rows: Vec<RowView>,
}

struct RowView {
    name: Vec<Piece>,
    scope: String,
    scoped: bool,
    n: usize,
    harmful: usize,
    cells: Vec<Cell>,
}

pub(crate) struct Cell {
    pub(crate) value: String,
    pub(crate) interval: String,
}

struct DetailView {
    scope: String,
    off: String,
    charts: Vec<Chart>,
    misses: Vec<ExampleView>,
    alarms: Vec<ExampleView>,
}

struct ExampleView {
    score: String,
    text: Vec<Piece>,
    row: Vec<Piece>,
}

struct ChangeView {
    name: Vec<Piece>,
    figure: String,
    before: String,
    after: String,
    difference: String,
    interval: String,
    word: &'static str,
}

/// A chart over the unit square.
struct Chart {
    title: &'static str,
    alt: String,
    x: &'static str,
    y: &'static str,
    line: String,
    dots: Vec<Dot>,
    diagonal: bool,
}

struct Dot {
    x: String,
    y: String,
    r: String,
    title: String,
}

impl Report {
    /// The report as one self-contained HTML page.
    ///
    /// # Errors
    /// When the page cannot be written out, which memory alone can cause.
    pub fn to_html(&self) -> Result<String, askama::Error> {
        let setting = &self.setting;
        let clear = self.changes.iter().filter(|change| change.turn != FigureChange::Unclear);
        let changes: Vec<_> = clear.map(change_view).collect();
        Page {
            rows: self.rows,
            files: pieces(&setting.files.join(", ")),
            mode: setting.mode.clone().unwrap_or_else(|| "of each row".to_owned()),
            version: setting.version.clone(),
            speed: self.speed_in_words(),
            headline: self.section("", &HEADLINE, &[Kind::Pooled, Kind::Task, Kind::Special]),
            facets: self.section("", &PARTS, &[Kind::Facet]),
            folded: vec![
                self.section("By language", &PARTS, &[Kind::Language]),
                self.section("By source", &PARTS, &[Kind::Source]),
            ],
            speeds: self.of_kind(Kind::Task).map(speed_view).collect(),
            details: self.details.iter().map(|detail| self.detail_view(detail)).collect(),
            compared: self.baseline.is_some(),
            unclear: self.changes.len() - changes.len(),
            changes,
            bad_lines: self.bad_lines,
            bad: self.bad.iter().map(|bad| pieces(&bad.to_string())).collect(),
        }
        .render()
    }

    fn speed_in_words(&self) -> String {
        let rate = self.texts_per_second.unwrap_or_default();
        let (latency, threads) = (self.latency, self.setting.threads);
        format!(
            "{rate:.0} texts/s on {threads} threads, {:.2} / {:.2} / {:.2} ms (p50 / p95 / p99)",
            latency.p50_ms, latency.p95_ms, latency.p99_ms,
        )
    }

    fn section(&self, title: &'static str, columns: &[Column], kinds: &[Kind]) -> Section {
        let held = kinds.iter().flat_map(|kind| self.of_kind(*kind));
        Section {
            title,
            columns: columns.iter().map(|(name, _)| *name).collect(),
            rows: held.map(|group| row_view(group, columns)).collect(),
        }
    }

    fn detail_view(&self, detail: &Detail) -> DetailView {
        let whole = |group: &&Group| group.name == detail.scope;
        let kinds = [Kind::Pooled, Kind::Task];
        let group = kinds.iter().find_map(|kind| self.of_kind(*kind).find(whole));
        DetailView {
            scope: detail.scope.clone(),
            off: detail.calibration.expected_error.map(decimal).unwrap_or_default(),
            charts: charts(detail, group.map(|group| &group.figures)),
            misses: detail.worst_misses.iter().map(example_view).collect(),
            alarms: detail.worst_false_alarms.iter().map(example_view).collect(),
        }
    }
}

fn row_view(group: &Group, columns: &[Column]) -> RowView {
    RowView {
        name: pieces(&group.name),
        scope: group.scope.clone(),
        scoped: matches!(group.kind, Kind::Facet | Kind::Language | Kind::Source),
        n: group.figures.n,
        harmful: group.figures.harmful,
        cells: columns.iter().map(|(_, of)| cell(of(&group.figures))).collect(),
    }
}

fn speed_view(group: &Group) -> [String; 5] {
    let Latency { p50_ms, p95_ms, p99_ms } = group.figures.latency;
    let times = [p50_ms, p95_ms, p99_ms].map(|time| format!("{time:.2}"));
    let [p50, p95, p99] = times;
    let rate = group.figures.texts_per_core_second.unwrap_or_default();
    [group.name.clone(), p50, p95, p99, format!("{rate:.0}")]
}

pub(crate) fn cell(figure: Option<Estimate>) -> Cell {
    match figure {
        None => Cell { value: "–".to_owned(), interval: String::new() },
        Some(figure) => Cell {
            value: decimal(figure.value),
            interval: format!("{}–{}", decimal(figure.low), decimal(figure.high)),
        },
    }
}

/// Three places, without the zero that every share begins with.
fn decimal(value: f64) -> String {
    let text = format!("{value:.3}");
    text.strip_prefix('0').map_or(text.clone(), ToOwned::to_owned)
}

fn change_view(change: &Change) -> ChangeView {
    let Change { name, scope, difference, .. } = change;
    ChangeView {
        name: pieces(&format!("{name} ({scope})")),
        figure: change.figure.clone(),
        before: decimal(change.before),
        after: decimal(change.after),
        difference: format!("{:+.3}", difference.value),
        interval: format!("{:+.3} to {:+.3}", difference.low, difference.high),
        word: if change.turn == FigureChange::Better { "better" } else { "worse" },
    }
}

fn example_view(example: &Example) -> ExampleView {
    let Example { id, source, language, categories, .. } = example;
    let facets = categories.join(", ");
    ExampleView {
        score: format!("{:.2}", example.score),
        text: pieces(&example.excerpt),
        row: pieces(&format!("{id} · {source} · {language} · {facets}")),
    }
}

/// The curves, with a dot where the judge stands on them, and the calibration.
fn charts(detail: &Detail, figures: Option<&Figures>) -> Vec<Chart> {
    let scope = &detail.scope;
    let chart = |title, x, y, points: &[[f64; 2]], dots| Chart {
        title,
        alt: format!("{title} of {scope}: {y} against {x}"),
        x,
        y,
        line: points.iter().map(|[x, y]| format!("{},{} ", across(*x), up(*y))).collect(),
        dots,
        diagonal: title != "Precision and recall",
    };
    let standing = |x: fn(&Figures) -> Option<Estimate>, y: fn(&Figures) -> Option<Estimate>| {
        let at = figures.and_then(|figures| Some((x(figures)?.value, y(figures)?.value)));
        at.into_iter().map(|(x, y)| standing(x, y)).collect::<Vec<_>>()
    };
    let (roc, pr) = (
        standing(|figures| figures.fpr, |figures| figures.recall),
        standing(|figures| figures.recall, |figures| figures.precision),
    );
    vec![
        chart("ROC curve", "false alarms (FPR)", "recall", &detail.roc, roc),
        chart("Precision and recall", "recall", "precision", &detail.pr, pr),
        chart("Calibration", "score", "share harmful", &[], dots(&detail.calibration.bins)),
    ]
}

fn standing(x: f64, y: f64) -> Dot {
    let title = format!("as it decides now: {x:.3}, {y:.3}");
    Dot { x: across(x), y: up(y), r: "2.5".to_owned(), title }
}

/// A dot a bin, its area by its rows.
fn dots(bins: &[Bin]) -> Vec<Dot> {
    let most = bins.iter().map(|bin| bin.n).max().unwrap_or(0).max(1);
    let dot = |bin: &Bin| {
        let (score, harmful) = (bin.score?, bin.harmful?);
        Some(Dot {
            x: across(score),
            y: up(harmful),
            r: format!("{:.1}", 1.2 + 4.0 * (count(bin.n) / count(most)).sqrt()),
            title: format!("{} rows, score {score:.2}, {harmful:.2} harmful", bin.n),
        })
    };
    bins.iter().filter_map(dot).collect()
}

fn across(x: f64) -> String {
    format!("{:.1}", 20.0 + 125.0 * x)
}

fn up(y: f64) -> String {
    format!("{:.1}", 110.0 - 105.0 * y)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{Judged, Outcome};
    use crate::report::{BadLine, Setting};
    use crate::row::{Label, Row, Task};

    fn report(text: &str) -> Report {
        let outcome = |label, harm: f32| Outcome {
            row: Row {
                id: text.into(),
                categories: vec![text.into()],
                language: text.into(),
                source: text.into(),
                excerpt: text.into(),
                ..Row::made_up(label, Task::Prompt)
            },
            judged: Judged { harm, blocked: harm >= 0.3, ..Judged::default() },
            votes: vec![],
        };
        let setting = Setting { files: vec![text.into()], ..Setting::default() };
        let rows = [outcome(Label::Harmful, 0.1), outcome(Label::Safe, 0.9)];
        let bad = BadLine { file: text.into(), line: 3, message: text.into() };
        Report::of(setting, &rows, 1.0).with_bad(1, vec![bad])
    }

    #[test]
    fn hostile_text_stays_text() {
        let hostile = "<script>alert(1)</script>\"><img src=x onerror=y>\u{202e}\u{200b}";
        let page = report(hostile).to_html().unwrap();
        assert!(!page.contains("<script") && !page.contains("<img"), "{page}");
        assert!(!page.contains('\u{202e}') && !page.contains('\u{200b}'));
        assert!(page.contains("&#60;script&#62;") || page.contains("&lt;script&gt;"));
        assert!(page.contains("<mark>U+202E</mark><mark>U+200B</mark>"));
    }

    #[test]
    fn the_page_stands_alone_and_holds_its_parts() {
        let page = report("plain").to_html().unwrap();
        for part in ["In short", "By facet", "ROC curve", "Calibration", "What went worst"] {
            assert!(page.contains(part), "{part}");
        }
        assert!(page.contains("<polyline") && page.contains("<circle"));
        assert!(page.contains("prefers-color-scheme: dark"));
        assert!(!page.contains("http://") && !page.contains("https://") && !page.contains("NaN"));
        assert!(page.contains("1 lines could not be measured") && page.contains("plain:3: plain"));
        assert!(!page.contains("Against the baseline"));
    }

    #[test]
    fn a_baseline_has_a_part_of_its_own() {
        let before = report("plain");
        let page = report("plain").against(&before).to_html().unwrap();
        assert!(page.contains("Against the baseline") && page.contains("No figure differs"));
    }

    #[test]
    fn shares_are_written_short() {
        assert_eq!(
            (decimal(0.5), decimal(1.0), decimal(0.0)),
            (".500".into(), "1.000".into(), ".000".into())
        );
    }
}
