//! The governance sentinel: whether a request or a result may pass, with every reason.

use conclave_core::Score;
use serde_json::{Value, json};

/// What was seen in the texts, in hundredths where it is a score.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentinelReading {
    /// Identifying data in the request.
    pub pii_request: usize,
    /// Identifying data in the response.
    pub pii_response: usize,
    /// How harmful what is asked is.
    pub harm_request: u8,
    /// How harmful what is answered is.
    pub harm_response: u8,
    /// Whether somebody tries to override instructions.
    pub injection: u8,
    /// Whether a person needs help.
    pub crisis: u8,
    /// What the records of consent say.
    pub consent: Consent,
    /// What the protocols of communities say.
    pub culture: Culture,
}

/// What records say of the consent of whoever a request is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Consent {
    /// Nobody keeps records here, or nobody is named.
    #[default]
    Unasked,
    /// It covers the request.
    Granted,
    /// There is none that covers it.
    Missing,
    /// It was taken back.
    Withdrawn,
    /// The records could not be read.
    Unknown,
}

/// What protocols say of the material.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Culture {
    /// Nobody keeps protocols here, or nothing speaks against it.
    #[default]
    Clear,
    /// Somebody should look.
    Flagged,
    /// Elders decide.
    Held,
    /// The protocols could not be read.
    Unknown,
}

const HARM: u8 = 50;

struct Flags(Vec<Value>);

impl Flags {
    fn add(&mut self, kind: &str, severity: &str, details: &str, location: &str) {
        self.0.push(json!({
            "type": kind, "severity": severity, "details": details, "location": location,
        }));
    }

    fn has(&self, severity: &str) -> bool {
        self.0.iter().any(|flag| flag["severity"] == severity)
    }
}

/// What the sentinel says.
#[must_use]
pub fn sentinel(input: &Value, seen: &SentinelReading) -> Value {
    let context = &input["request"]["context"];
    let mut flags = Flags(Vec::new());
    circumstances(context, &mut flags);
    records(seen, &mut flags);
    texts(input, seen, &mut flags);
    let sacred = context["sensitivity_level"] == "sacred" || seen.culture == Culture::Held;
    let denied = flags.has("error") || flags.has("critical") && !sacred;
    let decision = match (denied, sacred, flags.0.is_empty()) {
        (true, ..) => "deny",
        (false, true, _) => "escalate",
        (false, false, false) => "flag",
        (false, false, true) => "allow",
    };
    let allowed = matches!(decision, "allow" | "flag");
    let reason = match decision {
        "deny" => "Something must be put right first; the flags say what.",
        "escalate" => "Material of a community is decided by its elders.",
        "flag" => "It may pass; somebody should look at the flags.",
        _ => "Nothing speaks against it.",
    };
    let escalations = escalations(&flags, sacred, seen);
    json!({
        "allowed": allowed, "reason": reason, "flags": flags.0,
        "audit_entry": {"decision": decision, "phase": input["phase"]},
        "escalations": escalations,
    })
}

fn circumstances(context: &Value, flags: &mut Flags) {
    let empty = |name: &str| context[name].as_array().is_none_or(Vec::is_empty);
    if empty("consent_scope") {
        flags.add(
            "consent",
            "error",
            "No scope of consent is stated.",
            "request.context.consent_scope",
        );
    }
    if context["purpose"].as_str().is_none_or(str::is_empty) {
        flags.add("consent", "warning", "No purpose is stated.", "request.context.purpose");
    }
    match context["sensitivity_level"].as_str() {
        Some("sacred") => flags.add(
            "cultural",
            "critical",
            "Sacred material waits for elders.",
            "request.context.sensitivity_level",
        ),
        Some("high") if empty("cultural_affiliations") => flags.add(
            "cultural",
            "warning",
            "Highly sensitive, and no community is named.",
            "request.context.cultural_affiliations",
        ),
        _ => {}
    }
    if context["country"].as_str().is_none() {
        flags.add(
            "jurisdiction",
            "warning",
            "The person's country is unknown.",
            "request.context.country",
        );
    }
}

