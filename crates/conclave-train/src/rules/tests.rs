//! The limits of the trial hold: over the corpus always, over the public sets where `CONCLAVE_DATASETS` names
//! their folder.

use super::record::RuleFault;
use super::side::RuleGroups;
use super::side::Side::{Harmful, Neither, Ordinary};
use super::*;
use conclave_detect::RuleSummary;
use serde_json::json;

fn row(task: &str, label: &str, categories: &[&str]) -> Row {
    let row = json!({
        "id": "1", "source": "test", "task": task, "text": "", "label": label,
        "categories": categories,
    });
    serde_json::from_value(row).unwrap()
}

fn record(alarms: usize, hits: usize) -> RuleRecord {
    let rule = RuleSummary { source: "en/fraud/test", categories: &[], is_hint: false };
    let fired = Tally { ordinary: alarms, harmful: hits };
    RuleRecord::new(rule, fired, Tally { ordinary: 50_000, harmful: 5_000 })
}

#[test]
fn a_row_counts_only_for_rules_that_it_was_labelled_for() {
    let harm = RuleGroups::of_categories(&[Category::Violence]);
    let crisis = RuleGroups::of_categories(&[Category::CrisisDistress]);
    let injection = RuleGroups::of_categories(&[Category::Jailbreak]);
    let both = RuleGroups::of_categories(&[Category::SelfHarm, Category::CrisisSuicide]);
    let all = [&harm, &crisis, &injection, &both];
    let sides = |row: &Row| all.map(|groups| groups.side_of(row));
    assert_eq!(sides(&row("prompt", "safe", &[])), [Ordinary; 4]);
    assert_eq!(sides(&row("prompt", "harmful", &[])), [Harmful, Neither, Neither, Harmful]);
    assert_eq!(
        sides(&row("prompt", "harmful", &["story_jailbreak"])),
        [Harmful, Neither, Harmful, Harmful]
    );
    assert_eq!(sides(&row("crisis", "harmful", &[])), [Neither, Harmful, Neither, Harmful]);
    assert_eq!(sides(&row("crisis", "safe", &["benign_emotional"])), [Ordinary; 4]);
    assert_eq!(sides(&row("injection", "harmful", &[])), [Neither, Neither, Harmful, Neither]);
    assert_eq!(
        sides(&row("text", "safe", &["self_harm_topic"])),
        [Ordinary, Neither, Ordinary, Neither]
    );
}

#[test]
fn precision_does_not_depend_on_how_many_texts_each_side_has() {
    assert_eq!(record(50, 5).precision, Some(0.5));
    assert_eq!(record(0, 0).precision, None);
}

#[test]
fn few_alarms_condemn_no_rule_that_has_hits() {
    assert_eq!(record(2, 0).fault, Some(RuleFault::OnlyOrdinary));
    assert_eq!(record(2, 1).fault, None);
    assert_eq!(record(10, 1).fault, Some(RuleFault::Imprecise));
    assert_eq!(record(10, 100).fault, None);
    assert_eq!(record(11, 100).fault, Some(RuleFault::TooOften));
}

fn corpus_rows() -> Vec<Row> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/train");
    rows::read_folder(&folder).unwrap()
}

fn hold(rows: &[Row]) -> Trial {
    let trial = Trial::hold(rows).unwrap();
    assert!(trial.texts.ordinary > 10_000, "the trial needs ordinary texts: {:?}", trial.texts);
    trial
}

fn assert_none(breaking: &[&RuleRecord]) {
    assert!(breaking.is_empty(), "mend these rules or make them hints: {breaking:#?}");
}

/// The safe rows of the corpus are look-alikes of the harmful ones, so that it says nothing about rates.
#[test]
fn no_rule_that_decides_is_mostly_wrong_on_the_corpus() {
    let trial = hold(&corpus_rows());
    let mostly_wrong = |one: &&RuleRecord| {
        !one.is_hint && one.alarms >= 5 && one.precision.is_some_and(|precision| precision < 0.5)
    };
    assert_none(&trial.records.iter().filter(mostly_wrong).collect::<Vec<_>>());
}

#[test]
fn no_rule_that_decides_breaks_the_limits_on_all_rows() {
    let Some(folder) = std::env::var_os("CONCLAVE_DATASETS") else {
        println!("skipped: CONCLAVE_DATASETS does not name the folder of the shared sets");
        return;
    };
    let mut rows = public_rows(Path::new(&folder)).unwrap();
    rows.extend(corpus_rows());
    let trial = hold(&rows);
    assert_none(&trial.records.iter().filter(|one| one.breaks_limits()).collect::<Vec<_>>());
}
