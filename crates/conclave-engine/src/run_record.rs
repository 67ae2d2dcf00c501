//! A run as a ledger entry: numbers and words of closed lists in the leaf, everything said in the body.
//!
//! **Invariant:** the entry is durable before the response is handed out, and a held result is handed out to
//! nobody.

use crate::agreed;
use crate::delivery::Delivery;
use crate::engine::Engine;
use crate::execute::{Ending, ExecuteError, Executed, is_critical};
use crate::guards::answer;
use crate::handing_out::consent_basis;
use crate::memory;
use crate::record;
use crate::run_panel::scrutiny;
use crate::running::{Running, change_texts, redacted};
use crate::runs::RUN_KEPT_MS;
use crate::spans;
use conclave_core::{Action, Attempt, Candidate, Outcome, Sensitivity};
use conclave_failpoint as failpoint;
use conclave_govern::{Issue, NewReview, Priority, ReviewKind};
use conclave_ledger::{Body, Draft, Kind, Value as Public};
use conclave_ports::trace::{self, SpanKind};
use conclave_ports::{Record, RecordChange, RecordKey, RecordKind};
use conclave_recipes::{Guard, GuardOutcome, RunFigures, Taken, Work, cluster_purity};
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// What a run comes to, once everything is known.
struct Closed {
    outcome: Outcome,
    figures: RunFigures,
    response: Value,
}

impl Engine {
    pub(crate) async fn conclude_run(
        &self,
        run: Running,
        mut ending: Ending,
    ) -> Result<Executed, ExecuteError> {
        let closed = self.close(&run, &ending);
        let duration_ms = closed.figures.duration_ms;
        let failed = closed.outcome == Outcome::Failed;
        let draft = Draft {
            kind: Kind::Decision,
            audit: Some(run.id.0.into_bytes()),
            tenant: run.who.tenant,
            subject: run.who.subject,
            session: Some(run.who.session),
            parent: None,
            policy: self.settings.policy,
            directives: self.settings.directives,
            build: self.settings.build.clone(),
            public: self.run_public(&run, &closed),
        };
        let mut promise = draft.clone();
        let asked = (run.recipe.name.as_str(), run.model.as_str());
        trace::about(|| spans::about_run(run.id, asked, closed.outcome, &run.who));
        let is_held = matches!(ending, Ending::Held { .. });
        let review = is_held.then(|| review_of(&run));
        let words = self.run_words(&run, &closed, review.as_ref());
        let appending = self.ledger.append(draft, words);
        let told = |done: &Result<_, _>| spans::about_recording(done.is_ok());
        let appended = trace::span("recording", SpanKind::Internal, appending, told).await;
        // Money was spent whether or not it could be recorded.
        self.settle_run(&run).await;
        let appended = appended?;
        failpoint::reach("run.recorded");
        promise.parent = Some(appended.id);
        let delivery = Delivery::new(self.ledger.clone(), promise);
        self.note_run(&run, duration_ms, failed);
        let mut response = closed.response.clone();
        if let (Ending::Held { review: id }, Some(review)) = (&mut ending, review) {
            match self.ask_people(review).await {
                Ok(made) => *id = made,
                Err(why) => {
                    tracing::error!(run = %run.id, %why, "a held run could not be handed to people");
                    ending = Ending::Unguarded;
                }
            }
        }
        if let Ending::Held { review } = &ending {
            response["metadata"]["review_id"] = json!(review);
        }
        if ending != Ending::Done {
            response["data"] = Value::Null;
            response["citations"] = json!([]);
            response["success"] = json!(false);
        }
        self.keep_run(&run, &closed, &ending).await;
        response["metadata"]["leaf_hash"] = json!(hex::encode(appended.leaf_hash));
        Ok(Executed {
            id: run.id,
            ending,
            outcome: closed.outcome,
            attempts: u32::try_from(run.attempts.len()).unwrap_or(u32::MAX),
            usage: run.usage,
            cost: run.cost,
            overhead: run.started.elapsed().saturating_sub(run.model_time),
            retry_at_ms: run.retry_at_ms,
            response,
            leaf_hash: appended.leaf_hash,
            delivery,
        })
    }