fn records(seen: &SentinelReading, flags: &mut Flags) {
    let consent = match seen.consent {
        Consent::Unasked | Consent::Granted => None,
        Consent::Missing => Some("No record of consent covers this."),
        Consent::Withdrawn => Some("The person has taken their consent back."),
        Consent::Unknown => Some("The records of consent could not be read."),
    };
    if let Some(why) = consent {
        flags.add("consent", "error", why, "request.context");
    }
    match seen.culture {
        Culture::Clear => {}
        Culture::Flagged => {
            let why = "A protocol of a community speaks of this.";
            flags.add("cultural", "warning", why, "request.input");
        }
        Culture::Held => {
            let why = "A protocol of a community has this wait for elders.";
            flags.add("cultural", "critical", why, "request.input");
        }
        Culture::Unknown => {
            let why = "The protocols of communities could not be read.";
            flags.add("cultural", "error", why, "request.input");
        }
    }
}

fn texts(input: &Value, seen: &SentinelReading, flags: &mut Flags) {
    if seen.pii_request > 0 {
        flags.add("pii", "info", "Identifying data must be replaced by tokens.", "request.input");
    }
    if seen.harm_request >= HARM {
        flags.add("toxicity", "error", "What is asked for would harm somebody.", "request.input");
    }
    if seen.injection >= Score::DECISION_POINT {
        flags.add("injection", "warning", "The material speaks to the model.", "request.input");
    }
    if input["phase"] != "post" {
        return;
    }
    if input["response"].is_null() {
        flags.add("evidence", "error", "There is no response to look at.", "response");
    }
    if seen.pii_response > 0 {
        flags.add("pii", "error", "Identifying data stands in the response.", "response");
    }
    if seen.harm_response >= HARM {
        flags.add("toxicity", "critical", "The response would harm somebody.", "response");
    }
}

fn escalations(flags: &Flags, sacred: bool, seen: &SentinelReading) -> Vec<Value> {
    let mut to = Vec::new();
    if sacred {
        to.push(json!({"to": "elder", "urgency": "high"}));
    }
    if seen.crisis >= Score::DECISION_POINT {
        to.push(json!({"to": "admin", "urgency": "urgent"}));
    }
    if flags.has("error") {
        to.push(json!({"to": "compliance", "urgency": "medium"}));
    }
    to
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn governance_sentinel_allows_flags_denies_and_escalates() {
        let whole = json!({
            "consent_scope": ["research"], "purpose": "study", "country": "NZ",
            "sensitivity_level": "medium",
        });
        let with = |name: &str, value: Value| {
            let mut context = whole.clone();
            context[name] = value;
            context
        };
        let clean = SentinelReading::default();
        for (context, seen, phase, decision) in [
            (whole.clone(), clean, "pre", "allow"),
            (with("country", json!(null)), clean, "pre", "flag"),
            (with("consent_scope", json!([])), clean, "pre", "deny"),
            (with("sensitivity_level", json!("sacred")), clean, "pre", "escalate"),
            (whole.clone(), SentinelReading { harm_request: 50, ..clean }, "pre", "deny"),
            (whole.clone(), SentinelReading { pii_request: 2, ..clean }, "pre", "flag"),
            (whole.clone(), SentinelReading { pii_response: 1, ..clean }, "post", "deny"),
            (whole.clone(), clean, "post", "allow"),
            (whole.clone(), SentinelReading { consent: Consent::Granted, ..clean }, "pre", "allow"),
            (whole.clone(), SentinelReading { consent: Consent::Missing, ..clean }, "pre", "deny"),
            (
                whole.clone(),
                SentinelReading { consent: Consent::Withdrawn, ..clean },
                "pre",
                "deny",
            ),
            (whole.clone(), SentinelReading { consent: Consent::Unknown, ..clean }, "pre", "deny"),
            (whole.clone(), SentinelReading { culture: Culture::Flagged, ..clean }, "pre", "flag"),
            (whole.clone(), SentinelReading { culture: Culture::Held, ..clean }, "pre", "escalate"),
            (whole.clone(), SentinelReading { culture: Culture::Unknown, ..clean }, "pre", "deny"),
        ] {
            let input =
                json!({"request": {"context": context}, "response": {"data": 1}, "phase": phase});
            let said = sentinel(&input, &seen);
            assert_eq!(said["audit_entry"]["decision"], decision, "{input}");
            assert_eq!(said["allowed"], matches!(decision, "allow" | "flag"));
        }
        let bare = json!({"request": {"context": whole}, "response": null, "phase": "post"});
        assert_eq!(sentinel(&bare, &clean)["allowed"], false, "nothing to look at is not clean");
    }
}
