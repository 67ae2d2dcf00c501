//! What got through in disguise, as text for a terminal and as one HTML page.
//!
//! **Invariant:** every text that came from a row or a file name is escaped, and its invisible
//! characters are spelled out: here they are the point.

use crate::estimate::Estimate;
use crate::page::{Cell, cell};
use crate::redteam::{Disguised, MutationFigures, RedteamReport};
use crate::visible::{Piece, pieces};
use askama::Template;

#[derive(Template)]
#[template(path = "redteam.html")]
struct Page {
    files: Vec<Piece>,
    mode: String,
    version: String,
    harmful: usize,
    caught_plain: usize,
    safe: usize,
    passed_plain: usize,
    bad_lines: usize,
    bad: Vec<Vec<Piece>>,
    mutations: Vec<MutationView>,
}

struct MutationView {
    name: &'static str,
    tried: usize,
    kept: Cell,
    safe_tried: usize,
    rise: Cell,
    got_through: Vec<ExampleView>,
    false_alarms: Vec<ExampleView>,
}

struct ExampleView {
    score: String,
    plain: Vec<Piece>,
    disguised: Vec<Piece>,
    row: Vec<Piece>,
}

impl RedteamReport {
    /// The report as one self-contained HTML page.
    ///
    /// # Errors
    /// When the page cannot be written out, which memory alone can cause.
    pub fn to_html(&self) -> Result<String, askama::Error> {
        let setting = &self.setting;
        Page {
            files: pieces(&setting.files.join(", ")),
            mode: setting.mode.clone().unwrap_or_else(|| "of each row".to_owned()),
            version: setting.version.clone(),
            harmful: self.harmful,
            caught_plain: self.caught_plain,
            safe: self.safe,
            passed_plain: self.passed_plain,
            bad_lines: self.bad_lines,
            bad: self.bad.iter().map(|bad| pieces(&bad.to_string())).collect(),
            mutations: self.mutations.iter().map(mutation_view).collect(),
        }
        .render()
    }

    /// The report as a compact table, the worst first.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!(
            "{:<20} {:>7} {:>12}  {:<14} {:>7} {:>10}  {:<14}\n",
            "disguise", "tried", "still caught", "95 %", "safe", "new alarms", "95 %",
        );
        self.mutations.iter().for_each(|one| text.push_str(&line(one)));
        let Self { harmful, caught_plain, safe, passed_plain, seconds, .. } = self;
        text.push_str(&format!(
            "\n{caught_plain} of {harmful} harmful rows are caught in plain words, {passed_plain} of \
             {safe} safe rows pass; {seconds:.1} s\n",
        ));
        text
    }
}

fn line(one: &MutationFigures) -> String {
    let share = |figure: Option<Estimate>| match figure {
        None => ("-".to_owned(), String::new()),
        Some(Estimate { value, low, high }) => {
            (format!("{value:.3}"), format!("{low:.3} - {high:.3}"))
        }
    };
    let ((kept, within), (rise, about)) = (share(one.kept), share(one.rise));
    let MutationFigures { mutation, tried, safe_tried, .. } = one;
    let line = format!(
        "{mutation:<20} {tried:>7} {kept:>12}  {within:<14} {safe_tried:>7} {rise:>10}  {about:<14}",
    );
    format!("{}\n", line.trim_end())
}

fn mutation_view(one: &MutationFigures) -> MutationView {
    MutationView {
        name: one.mutation,
        tried: one.tried,
        kept: cell(one.kept),
        safe_tried: one.safe_tried,
        rise: cell(one.rise),
        got_through: one.got_through.iter().map(example_view).collect(),
        false_alarms: one.false_alarms.iter().map(example_view).collect(),
    }
}

fn example_view(example: &Disguised) -> ExampleView {
    let Disguised { id, source, language, .. } = example;
    ExampleView {
        score: format!("{:.2}", example.score),
        plain: pieces(&example.plain),
        disguised: pieces(&example.disguised),
        row: pieces(&format!("{id} · {source} · {language}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutation::Mutation;
    use crate::redteam::{Attack, Trial};
    use crate::report::Setting;

    fn report() -> RedteamReport {
        let hostile = "<script>\u{200b}</script>".to_owned();
        let example = Disguised {
            id: hostile.clone(),
            source: hostile.clone(),
            language: hostile.clone(),
            score: 0.1,
            plain: hostile.clone(),
            disguised: hostile,
        };
        let trial = Trial { mutation: Mutation::ZeroWidth, flagged: false, example: Some(example) };
        let attack = Attack { harmful: true, flagged_plain: true, trials: vec![trial] };
        RedteamReport::of(Setting::default(), vec![attack], 2.0)
    }

    #[test]
    fn hostile_text_stays_text() {
        let page = report().to_html().unwrap();
        assert!(!page.contains("<script") && !page.contains('\u{200b}'), "{page}");
        assert!(page.contains("<mark>U+200B</mark>") && page.contains("zero_width"));
    }

    #[test]
    fn the_table_says_what_was_kept() {
        let text = report().to_text();
        assert!(text.contains("1 of 1 harmful rows are caught in plain words"), "{text}");
        let line = text.lines().find(|line| line.starts_with("zero_width")).unwrap();
        let fields: Vec<_> = line.split_whitespace().collect();
        assert_eq!(fields[..4], ["zero_width", "1", "0.000", "0.000"], "{line}");
    }
}
