//! The figures as a table for people and as JSON for programs.

use super::bootstrap::{Compared, Interval};
use serde::Serialize;
use std::fmt::Write;

/// Everything that was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// How often rows were drawn for the intervals.
    pub resamples: usize,
    /// What was learned from, in the order of the columns.
    pub trainings: Vec<Training>,
    /// The figures, in order.
    pub figures: Vec<FigureLine>,
}

/// What one column learned from.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Training {
    /// The column.
    pub name: &'static str,
    /// How many rows, framed copies included.
    pub rows: usize,
    /// Whether a transformer's logits were added.
    pub transformer: bool,
    /// What no row showed: what the models say of it means nothing.
    pub untaught: Vec<&'static str>,
}

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigureLine {
    /// On which rows: `dev` or `corpus/test`.
    pub set: &'static str,
    /// What it says.
    pub name: String,
    /// How many rows were measured.
    pub measured: usize,
    /// How many they were held against.
    pub against: usize,
    /// The three trainings; none where a group is empty.
    #[serde(flatten)]
    pub compared: Option<Compared>,
}

impl Report {
    /// The table, and what its columns mean.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut text = String::from(
            "| figure | n | public | corpus | both | both - public |\n|---|---|---|---|---|---|\n",
        );
        for line in &self.figures {
            let _ = writeln!(text, "{}", row(line));
        }
        let rows: Vec<_> =
            self.trainings.iter().map(|one| format!("{} {}", one.name, one.rows)).collect();
        let _ = writeln!(
            text,
            "\n{}. Rows learned from, framed copies included: {}. n: rows measured / rows they are \
             held against. In brackets: 95 % of {} draws of both groups, the same draws for all \
             columns.",
            self.tiers(),
            rows.join(", "),
            self.resamples
        );
        for one in self.trainings.iter().filter(|one| !one.untaught.is_empty()) {
            let _ = writeln!(
                text,
                "\nNo row of {} shows {}: its figures there are those of a model that was never \
                 taught, and a difference from them says little. Chance is an AUROC of .500.",
                one.name,
                one.untaught.join(" or ")
            );
        }
        text
    }

    fn tiers(&self) -> String {
        let with = self.trainings.iter().filter(|one| one.transformer);
        let names: Vec<_> = with.map(|one| one.name).collect();
        let joined = names.join(", ");
        match names.len() {
            0 => "N-grams alone".to_owned(),
            count if count == self.trainings.len() => {
                format!("N-grams and transformers ({joined})")
            }
            _ => format!(
                "N-grams, and a transformer for {joined} only: columns with and without one are \
                 not comparable"
            ),
        }
    }
}

fn row(line: &FigureLine) -> String {
    let FigureLine { set, name, measured, against, compared } = line;
    let cells = match compared {
        None => ["-"; 4].map(str::to_owned),
        Some(Compared { public, corpus, both, gain }) => {
            [cell(public, plain), cell(corpus, plain), cell(both, plain), cell(gain, signed)]
        }
    };
    format!("| {set}: {name} | {measured} / {against} | {} |", cells.join(" | "))
}

fn cell(interval: &Interval, number: fn(f64) -> String) -> String {
    let Interval { value, low, high } = *interval;
    format!("{} [{}, {}]", number(value), number(low), number(high))
}

/// Three digits, without the zero before the point.
fn plain(value: f64) -> String {
    let digits = format!("{value:.3}");
    digits.strip_prefix('0').map(str::to_owned).unwrap_or(digits)
}

fn signed(value: f64) -> String {
    let size = plain(value.abs());
    match size.as_str() {
        ".000" => size,
        _ if value < 0.0 => format!("-{size}"),
        _ => format!("+{size}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(transformers: &[&str]) -> Report {
        let interval = |value: f64| Interval { value, low: value - 0.0125, high: value + 0.01 };
        let [public, corpus, both, gain] = [0.8, 0.7, 0.99, -0.0001].map(interval);
        let line = |name: &str, compared| FigureLine {
            set: "dev",
            name: name.to_owned(),
            measured: 10,
            against: 20,
            compared,
        };
        let compared = Compared { public, corpus, both, gain };
        let training = |(name, untaught)| Training {
            name,
            rows: 5,
            transformer: transformers.contains(&name),
            untaught,
        };
        Report {
            resamples: 200,
            trainings: [("public", vec!["crisis"]), ("corpus", Vec::new()), ("both", Vec::new())]
                .map(training)
                .into(),
            figures: vec![line("replies: AUROC", Some(compared)), line("none", None)],
        }
    }

    #[test]
    fn every_figure_is_a_row_of_the_table() {
        let table = report(&[]).markdown();
        let lines: Vec<_> = table.lines().collect();
        assert_eq!(
            lines[2],
            "| dev: replies: AUROC | 10 / 20 | .800 [.788, .810] | .700 [.688, .710] \
             | .990 [.978, 1.000] | .000 [-.013, +.010] |"
        );
        assert_eq!(lines[3], "| dev: none | 10 / 20 | - | - | - | - |");
        assert!(table.contains("N-grams alone"));
        assert!(!table.contains("not comparable"));
    }

    #[test]
    fn a_transformer_for_some_columns_only_is_pointed_out() {
        let some = report(&["both"]).markdown();
        assert!(some.contains("a transformer for both only") && some.contains("not comparable"));
        let all = report(&["public", "corpus", "both"]).markdown();
        assert!(all.contains("(public, corpus, both)") && !all.contains("not comparable"));
    }

    #[test]
    fn a_head_that_was_never_taught_is_pointed_out() {
        let table = report(&[]).markdown();
        assert!(table.contains("No row of public shows crisis:"), "{table}");
        assert!(!table.contains("No row of corpus"), "{table}");
    }

    #[test]
    fn json_has_the_same_names() {
        let json = serde_json::to_value(report(&[])).unwrap();
        assert_eq!(json["figures"][0]["gain"]["low"], -0.0126);
        assert_eq!(json["figures"][1].get("gain"), None);
        assert_eq!(json["trainings"][0]["untaught"][0], "crisis");
    }
}