    fn close(&self, run: &Running, ending: &Ending) -> Closed {
        let outcome = outcome_of(run, ending);
        let figures = self.figures(run, outcome);
        let mut citations = json!(run.report.citations);
        for citation in citations.as_array_mut().into_iter().flatten() {
            let hundredths = citation["confidence"].as_u64().unwrap_or(0);
            citation["confidence"] = json!(fraction(hundredths));
        }
        if run.recipe.guard(Guard::Pii).is_some() {
            let mut tokens = run.tokens.clone();
            let finder = self.workshop.finder();
            change_texts(&mut citations, &mut |text| redacted(finder, text, &mut tokens));
        }
        let passes = matches!(ending, Ending::Done | Ending::Held { .. });
        let error = match ending {
            Ending::Refused { code, message } => json!({"code": code, "message": message}),
            Ending::Failed { message, .. } => json!({"code": "failed", "message": message}),
            Ending::Unguarded => json!({"code": "guard_unavailable", "message": UNGUARDED}),
            Ending::Done | Ending::Held { .. } => Value::Null,
        };
        let response = json!({
            "success": passes,
            "data": if passes { run.output.clone() } else { None },
            "error": error,
            "citations": if passes { citations } else { json!([]) },
            "metadata": metadata(run, outcome, &figures),
        });
        Closed { outcome, figures, response }
    }

    fn figures(&self, run: &Running, outcome: Outcome) -> RunFigures {
        let took = run.started.elapsed().as_millis();
        let limits = run.recipe.thresholds(run.context.sensitivity_level);
        let asked = run.outcomes.iter().find(|one| one.guard == Guard::Consent);
        RunFigures {
            outcome: outcome.as_str().to_owned(),
            consent: asked.map(|one| one.taken == Taken::Passed),
            claims: run.report.claims,
            cited: run.report.cited,
            unsupported: run.report.unsupported,
            blocked: outcome == Outcome::Blocked,
            held: outcome == Outcome::Held,
            downgraded: run.downgraded,
            within_budget: run.reserved.map(|most| run.cost <= most),
            cost: run.cost.0,
            duration_ms: u64::try_from(took).unwrap_or(u64::MAX),
            slo_ms: limits.p95_ms,
            purity: run.output.as_ref().and_then(cluster_purity),
            review: None,
        }
    }

    /// Has the run wait for the right people.
    async fn ask_people(&self, review: NewReview) -> Result<String, String> {
        let governance = self.governed.governance.as_ref();
        let governance = governance.ok_or_else(|| "nobody is configured".to_owned())?;
        answer(async { governance.submit(review).await }).await
    }

    /// Keeps what is counted of a run, and where its transcript stands. The ledger has it all; failing here
    /// loses a figure, not a decision.
    async fn keep_run(&self, run: &Running, closed: &Closed, ending: &Ending) {
        let Some(records) = &self.governed.records else { return };
        let review = match ending {
            Ending::Held { review } => Some(review.as_str()),
            _ => None,
        };
        let now_ms = self.clock.now_ms();
        let record = Record {
            key: RecordKey {
                kind: RecordKind::Run,
                tenant: run.tenant.clone(),
                id: run.id.to_string(),
            },
            version: 0,
            state: closed.outcome.as_str().to_owned(),
            owner: run.recipe.name.clone(),
            rank: u32::try_from(now_ms / 1_000).unwrap_or(u32::MAX),
            due_ms: Some(now_ms.saturating_add(RUN_KEPT_MS)),
            changed_ms: now_ms,
            subject: None,
            data: json!({"figures": closed.figures, "review": review}),
        };
        let mut changes = vec![RecordChange { record, entry: None }];
        if run.recipe.work == Work::ConsentIntake && *ending == Ending::Done {
            changes.extend(self.transcript_record(run).await);
        }
        if let Err(error) = records.put(changes).await {
            tracing::error!(run = %run.id, %error, "a run could not be counted");
        }
    }

