//! Owns what is counted of runs, from figures that were recorded with each of them.
//!
//! **Invariant:** a figure that nobody could know is absent, never zero.

use crate::citation::share;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Every figure that can be asked for.
pub const NAMES: [&str; 13] = [
    "consent_coverage_rate",
    "pii_false_negative_rate",
    "citation_coverage",
    "hallucination_rate",
    "human_edit_distance",
    "human_label_agreement_rate",
    "policy_violation_rate",
    "escalation_rate",
    "cluster_purity",
    "budget_adherence",
    "downgrade_rate",
    "cost_per_successful_run",
    "latency_slo_compliance",
];

/// What a person found when they looked at a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reviewed {
    /// Whether they agreed with it.
    pub agreed: bool,
    /// How much they changed, in hundredths of a percent.
    #[serde(default)]
    pub edit_distance: Option<u32>,
    /// Whether they found identifying data that had been missed; absent where they did not look.
    #[serde(default)]
    pub pii_missed: Option<bool>,
}

/// The figures of one run: numbers and words of closed lists only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunFigures {
    /// How it ended.
    pub outcome: String,
    /// Whether consent was asked for, and was there.
    pub consent: Option<bool>,
    /// How many claims its result makes.
    pub claims: u32,
    /// How many have a citation that holds.
    pub cited: u32,
    /// How many have none, or one that does not.
    pub unsupported: u32,
    /// Whether a guard stopped it.
    pub blocked: bool,
    /// Whether it waits, or waited, for a person.
    pub held: bool,
    /// Whether another model than the first was asked because of money.
    pub downgraded: bool,
    /// Whether it stayed within the money set aside; absent where none was.
    pub within_budget: Option<bool>,
    /// What it cost, in millionths of a dollar.
    pub cost: u64,
    /// How long it took.
    pub duration_ms: u64,
    /// How long it was allowed to take.
    pub slo_ms: u64,
    /// How much of its clusters is of one kind, in hundredths of a percent.
    pub purity: Option<u32>,
    /// What a person found.
    pub review: Option<Reviewed>,
}

impl RunFigures {
    /// Whether there is a result that can be used: it left at once, or people let it.
    #[must_use]
    pub fn succeeded(&self) -> bool {
        let left = matches!(self.outcome.as_str(), "delivered" | "redacted");
        left || self.review.is_some_and(|review| review.agreed)
    }
}

/// These figures over these runs. Rates are 0 to 1, money is millionths of a dollar.
#[must_use]
pub fn kpis(names: &[String], runs: &[RunFigures]) -> Value {
    let known = names.iter().filter(|name| NAMES.contains(&name.as_str()));
    let figures: Map<_, _> = known.map(|name| (name.clone(), kpi(name, runs))).collect();
    json!({"runs": runs.len(), "figures": figures})
}

fn kpi(name: &str, runs: &[RunFigures]) -> Value {
    let all = u64::try_from(runs.len()).unwrap_or(u64::MAX);
    let sum = |of: fn(&RunFigures) -> u64| runs.iter().map(of).sum::<u64>();
    let reviews = || runs.iter().filter_map(|run| run.review.as_ref());
    match name {
        "consent_coverage_rate" => of_those(runs.iter().filter_map(|run| run.consent)),
        "pii_false_negative_rate" => of_those(reviews().filter_map(|review| review.pii_missed)),
        "citation_coverage" => rate(sum(|run| run.cited.into()), sum(|run| run.claims.into())),
        "hallucination_rate" => {
            rate(sum(|run| run.unsupported.into()), sum(|run| run.claims.into()))
        }
        "human_edit_distance" => mean(reviews().filter_map(|review| review.edit_distance)),
        "human_label_agreement_rate" => of_those(reviews().map(|review| review.agreed)),
        "policy_violation_rate" => rate(sum(|run| run.blocked.into()), all),
        "escalation_rate" => rate(sum(|run| run.held.into()), all),
        "cluster_purity" => mean(runs.iter().filter_map(|run| run.purity)),
        "budget_adherence" => of_those(runs.iter().filter_map(|run| run.within_budget)),
        "downgrade_rate" => rate(sum(|run| run.downgraded.into()), all),
        "cost_per_successful_run" => {
            let successes = sum(|run| run.succeeded().into());
            sum(|run| run.cost).checked_div(successes).map_or(Value::Null, Value::from)
        }
        "latency_slo_compliance" => of_those(runs.iter().map(|run| run.duration_ms <= run.slo_ms)),
        _ => Value::Null,
    }
}

fn of_those(answers: impl Iterator<Item = bool>) -> Value {
    let (yes, all) = answers.fold((0, 0), |(yes, all), one| (yes + u64::from(one), all + 1));
    rate(yes, all)
}

fn rate(part: u64, whole: u64) -> Value {
    let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    share(small(part), small(whole)).map_or(Value::Null, |share| json!(f64::from(share) / 1e4))
}

