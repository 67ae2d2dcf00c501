//! The built-in recipes hold what the specification says of each, and bad files are refused.

use super::*;
use conclave_core::{GuardAction, GuardKind};

fn recipes() -> Recipes {
    Recipes::builtin().unwrap()
}

#[test]
fn there_are_seven_recipes() {
    let recipes = recipes();
    let names: Vec<_> = recipes.iter().map(|recipe| recipe.name.as_str()).collect();
    let expected = [
        "consent-intake",
        "cost-steward",
        "de-escalator",
        "governance-sentinel",
        "insight-synthesizer",
        "interview-analyzer",
        "playbook-composer",
    ];
    assert_eq!(names, expected);
}

/// Name, tokens in and out, whether a person approves, guards with their action and whether they block.
type Row = (&'static str, u32, u32, bool, &'static [(GuardKind, GuardAction, bool)]);

const TABLE: &[Row] = {
    use GuardAction::{Block, ElderReview, Flag, Redact};
    use GuardKind::{Budget, Consent, Culture, Jurisdiction, PersonalData, Toxicity};
    &[
        (
            "consent-intake",
            8_000,
            4_000,
            false,
            &[
                (Culture, Flag, false),
                (Consent, Block, true),
                (PersonalData, Redact, true),
                (Jurisdiction, Block, true),
            ],
        ),
        (
            "interview-analyzer",
            16_000,
            4_000,
            false,
            &[(Culture, ElderReview, true), (Consent, Block, true), (PersonalData, Redact, false)],
        ),
        (
            "de-escalator",
            8_000,
            2_000,
            true,
            &[
                (Culture, ElderReview, true),
                (Consent, Block, true),
                (PersonalData, Redact, true),
                (Toxicity, Block, true),
            ],
        ),
        (
            "insight-synthesizer",
            32_000,
            8_000,
            false,
            &[(Culture, Flag, false), (Consent, Block, true), (PersonalData, Redact, true)],
        ),
        (
            "playbook-composer",
            8_000,
            4_000,
            true,
            &[
                (Culture, Flag, false),
                (Consent, Block, true),
                (PersonalData, Redact, true),
                (Budget, Block, true),
            ],
        ),
        ("governance-sentinel", 4_000, 1_000, false, &[]),
        ("cost-steward", 2_000, 500, false, &[]),
    ]
};

#[test]
fn limits_guards_and_actions_are_those_of_the_specification() {
    for (name, tokens_in, tokens_out, human, guards) in TABLE {
        let recipe = recipes().find(name).unwrap();
        assert_eq!(recipe.limits.input_tokens_max, *tokens_in, "{name}");
        assert_eq!(recipe.limits.output_tokens_max, *tokens_out, "{name}");
        assert_eq!(recipe.human_in_loop, *human, "{name}");
        let got: Vec<_> =
            recipe.guards.iter().map(|rule| (rule.guard, rule.action, rule.blocking)).collect();
        assert_eq!(got, *guards, "{name}");
    }
    let line = |name| recipes().find(name).unwrap().guard(GuardKind::Toxicity).unwrap().threshold;
    assert_eq!(line("de-escalator"), Some(30));
}

#[test]
fn models_and_fallbacks_are_those_of_the_specification() {
    for recipe in recipes().iter() {
        let is_guard = matches!(recipe.name.as_str(), "governance-sentinel" | "cost-steward");
        let expected = if is_guard {
            ModelClasses { class: ModelClass::Small, fallback: None }
        } else {
            ModelClasses { class: ModelClass::Large, fallback: Some(ModelClass::Small) }
        };
        assert_eq!(recipe.models, expected, "{}", recipe.name);
        assert!(!recipe.kpis.is_empty(), "{} counts something", recipe.name);
    }
}

#[test]
fn thresholds_of_recipes_are_those_of_the_specification() {
    let limits = |name| recipes().find(name).unwrap().thresholds(Sensitivity::Low);
    assert_eq!(limits("de-escalator").empathy_min, 45);
    assert_eq!(limits("interview-analyzer").empathy_min, 40);
    assert_eq!(limits("governance-sentinel").hallucination_max, 10);
    assert_eq!(limits("insight-synthesizer"), Thresholds::of(Sensitivity::Low));
}

const OWN: &str = r#"
name = "story-titles"
title = "Suggests titles"
work = "model"
human_in_loop = false
[models]
class = "small"
[limits]
input_tokens_max = 100
output_tokens_max = 100
[[guards]]
guard = "pii"
action = "block"
[prompt]
user = "Job: a title. <material>{{input}}</material>"
[schema]
input = '{"type": "object"}'
output = '{"type": "object"}'
"#;

#[test]
fn an_organisation_can_add_a_recipe_of_its_own() {
    let own = [("titles.toml".to_owned(), OWN.to_owned())];
    let recipes = Recipes::with(&own).unwrap();
    assert_eq!(recipes.find("story-titles").unwrap().title, "Suggests titles");
    assert_eq!(recipes.iter().count(), 8);
}

#[test]
fn a_bad_file_is_refused_with_a_reason() {
    for (from, to, why) in [
        ("story-titles", "cost-steward", "there is a recipe of this name already"),
        ("story-titles", "runs", "is not `runs`"),
        ("story-titles", "Story", "lower-case letters"),
        ("action = \"block\"", "action = \"flag\"", "the guard `pii` cannot `flag`"),
        ("[models]", "[[guards]]\nguard=\"pii\"\naction=\"block\"\n[models]", "twice"),
        ("{{input}}", "{{secrets}}", "there is no placeholder `secrets`"),
        ("{{input}}", "nothing", "never shows the material"),
        ("'{\"type\": \"object\"}'", "'{\"pattern\": \"a\"}'", "is not checked here"),
        ("'{\"type\": \"object\"}'", "'{'", "is not JSON"),
        ("work = \"model\"", "work = \"cost_steward\"", "if, and only if"),
        ("title =", "titel =", "unknown field"),
        ("human_in_loop = false", "human_in_loop = false\nkpis = [\"luck\"]", "no KPI `luck`"),
    ] {
        let text = OWN.replace(from, to);
        let error = Recipes::with(&[("own.toml".to_owned(), text)]).unwrap_err().to_string();
        assert!(error.contains(why) && error.contains("own.toml"), "{error} should say {why}");
    }
}