    fn run_words(&self, run: &Running, closed: &Closed, review: Option<&NewReview>) -> Body {
        let mut body = Body::empty();
        let mut add = |name: String, value: &dyn Fn() -> Vec<u8>| {
            let mut salt = [0; 32];
            self.entropy.fill(&mut salt);
            body.push(name, salt, value());
        };
        let who = json!({"user": run.request.context.user_id, "context": run.context});
        let said = json!([{"role": "user", "content": run.request.input.to_string()}]);
        let text = closed.response["data"].to_string();
        add("who".into(), &|| encode(&who));
        add("request".into(), &|| encode(&said));
        add("run".into(), &|| encode(&run.request));
        add(agreed::MATERIAL.into(), &|| encode(&run.material));
        if !run.consented.is_empty() {
            add(conclave_ports::CONSENT_WORDS.into(), &|| encode(&consent_basis(run)));
        }
        add(memory::WORDS.into(), &|| encode(&run.remembered));
        add("guards".into(), &|| encode(&run.outcomes));
        add("evaluation".into(), &|| encode(&run.evaluation));
        add("citations".into(), &|| encode(&run.report));
        if let Some(review) = review {
            add(conclave_ports::REVIEW_WORDS.into(), &|| encode(review));
        }
        if !run.tokens.is_empty() {
            add("tokens".into(), &|| encode(&run.tokens));
        }
        for (at, attempt) in run.attempts.iter().enumerate() {
            if let Ok(candidate) = attempt {
                add(format!("candidate.0.{at}"), &|| encode(candidate));
            }
        }
        if let Some(panel) = &run.panel {
            let (candidate, panels) = (Ok(Candidate::default()), vec![panel.clone()]);
            let judged = Attempt { candidate, panels };
            let at = run.attempts.len().saturating_sub(1);
            add(format!("votes.0.{at}"), &|| encode(&record::spoken(&judged)));
        }
        add("response".into(), &|| encode(&closed.response));
        add("delivered.0".into(), &|| encode(&json!({"text": text})));
        body
    }

    /// Who was asked; this house where no model was.
    fn provider_of(&self, run: &Running) -> Arc<str> {
        let offered = self.models.find(&run.model).filter(|_| !run.attempts.is_empty());
        offered.map_or_else(|| "conclave".into(), |offered| offered.provider)
    }

    fn run_public(&self, run: &Running, closed: &Closed) -> Public {
        let figures = &closed.figures;
        let scrutiny = scrutiny(run);
        let bars = self.settings.bars(scrutiny);
        let attempts = run.attempts.iter().map(|attempt| match attempt {
            Ok(_) => Public::map([("panels", Public::Array(Vec::new()))]),
            Err(failure) => Public::map([("failure", Public::from(failure.as_str()))]),
        });
        let mut attempts: Vec<_> = attempts.collect();
        if let Some(panel) = &run.panel {
            // It sat on the last answer, or on the extract.
            let _ = attempts.pop();
            attempts.push(Public::map([("panels", Public::Array(vec![record::panel(panel)]))]));
        }
        let choice = Public::map([
            ("outcome", Public::from(closed.outcome.as_str())),
            ("attempts", Public::Array(attempts)),
        ]);
        let bars = [bars.quorum, bars.score, bars.assurance].map(|bar| Public::Uint(bar.into()));
        let sensitivity = run.context.sensitivity_level;
        Public::map([
            ("recipe", Public::from(run.recipe.name.as_str())),
            ("outcome", Public::from(closed.outcome.as_str())),
            ("action", Public::from(action_of(closed.outcome, run).as_str())),
            ("attempts", count(run.attempts.len())),
            ("crisis", Public::Bool(run.crisis)),
            ("scrutiny", Public::from(scrutiny.as_str())),
            ("mode", Public::from("normal")),
            ("sensitivity", Public::from(sensitivity.as_str())),
            ("model", Public::from(run.model.as_str())),
            ("latency_ms", Public::Uint(figures.duration_ms)),
            ("cost", Public::Uint(figures.cost)),
            ("provider", Public::from(&*self.provider_of(run))),
            ("key", run.key.as_ref().map_or(Public::Null, |key| Public::from(key.as_str()))),
            ("consent_verified", Public::Bool(run.consent_verified)),
            ("tokens_in", Public::Uint(run.usage.input_tokens)),
            ("tokens_out", Public::Uint(run.usage.output_tokens)),
            ("bars", Public::Array(bars.to_vec())),
            ("choices", Public::Array(vec![choice])),
            ("guards", Public::Array(run.outcomes.iter().map(record::guard_row).collect())),
            ("refusal", refusal_of(run, closed.outcome)),
            ("safety_status", Public::from(safety_status(run, closed.outcome))),
            ("eval", evaluation_row(run)),
            ("figures", figures_row(figures)),
        ])
    }
}