fn mean(shares: impl Iterator<Item = u32>) -> Value {
    let (sum, count) = shares.fold((0, 0), |(sum, count), one| (sum + u64::from(one), count + 1));
    rate(sum, count * 10_000)
}

/// So many words of each text are compared.
const WORDS_MAX: usize = 1_000;

/// How much of a text somebody changed, in hundredths of a percent: the words that were put in, taken out or
/// replaced, of the words of the longer one.
#[must_use]
pub fn edit_distance(before: &str, after: &str) -> u32 {
    let words = |text: &str| -> Vec<String> {
        text.split_whitespace().take(WORDS_MAX).map(str::to_owned).collect()
    };
    let (before, after) = (words(before), words(after));
    let longer = before.len().max(after.len());
    let mut row: Vec<usize> = (0..=after.len()).collect();
    for (taken, old) in before.iter().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], taken + 1);
        for (at, new) in after.iter().enumerate() {
            let replaced = corner + usize::from(old != new);
            corner = row[at + 1];
            row[at + 1] = replaced.min(corner + 1).min(row[at] + 1);
        }
    }
    let changed = u32::try_from(row[after.len()]).unwrap_or(u32::MAX);
    share(changed, u32::try_from(longer).unwrap_or(u32::MAX)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs() -> Vec<RunFigures> {
        let good = RunFigures {
            outcome: "delivered".into(),
            consent: Some(true),
            claims: 4,
            cited: 4,
            cost: 300,
            duration_ms: 10,
            slo_ms: 5_000,
            within_budget: Some(true),
            purity: Some(8_000),
            review: Some(Reviewed {
                agreed: true,
                edit_distance: Some(1_000),
                pii_missed: Some(false),
            }),
            ..RunFigures::default()
        };
        let bad = RunFigures {
            outcome: "held".into(),
            claims: 4,
            cited: 2,
            unsupported: 2,
            held: true,
            downgraded: true,
            duration_ms: 9_000,
            within_budget: Some(false),
            review: Some(Reviewed { agreed: false, pii_missed: Some(true), edit_distance: None }),
            purity: None,
            ..good.clone()
        };
        let stopped = RunFigures {
            outcome: "blocked".into(),
            consent: Some(false),
            blocked: true,
            slo_ms: 5_000,
            ..RunFigures::default()
        };
        vec![good.clone(), good, bad, stopped]
    }

    #[test]
    fn every_kpi_is_computed_from_runs() {
        let names: Vec<_> = NAMES.iter().map(|name| (*name).to_owned()).collect();
        let made = kpis(&names, &runs());
        assert_eq!(made["runs"], 4);
        for (name, expected) in [
            ("consent_coverage_rate", json!(0.75)),
            ("pii_false_negative_rate", json!(0.3333)),
            ("citation_coverage", json!(0.8333)),
            ("hallucination_rate", json!(0.1666)),
            ("human_edit_distance", json!(0.1)),
            ("human_label_agreement_rate", json!(0.6666)),
            ("policy_violation_rate", json!(0.25)),
            ("escalation_rate", json!(0.25)),
            ("cluster_purity", json!(0.8)),
            ("budget_adherence", json!(0.6666)),
            ("downgrade_rate", json!(0.25)),
            ("cost_per_successful_run", json!(450)),
            ("latency_slo_compliance", json!(0.75)),
        ] {
            assert_eq!(made["figures"][name], expected, "{name}");
        }
    }

    #[test]
    fn an_approved_run_is_a_success() {
        let held = RunFigures { outcome: "held".into(), cost: 90, ..RunFigures::default() };
        let approved = Reviewed { agreed: true, ..Reviewed::default() };
        let approved = RunFigures { review: Some(approved), ..held.clone() };
        let made = kpis(&["cost_per_successful_run".to_owned()], &[held.clone(), approved]);
        assert_eq!(made["figures"]["cost_per_successful_run"], 180);
        let none = kpis(&["cost_per_successful_run".to_owned()], &[held]);
        assert!(none["figures"]["cost_per_successful_run"].is_null());
    }

    #[test]
    fn an_edit_is_as_large_as_the_words_it_changes() {
        for (before, after, expected) in [
            ("", "", 0),
            ("one two three four", "one two three four", 0),
            ("one two three four", "one 2 three four", 2_500),
            ("one two three four", "one two", 5_000),
            ("one", "other", 10_000),
            ("", "all of it is new", 10_000),
            ("b c d e", "a b c d", 5_000),
        ] {
            assert_eq!(edit_distance(before, after), expected, "{before} -> {after}");
        }
    }

    #[test]
    fn what_nobody_could_know_is_absent() {
        let names: Vec<_> = NAMES.iter().map(|name| (*name).to_owned()).collect();
        let made = kpis(&names, &[]);
        assert!(made["figures"].as_object().unwrap().values().all(Value::is_null), "{made}");
    }
}
