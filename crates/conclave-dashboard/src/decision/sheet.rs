//! One decision, put together for its page.

use super::deliberation::Course;
use super::input::{self, InputScore, Portion, Reading};
use super::seen::{Delivery, Guarded, Seen};
use super::talk::{Speech, Talk};
use crate::figure::{Moment, bytes, count, dollars, duration, score};
use crate::label::{Badge, Shape, Tone, outcome_meaning, outcome_word};
use crate::text::{Ink, Text};
use conclave_core::Outcome;
use conclave_engine::{StoredDecision, replay};
use conclave_ledger::Value;
use conclave_people::{AppealStanding, DecisionReader, ReviewStanding, decision_view, explain};
use serde_json::Value as Json;

/// How much of a decision is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// Everything.
    Words,
    /// Everything that is left: the words were erased.
    Erased,
    /// What may be kept for ever: the role does not open the words.
    Public,
}

/// A name and what stands for it.
pub(crate) struct Fact {
    pub(crate) name: &'static str,
    pub(crate) value: Text,
    /// Letters and digits for machines.
    pub(crate) code: bool,
}

/// What became of the reply.
pub(crate) struct Sent {
    pub(crate) badge: Badge,
    pub(crate) sentence: String,
    pub(crate) moment: Moment,
}

/// Everything on the page.
pub(crate) struct Sheet {
    pub(crate) sight: Sight,
    pub(crate) moment: Moment,
    pub(crate) outcome: Badge,
    pub(crate) crisis: Option<Badge>,
    pub(crate) meaning: &'static str,
    pub(crate) facts: Vec<Fact>,
    pub(crate) story: Vec<Text>,
    pub(crate) replies: Vec<Speech>,
    /// Whether a message took the place of the reply.
    pub(crate) is_withheld: bool,
    /// Why what was proposed is not on the page.
    pub(crate) closed: Option<&'static str>,
    pub(crate) talk: Talk,
    pub(crate) who: Vec<Fact>,
    pub(crate) courses: Vec<Course>,
    pub(crate) scores: Vec<InputScore>,
    pub(crate) reading: Reading,
    pub(crate) influences: Vec<Portion>,
    pub(crate) field: Vec<Portion>,
    pub(crate) sent: Option<Sent>,
    pub(crate) record: Vec<Fact>,
    pub(crate) appeal: Option<AppealNote>,
    pub(crate) replayed: bool,
}

/// That a person disagreed, and where somebody rules on it.
pub(crate) struct AppealNote {
    pub(crate) review: String,
    pub(crate) status: Text,
}

fn appeal_note(appeal: &AppealStanding) -> Option<AppealNote> {
    let AppealStanding::Filed(record) = appeal else { return None };
    let status = record.appeal.ruling.as_ref().map_or("filed", |ruling| ruling.outcome.as_str());
    let review = record.appeal.review_id.clone();
    Some(AppealNote { review, status: Text::short(&outcome_word(status)) })
}

impl Sheet {
    /// Puts the sheet together; `None` when the engine's view has another form.
    pub(crate) fn of(
        stored: &StoredDecision,
        sight: Sight,
        standing: ReviewStanding,
        appeal: &AppealStanding,
    ) -> Option<Self> {
        let words = sight == Sight::Words;
        let reader = if words { DecisionReader::Words } else { DecisionReader::Public };
        let view = decision_view(stored, reader, standing);
        let seen: Seen = serde_json::from_value(view).ok()?;
        let mut ink = Ink::new();
        let ink = &mut ink;
        let told = explain(stored, standing, appeal);
        let crisis = seen.crisis == Some(true);
        let replies = seen.choices.iter().filter_map(|choice| Speech::of(&choice.delivered, ink));
        let replies = replies.collect();
        Some(Self {
            sight,
            moment: Moment::at(seen.timestamp_ms),
            outcome: Badge::outcome(&seen.outcome),
            crisis: crisis.then(Badge::crisis),
            meaning: outcome_meaning(&seen.outcome),
            facts: facts(&seen),
            story: told.story.iter().map(|sentence| ink.text(sentence)).collect(),
            replies,
            is_withheld: !Outcome::parse(&seen.outcome).is_some_and(Outcome::is_verified),
            closed: closed(standing),
            talk: Talk::of(&seen.conversation, ink),
            who: who(&seen.who, ink),
            courses: courses(&seen, stored, crisis, ink),
            scores: input::scores(&seen.input),
            reading: Reading::of(&seen.reading, ink),
            influences: if words {
                input::influences(told.contributing_agents, &seen.field_state, ink)
            } else {
                vec![]
            },
            field: input::field(&seen.field_state),
            sent: seen.delivery.as_ref().map(sent),
            record: record(&seen),
            appeal: appeal_note(appeal),
            replayed: replay(&stored.leaf).is_ok(),
        })
    }
}