/// The review that a held run needs.
fn review_of(run: &Running) -> NewReview {
    let held: Vec<_> = run.outcomes.iter().filter(|one| one.taken >= Taken::Held).collect();
    // A guard that failed has found nothing yet: whoever lets the run go on has it look again.
    let by_culture = |one: &GuardOutcome| one.guard == Guard::Cultural && one.taken == Taken::Held;
    let cultural = held.iter().any(|one| by_culture(one)) && !run.communities.is_empty();
    let kind = match (cultural, held.is_empty() && !is_critical(run)) {
        (true, _) => ReviewKind::ElderReview,
        (false, true) => ReviewKind::Draft,
        (false, false) => ReviewKind::Escalation,
    };
    let mut issues: Vec<_> = held
        .iter()
        .map(|one| Issue { code: one.code.to_owned(), detail: one.detail.clone() })
        .collect();
    let critical = run.evaluation.iter().flat_map(|done| &done.critical);
    issues.extend(critical.map(|metric| Issue {
        code: metric.as_str().to_owned(),
        detail: "The result is far from what it must be.".to_owned(),
    }));
    if run.panel.as_ref().is_some_and(|panel| !panel.consensus.delivers()) {
        let detail = "The verifiers would not let these words pass.".to_owned();
        issues.push(Issue { code: "panel".to_owned(), detail });
    }
    NewReview {
        kind,
        tenant: run.tenant.clone(),
        content_type: format!("recipe:{}", run.recipe.name),
        community: run.communities.first().filter(|_| cultural).cloned(),
        others: run.communities.iter().skip(1).filter(|_| cultural).cloned().collect(),
        issues,
        priority: priority(run, kind),
        audit_id: Some(run.id),
        author: run.key.as_ref().map(|key| key.as_str().to_owned()),
        subject: run.who.subject,
        four_eyes: run.sacred,
    }
}

/// Told when a guard failed, or something must wait, and nobody is configured who could decide.
pub(crate) const UNGUARDED: &str =
    "This must wait for a person, and nobody is configured who could decide; nothing is returned.";

/// `[guard, phase, what came of it, code]`.
fn evaluation_row(run: &Running) -> Public {
    let Some(done) = &run.evaluation else { return Public::Null };
    let named = |metrics: &[conclave_recipes::Metric]| {
        Public::Array(metrics.iter().map(|metric| Public::from(metric.as_str())).collect())
    };
    Public::map([
        ("score", done.score.map_or(Public::Null, |score| Public::Uint(score.into()))),
        ("failing", named(&done.failing)),
        ("critical", named(&done.critical)),
    ])
}

fn figures_row(figures: &RunFigures) -> Public {
    let flag = |answer: Option<bool>| answer.map_or(Public::Null, Public::Bool);
    Public::map([
        ("consent", flag(figures.consent)),
        ("claims", Public::Uint(figures.claims.into())),
        ("cited", Public::Uint(figures.cited.into())),
        ("unsupported", Public::Uint(figures.unsupported.into())),
        ("downgraded", Public::Bool(figures.downgraded)),
        ("within_budget", flag(figures.within_budget)),
        ("slo_ms", Public::Uint(figures.slo_ms)),
        ("purity", figures.purity.map_or(Public::Null, |share| Public::Uint(share.into()))),
    ])
}

/// The figures of a run that stands in a leaf.
pub(crate) fn figures_of(public: &Public) -> RunFigures {
    let row = public.get("figures");
    let number = |name| row.and_then(|row| row.get(name)).and_then(Public::as_u64);
    let flag = |name| row.and_then(|row| row.get(name)).and_then(Public::as_bool);
    let small = |name| number(name).and_then(|number| u32::try_from(number).ok());
    let outcome = public.get("outcome").and_then(Public::as_str).unwrap_or_default();
    let whole = |name| public.get(name).and_then(Public::as_u64).unwrap_or(0);
    RunFigures {
        outcome: outcome.to_owned(),
        consent: flag("consent"),
        claims: small("claims").unwrap_or(0),
        cited: small("cited").unwrap_or(0),
        unsupported: small("unsupported").unwrap_or(0),
        blocked: outcome == Outcome::Blocked.as_str(),
        held: outcome == Outcome::Held.as_str(),
        downgraded: flag("downgraded").unwrap_or(false),
        within_budget: flag("within_budget"),
        cost: whole("cost"),
        duration_ms: whole("latency_ms"),
        slo_ms: number("slo_ms").unwrap_or(0),
        purity: small("purity"),
        review: None,
    }
}

