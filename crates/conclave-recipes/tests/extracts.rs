//! Extracts fit their recipes' schemas, and every quote in them stands where it says.
#![allow(clippy::unwrap_used, reason = "tests say what they expect")]

use conclave_recipes::{
    Empathy, Recipes, Transcript, check_citations, cluster_purity, extract_insights,
    extract_interview, extract_playbook, extract_reply,
};
use serde_json::{Value, json};

fn transcripts() -> Vec<Transcript> {
    Transcript::given(&json!({"transcripts": [{"id": "transcript-789", "segments": [
        {"index": 0, "speaker": "Interviewer", "text": "What happened with your housing? That sounds hard for you."},
        {"index": 1, "speaker": "Mara", "text": "The house was cold and the landlord wanted us out. I was scared of being evicted."},
        {"index": 2, "speaker": "Mara", "text": "My employment ended when the factory closed. We need a place now."},
        {"index": 3, "speaker": "Mara", "text": "The landlord never answered. I was tired, but my sister helped and I have hope."},
        {"index": 4, "speaker": "Mara", "text": "The ceremony is not for others.", "sacred": true},
    ]}]}))
    .unwrap()
}

fn fits(recipe: &str, result: &Value) -> f64 {
    let recipe = Recipes::builtin().unwrap().find(recipe).unwrap();
    let problems = recipe.output.problems(result);
    assert!(problems.is_empty(), "{problems:?} in {result}");
    let report = check_citations(result, &recipe.claims, &transcripts());
    assert!(report.faults.is_empty(), "{:?}", report.faults);
    assert_eq!(report.unsupported, 0, "{result}");
    f64::from(report.claims)
}

#[test]
fn interview_analyzer_extracts_themes_that_are_spoken_of() {
    let input = json!({
        "focus_areas": ["housing", "employment", "astronomy"],
        "include_emotion_trajectory": true, "include_risk_triggers": true,
    });
    let result = extract_interview(&input, &transcripts());
    assert!(fits("interview-analyzer", &result) > 6.0);
    assert_eq!(result["extractive"], true);
    let themes: Vec<_> =
        result["themes"].as_array().unwrap().iter().map(|t| t["theme"].as_str().unwrap()).collect();
    assert!(themes.contains(&"housing") && themes.contains(&"employment"), "{themes:?}");
    assert!(themes.contains(&"landlord"), "words that passages share: {themes:?}");
    assert!(!themes.contains(&"astronomy"), "nothing is said of it");
    assert_eq!(result["risk_triggers"][0]["trigger"], "loss of home");
    assert!(!result.to_string().contains("ceremony"), "what is sacred is left out");
}

#[test]
fn insight_synthesizer_extracts_clusters_and_needs() {
    let result = extract_insights(&transcripts(), &Empathy::builtin().unwrap(), true);
    assert!(fits("insight-synthesizer", &result) >= 2.0);
    assert_eq!(result["emerging_needs"][0]["need"], "We need a place now.");
    assert_eq!(result["emerging_needs"][0]["urgency"], "high");
    assert_eq!(cluster_purity(&result), Some(10_000));
    assert!(result["empathy_score_trend"][0]["score"].as_f64().unwrap() > 2.0);
}

#[test]
fn de_escalator_drafts_from_what_the_person_wrote() {
    let thread = json!({"ticket_thread": [
        {"author": "Ana", "text": "I am furious. Nobody called me back!"},
        {"author": "support", "text": "We are looking into it."},
    ]});
    let result = extract_reply(&thread);
    fits("de-escalator", &result);
    let draft = result["draft_response"].as_str().unwrap();
    assert!(draft.contains("I am furious.") && draft.contains("angry"), "{draft}");
    let score = Empathy::builtin().unwrap().score(draft, conclave_recipes::Address::To, None);
    assert!(score >= 45, "the draft passes its own threshold: {score}");
}

#[test]
fn playbook_composer_adds_up_costs() {
    let input = json!({
        "segment_definition": {"criteria": ["tenants"], "count": 100}, "goals": ["a fair lease"],
        "budget_envelope": {"microusd": 1_000, "per_message_microusd": 20},
    });
    let result = extract_playbook(&input);
    fits("playbook-composer", &result);
    assert_eq!(result["estimated_cost"], json!({"microusd": 2_000, "within_budget": false}));
    assert_eq!(result["estimated_impact"]["people"], 100);
}

#[test]
fn nothing_given_gives_nothing_and_no_panic() {
    for input in
        [json!({}), json!(null), json!({"ticket_thread": 3, "goals": {}, "focus_areas": [1]})]
    {
        let empty = extract_interview(&input, &[]);
        assert_eq!(empty["themes"], json!([]));
        assert!(extract_reply(&input).is_object() && extract_playbook(&input).is_object());
    }
}