/// Why what was withheld is closed to everybody who looks at the page.
const fn closed(standing: ReviewStanding) -> Option<&'static str> {
    match standing {
        ReviewStanding::Unasked | ReviewStanding::Approved => None,
        ReviewStanding::Waiting => Some(
            "The reply waits for a decision. Until then only whoever has claimed its review can read it.",
        ),
        ReviewStanding::Edited => Some(
            "The reply was approved in other words. What was first proposed is open to auditors alone.",
        ),
        ReviewStanding::Rejected => {
            Some("The reply was rejected. What was proposed is open to auditors alone.")
        }
    }
}

fn fact(name: &'static str, value: &str) -> Fact {
    Fact { name, value: Text::short(value), code: false }
}

fn code(name: &'static str, value: &str) -> Fact {
    Fact { code: true, ..fact(name, value) }
}

fn facts(seen: &Seen) -> Vec<Fact> {
    let safety = seen.safety_score.map_or_else(|| "no panel sat".into(), score);
    let mut facts = vec![
        fact("Action", &outcome_word(&seen.action)),
        fact("Safety score", &safety),
        fact("Attempts", &count(seen.attempts)),
        fact("Scrutiny", &outcome_word(&seen.scrutiny)),
        fact("Mode", &outcome_word(&seen.mode)),
        fact("Model", &seen.model),
        fact("Took", &duration(seen.latency_ms)),
        fact("Cost", &dollars(seen.cost_microusd)),
        fact(
            "Tokens",
            &format!("{} in, {} out", count(seen.tokens.input), count(seen.tokens.output)),
        ),
    ];
    facts.extend(seen.directive.as_deref().map(|name| fact("Rests on directive", name)));
    facts.extend(guard_fact("Guards", &seen.guards));
    facts.extend(guard_fact("Only watched", &seen.monitored));
    facts
}

/// What guards did, or would have done; none where all of them let it pass.
fn guard_fact(name: &'static str, guards: &[Guarded]) -> Option<Fact> {
    let named = guards.iter().filter_map(|one| Some((one.guard.as_ref()?, one.outcome.as_ref()?)));
    let acting = named.filter(|(_, outcome)| *outcome != "passed");
    let words: Vec<_> = acting.map(|(guard, outcome)| format!("{guard}: {outcome}")).collect();
    (!words.is_empty()).then(|| fact(name, &words.join(", ")))
}

fn who(stored: &Json, ink: &mut Ink) -> Vec<Fact> {
    let context = &stored["context"];
    let mut facts = Vec::new();
    for (name, value) in [
        ("User", &stored["user"]),
        ("Session", &stored["session"]),
        ("Country", &context["country"]),
        ("Language", &context["language"]),
        ("Voice", &context["persona"]),
        ("Sensitivity", &context["sensitivity"]),
    ] {
        if let Some(value) = value.as_str() {
            facts.push(Fact { name, value: ink.short(value), code: false });
        }
    }
    if context["minor"].as_bool() == Some(true) {
        facts.push(fact("Minor", "yes"));
    }
    if context["vulnerable"].as_bool() == Some(true) {
        facts.push(fact("Vulnerable", "yes"));
    }
    facts
}