fn outcome_of(run: &Running, ending: &Ending) -> Outcome {
    let redacted = run
        .outcomes
        .iter()
        .any(|one| one.taken == Taken::Redacted && one.phase == conclave_recipes::Phase::Post);
    match ending {
        Ending::Done if redacted => Outcome::Redacted,
        Ending::Done => Outcome::Delivered,
        Ending::Held { .. } => Outcome::Held,
        Ending::Refused { .. } => Outcome::Blocked,
        Ending::Unguarded => Outcome::GuardUnavailable,
        Ending::Failed { .. } => Outcome::Failed,
    }
}

fn action_of(outcome: Outcome, run: &Running) -> Action {
    let flagged = run.outcomes.iter().any(|one| one.taken == Taken::Flagged);
    match outcome {
        Outcome::Delivered if flagged => Action::Flag,
        Outcome::Delivered => Action::Deliver,
        Outcome::Redacted => Action::Redact,
        Outcome::Held => Action::Hold,
        _ => Action::Block,
    }
}

fn priority(run: &Running, kind: ReviewKind) -> Priority {
    let sensitivity = run.context.sensitivity_level;
    match kind {
        _ if run.crisis => Priority::Urgent,
        _ if run.sacred || sensitivity == Sensitivity::Sacred => Priority::High,
        ReviewKind::Escalation => Priority::High,
        _ => Priority::Medium,
    }
}

/// Where a run stands, in the words of `ai_usage_events`: the response and the event say the same.
fn safety_status(run: &Running, outcome: Outcome) -> &'static str {
    let held_by_culture =
        run.outcomes.iter().any(|one| one.guard == Guard::Cultural && one.taken == Taken::Held);
    let flagged = run.outcomes.iter().any(|one| one.taken == Taken::Flagged);
    match outcome {
        Outcome::Held if held_by_culture => "elder_review_required",
        Outcome::Held => "flagged",
        Outcome::Delivered | Outcome::Redacted if flagged => "flagged",
        Outcome::Delivered | Outcome::Redacted => "approved",
        _ => "blocked",
    }
}

/// Why a guard stopped a run, in a word of a closed list.
fn refusal_of(run: &Running, outcome: Outcome) -> Public {
    let gravest = run.gravest().filter(|_| outcome == Outcome::Blocked);
    gravest.map_or(Public::Null, |gravest| Public::from(gravest.code))
}

fn metadata(run: &Running, outcome: Outcome, figures: &RunFigures) -> Value {
    let evaluation = run.evaluation.as_ref();
    let guards: Vec<_> = run
        .outcomes
        .iter()
        .map(|one| json!({"guard": one.guard, "phase": one.phase, "outcome": one.taken, "code": one.code}))
        .collect();
    json!({
        "agent_name": run.recipe.name,
        "model": run.model,
        "input_tokens": run.usage.input_tokens,
        "output_tokens": run.usage.output_tokens,
        "duration_ms": figures.duration_ms,
        "cost_usd_estimate": run.cost.dollars(),
        "safety_status": safety_status(run, outcome),
        "outcome": outcome,
        "eval_score": evaluation.and_then(|done| done.score),
        "failing_metrics": evaluation.map(|done| done.failing.clone()).unwrap_or_default(),
        "citation_coverage": run.report.coverage().map(|share| fraction(u64::from(share) / 100)),
        "safety_score": run.panel.as_ref().map(|panel| f64::from(panel.consensus.safety_score_e4()) / 1e4),
        "consent_verified": run.consent_verified,
        "draft": run.recipe.human_in_loop,
        "attempts": run.attempts.len(),
        "guards": guards,
        "audit_id": run.id.to_string(),
    })
}

#[expect(clippy::cast_precision_loss, reason = "at most one hundred")]
fn fraction(hundredths: u64) -> f64 {
    hundredths as f64 / 100.0
}

fn count(number: usize) -> Public {
    Public::Uint(u64::try_from(number).unwrap_or(u64::MAX))
}

fn encode(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}
