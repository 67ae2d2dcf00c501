//! What was read in a text, under the names of OpenAI's moderation interface.

use conclave_core::{Category, Score};
use conclave_engine::Decision;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// OpenAI's names, and which of our categories stand for each. `violence/graphic` has none: nothing
/// here tells a picture in words from other violence, so its score is always 0.
const NAMES: [(&str, &[Category]); 11] = [
    ("harassment", &[Category::Harassment, Category::Manipulation]),
    ("hate", &[Category::Hate]),
    (
        "illicit",
        &[
            Category::Drugs,
            Category::Fraud,
            Category::Cyber,
            Category::Privacy,
            Category::Disinformation,
            Category::Weapons,
            Category::MassHarm,
            Category::Extremism,
        ],
    ),
    ("illicit/violent", &[Category::Weapons, Category::MassHarm, Category::Extremism]),
    ("self-harm", &[Category::SelfHarm, Category::CrisisSuicide, Category::CrisisSelfHarm]),
    ("self-harm/intent", &[Category::CrisisSuicide, Category::CrisisSelfHarm]),
    ("self-harm/instructions", &[Category::SelfHarm]),
    ("sexual", &[Category::Sexual, Category::SexualMinors]),
    ("sexual/minors", &[Category::SexualMinors]),
    ("violence", &[Category::Violence]),
    ("violence/graphic", &[]),
];

/// One result: whether the text is flagged, and the scores.
pub(crate) fn moderation_result(decision: &Decision) -> Value {
    let input = &*decision.input;
    let mut scores: BTreeMap<&str, u8> = BTreeMap::new();
    let mut flags: BTreeMap<&str, bool> = BTreeMap::new();
    let score = |category: &Category| input.categories.get(category).map_or(0, |s| s.hundredths());
    let is_over = |category: &Category| {
        let score = score(category);
        let bar = if category.is_about_crisis() {
            Score::DECISION_POINT
        } else {
            input.threshold.hundredths()
        };
        score > 0 && score >= bar
    };
    for (name, categories) in NAMES {
        scores.insert(name, categories.iter().map(score).max().unwrap_or(0));
        flags.insert(name, categories.iter().any(is_over));
    }
    // A threat is hatred or harassment together with violence.
    for (name, kind) in [("hate/threatening", "hate"), ("harassment/threatening", "harassment")] {
        let both = scores.get(kind).min(scores.get("violence")).copied().unwrap_or(0);
        let is_flagged = [kind, "violence"].iter().all(|one| flags.get(one) == Some(&true));
        scores.insert(name, both);
        flags.insert(name, is_flagged);
    }
    let flagged =
        input.is_harmful() || input.crisis.is_crisis() || flags.values().any(|flag| *flag);
    let applied: Map<_, _> = scores.keys().map(|name| ((*name).into(), json!(["text"]))).collect();
    let scores: Map<_, _> =
        scores.into_iter().map(|(name, score)| (name.into(), json!(as_fraction(score)))).collect();
    json!({
        "flagged": flagged,
        "categories": flags,
        "category_scores": scores,
        "category_applied_input_types": applied,
    })
}

/// Hundredths as a number within 0..=1.
fn as_fraction(hundredths: u8) -> f64 {
    f64::from(hundredths) / 100.0
}

/// Our own categories and scores, for what OpenAI has no name for.
pub(crate) fn own_scores(decision: &Decision) -> Value {
    let input = &*decision.input;
    let categories: Map<_, _> = input
        .categories
        .iter()
        .map(|(category, score)| (category.as_str().into(), json!(as_fraction(score.hundredths()))))
        .collect();
    json!({
        "harm": as_fraction(input.harm.hundredths()),
        "crisis": as_fraction(input.crisis.hundredths()),
        "injection": as_fraction(input.injection.hundredths()),
        "threshold": as_fraction(input.threshold.hundredths()),
        "categories": categories,
    })
}