fn courses(seen: &Seen, stored: &StoredDecision, crisis: bool, ink: &mut Ink) -> Vec<Course> {
    let choices = seen.choices.iter().enumerate();
    choices
        .map(|(c, choice)| Course::of(choice, crisis, ink, |a, p| sums(stored, c, a, p)))
        .collect()
}

/// The sums of one panel as they stand in the leaf: safe, dissent, weight.
fn sums(stored: &StoredDecision, c: usize, a: usize, p: usize) -> Option<[u64; 3]> {
    let at = |value: &Value, name: &str, index: usize| -> Option<Value> {
        value.get(name)?.as_array()?.get(index).cloned()
    };
    let attempt = at(stored.choices().get(c)?, "attempts", a)?;
    let panel = at(&attempt, "panels", p)?;
    let sums = panel.get("sums")?.as_array()?;
    let sum = |index: usize| sums.get(index).and_then(Value::as_u64);
    Some([sum(0)?, sum(1)?, sum(2)?])
}

fn sent(delivery: &Delivery) -> Sent {
    let size = bytes(delivery.bytes.unwrap_or_default());
    let (badge, sentence) = match delivery.status.as_deref() {
        Some("sent") => (
            Badge::new(Tone::Good, Shape::Tick, "Sent"),
            format!("{size} were handed to the client, all there was."),
        ),
        Some("aborted") => (
            Badge::new(Tone::Warn, Shape::Triangle, "Cut off"),
            format!("The client went away after {size}."),
        ),
        other => (
            Badge::new(Tone::Plain, Shape::Dash, other.unwrap_or("Unknown")),
            format!("{size} were handed to the client."),
        ),
    };
    Sent { badge, sentence, moment: Moment::at(delivery.timestamp_ms) }
}

fn record(seen: &Seen) -> Vec<Fact> {
    vec![
        code("Decision", seen.id.as_deref().unwrap_or_default()),
        fact("Position in the ledger", &count(seen.seq)),
        code("Entry", &seen.entry_id),
        code("Leaf hash", &seen.leaf_hash),
        code("Policy digest", &seen.policy_digest),
        code("Directives digest", &seen.directives_digest),
        fact("Build", &seen.build),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_guards_did_is_among_the_facts() {
        let mut stored = json!({
            "id": null, "seq": 1, "entry_id": "", "leaf_hash": "", "timestamp_ms": 0, "outcome": "held",
            "action": "hold", "safety_score": null, "attempts": 0, "crisis": false, "scrutiny": "normal",
            "mode": "normal", "model": "m", "latency_ms": 1, "cost_microusd": 0,
            "tokens": {"input": 0, "output": 0}, "policy_digest": "", "directives_digest": "",
            "input": {"harm": 0.0, "crisis": 0.0, "injection": 0.0, "threshold": 0.6},
            "build": "", "delivery": null, "choices": [],
        });
        let is_named = |name: &str, stored: &Json| {
            let seen: Seen = serde_json::from_value(stored.clone()).unwrap();
            facts(&seen).iter().any(|fact| fact.name == name)
        };
        let named = |stored: &Json| is_named("Guards", stored);
        assert!(!named(&stored), "nothing was done");
        stored["guards"] = json!([{"guard": "cultural", "phase": "pre", "outcome": "passed"}]);
        assert!(!named(&stored), "it passed");
        stored["guards"] = json!([{"guard": "cultural", "phase": "pre", "outcome": "held"}]);
        assert!(named(&stored) && !is_named("Only watched", &stored));
        let watched = json!([{"guard": "toxicity", "phase": "post", "outcome": "blocked"}]);
        stored["monitored"] = watched;
        assert!(is_named("Only watched", &stored), "what watching guards found is shown too");
    }
}
