//! A run as a ledger entry: numbers and words of closed lists in the leaf, everything said in the body.
//!
//! **Invariant:** the entry is durable before the response is handed out.
//! **Invariant:** a held result stands in words of its own, [`HELD_WORDS`], which only a decided review
//! opens; whatever else reads a decision finds nothing of it.

use super::approval::MATERIAL;
use super::content::change_texts;
use super::history::RUN_KEPT_MS;
use super::{ExecuteError, ExecutedRun, RecipeRunner, RunEnding, RunningRun};
use crate::{Metric, RunFigures, Work, cluster_purity};
use conclave_core::{Action, Disposition, Finding, GuardKind, Outcome, Sensitivity};
use conclave_engine::{
    DecisionEntry, DecisionWords, RecordedDecision, bars_value, guard_rows, panel_value, statements,
};
use conclave_failpoint as failpoint;
use conclave_govern::{Issue, NewReview, ReviewKind, ReviewPriority};
use conclave_ledger::Value as Public;
use conclave_money::BudgetRefusal;
use conclave_pii::Redactor;
use conclave_ports::trace::{self, Attributes};
use conclave_ports::{
    AppendError, CONSENT_WORDS, ConsentBasis, HELD_WORDS, MEMORY_WORDS, Record, RecordChange,
    RecordKey, RecordKind,
};
use serde_json::{Value, json};
use std::sync::Arc;

/// What a run comes to, once everything is known.
struct ConcludedRun {
    outcome: Outcome,
    figures: RunFigures,
    /// What the client gets where nothing holds it.
    response: Value,
}

impl RecipeRunner {
    pub(super) async fn conclude(
        &self,
        mut run: RunningRun,
        mut ending: RunEnding,
    ) -> Result<ExecutedRun, ExecuteError> {
        let concluded = self.result_of(&mut run, &ending)?;
        let duration_ms = concluded.figures.duration_ms;
        trace::about(|| span_of(&run, concluded.outcome));
        let is_held = matches!(ending, RunEnding::Held { .. });
        let entry = DecisionEntry {
            public: self.public_fields(&run, &concluded),
            words: self.words(&run, &concluded, &ending)?,
            review: is_held.then(|| review_of(&run)),
            cost: run.cost,
        };
        let recorded = self.engine.record(&run.matter, entry).await?;
        failpoint::reach("run.recorded");
        let RecordedDecision { leaf_hash, delivery, review_id } = recorded;
        let leaf_hash = leaf_hash
            .ok_or_else(|| AppendError::Unwritable("the run was not recorded".to_owned()))?;
        self.note_duration(&run, duration_ms, concluded.outcome == Outcome::Failed);
        if is_held {
            ending = match review_id {
                Some(review) => RunEnding::Held { review },
                None => RunEnding::GuardUnavailable,
            };
        }
        let mut response = public_response(&concluded, &ending);
        self.keep_run(&run, &concluded, &ending).await;
        response["metadata"]["leaf_hash"] = json!(hex::encode(leaf_hash));
        let now_ms = self.engine.clock.now_ms();
        let retry_at_ms = |refusal: &BudgetRefusal| refusal.retry_at_ms(now_ms);
        let retry_at_ms = run.matter.payment.refusal.as_ref().and_then(retry_at_ms);
        Ok(ExecutedRun {
            id: run.matter.id,
            ending,
            outcome: concluded.outcome,
            attempts: u32::try_from(run.attempts.len()).unwrap_or(u32::MAX),
            usage: run.usage,
            cost: run.cost,
            overhead: run.matter.started.elapsed().saturating_sub(run.model_time),
            retry_at_ms,
            response,
            leaf_hash,
            delivery,
        })
    }

    fn result_of(
        &self,
        run: &mut RunningRun,
        ending: &RunEnding,
    ) -> Result<ConcludedRun, ExecuteError> {
        let outcome = outcome_of(run, ending);
        let figures = figures_of_run(run, outcome);
        let mut citations = json!(run.report.citations);
        for citation in citations.as_array_mut().into_iter().flatten() {
            let hundredths = citation["confidence"].as_u64().unwrap_or(0);
            citation["confidence"] = json!(fraction(hundredths));
        }
        if run.recipe().guard(GuardKind::PersonalData).is_some() {
            let finder = self.engine.personal_data.finder();
            let finder = finder.map_err(|error| ExecuteError::Unavailable(error.to_string()))?;
            let redactor = Redactor::new(finder);
            let tokens = &mut run.matter.tokens;
            change_texts(&mut citations, &mut |text| {
                if let Some(other) = redactor.redact_text(text, tokens) {
                    *text = other;
                }
            });
        }
        let passes = matches!(ending, RunEnding::Done | RunEnding::Held { .. });
        let data = if passes { run.matter.content.output.clone() } else { None };
        let error = match ending {
            RunEnding::Refused { code, message } => json!({"code": code, "message": message}),
            RunEnding::Failed { message, .. } => json!({"code": "failed", "message": message}),
            RunEnding::GuardUnavailable => {
                json!({"code": "guard_unavailable", "message": UNGUARDED})
            }
            RunEnding::Done | RunEnding::Held { .. } => Value::Null,
        };
        let response = json!({
            "success": passes,
            "data": data,
            "error": error,
            "citations": if passes { citations } else { json!([]) },
            "metadata": metadata(run, outcome, &figures),
        });
        Ok(ConcludedRun { outcome, figures, response })
    }

    /// Keeps what is counted of a run, and where its transcript stands. The ledger has it all; failing here
    /// loses a figure, not a decision.
    async fn keep_run(&self, run: &RunningRun, concluded: &ConcludedRun, ending: &RunEnding) {
        let Some(records) = &self.records else { return };
        let review = match ending {
            RunEnding::Held { review } => Some(review.as_str()),
            _ => None,
        };
        let now_ms = self.engine.clock.now_ms();
        let record = Record {
            key: RecordKey {
                kind: RecordKind::Run,
                tenant: run.matter.tenant.clone(),
                id: run.matter.id.to_string(),
            },
            version: 0,
            state: concluded.outcome.as_str().to_owned(),
            owner: run.recipe().name.clone(),
            rank: u32::try_from(now_ms / 1_000).unwrap_or(u32::MAX),
            due_ms: Some(now_ms.saturating_add(RUN_KEPT_MS)),
            changed_ms: now_ms,
            subject: None,
            data: json!({"figures": concluded.figures, "review": review}),
        };
        let mut changes = vec![RecordChange { record, entry: None }];
        if run.recipe().work == Work::ConsentIntake && *ending == RunEnding::Done {
            match self.transcript_record(run).await {
                Ok(change) => changes.extend(change),
                Err(error) => {
                    tracing::error!(run = %run.matter.id, %error, "a transcript could not be stored");
                }
            }
        }
        if let Err(error) = records.put(changes).await {
            tracing::error!(run = %run.matter.id, %error, "a run could not be counted");
        }
    }

    fn words(
        &self,
        run: &RunningRun,
        concluded: &ConcludedRun,
        ending: &RunEnding,
    ) -> Result<DecisionWords<'_>, AppendError> {
        let mut words = DecisionWords::new(&*self.engine.entropy);
        let matter = &run.matter;
        let who = json!({"user": run.request.context.user_id, "context": run.context});
        let said = json!([{"role": "user", "content": run.request.input.to_string()}]);
        words.add("who", &who)?;
        words.add("request", &said)?;
        words.add("run", &run.request)?;
        words.add(MATERIAL, &run.material)?;
        if !matter.consented.is_empty() {
            let consented = ConsentBasis {
                subjects: matter.consented.clone(),
                scopes: run.context.consent_scope.clone(),
                purpose: run.context.purpose.clone(),
                party: run.context.party.clone(),
            };
            words.add(CONSENT_WORDS, &consented)?;
        }
        words.add(MEMORY_WORDS, &matter.remembered)?;
        words.add("guards", &matter.findings)?;
        words.add("evaluation", &run.evaluation)?;
        words.add("citations", &run.report)?;
        if !matter.tokens.is_empty() {
            words.add("tokens", &matter.tokens)?;
        }
        for (at, attempt) in run.attempts.iter().enumerate() {
            if let Ok(candidate) = attempt {
                words.add(format!("candidate.0.{at}"), candidate)?;
            }
        }
        if let Some(panel) = &run.panel {
            let at = run.attempts.len().saturating_sub(1);
            words.add(format!("votes.0.{at}"), &statements(std::slice::from_ref(panel)))?;
        }
        if matches!(ending, RunEnding::Held { .. }) {
            words.add(HELD_WORDS, &concluded.response)?;
        }
        let response = public_response(concluded, ending);
        if *ending == RunEnding::Done {
            words.add("delivered.0", &json!({"text": response["data"].to_string()}))?;
        }
        words.add("response", &response)?;
        Ok(words)
    }

    /// Who was asked; this house where no model was.
    fn provider_of(&self, run: &RunningRun) -> Arc<str> {
        let model = run.matter.model.as_deref().filter(|_| !run.attempts.is_empty());
        let offered = model.and_then(|model| self.engine.models.find(model));
        offered.map_or_else(|| "conclave".into(), |offered| offered.provider)
    }

    fn public_fields(
        &self,
        run: &RunningRun,
        concluded: &ConcludedRun,
    ) -> Vec<(&'static str, Public)> {
        let matter = &run.matter;
        let figures = &concluded.figures;
        let attempts = run.attempts.iter().map(|attempt| match attempt {
            Ok(_) => Public::map([("panels", Public::Array(Vec::new()))]),
            Err(failure) => Public::map([("failure", Public::from(failure.as_str()))]),
        });
        let mut attempts: Vec<_> = attempts.collect();
        if let Some(panel) = &run.panel {
            // It sat on the last answer, or on the extract.
            let _ = attempts.pop();
            attempts.push(Public::map([("panels", Public::Array(vec![panel_value(panel)]))]));
        }
        let outcome = Public::from(concluded.outcome.as_str());
        let choice =
            Public::map([("outcome", outcome.clone()), ("attempts", Public::Array(attempts))]);
        let mut fields = vec![
            ("recipe", Public::from(run.recipe().name.as_str())),
            ("outcome", outcome),
            ("action", Public::from(action_of(concluded.outcome, run).as_str())),
            ("attempts", count(run.attempts.len())),
            ("crisis", Public::Bool(run.crisis)),
            ("scrutiny", Public::from(matter.scrutiny.as_str())),
            ("mode", Public::from("normal")),
            ("sensitivity", Public::from(run.context.sensitivity_level.as_str())),
            ("model", Public::from(model_name(run))),
            ("latency_ms", Public::Uint(figures.duration_ms)),
            ("cost", Public::Uint(figures.cost)),
            ("provider", Public::from(&*self.provider_of(run))),
            ("key", matter.key.as_ref().map_or(Public::Null, |key| Public::from(key.as_str()))),
            ("consent_verified", Public::Bool(matter.is_consent_verified())),
            ("tokens_in", Public::Uint(run.usage.input_tokens)),
            ("tokens_out", Public::Uint(run.usage.output_tokens)),
            ("bars", bars_value(self.engine.bars(matter))),
            ("choices", Public::Array(vec![choice])),
            ("refusal", refusal_of(run, concluded.outcome)),
            ("safety_status", Public::from(safety_status(run, concluded.outcome))),
            ("eval", evaluation_row(run)),
            ("figures", figures_row(figures)),
        ];
        fields.extend(guard_rows(&matter.findings));
        let stopped = matter.gravest().filter(|one| one.disposition >= Disposition::Held);
        let directive = stopped.and_then(|finding| self.engine.instinct.for_finding(finding));
        fields.extend(directive.map(|one| ("directive", Public::Uint(one.0.into()))));
        fields
    }
}

/// What the client gets: nothing of a result that waits, or that nobody may have.
fn public_response(concluded: &ConcludedRun, ending: &RunEnding) -> Value {
    let mut response = concluded.response.clone();
    if let RunEnding::Held { review } = ending {
        response["metadata"]["review_id"] = json!(review);
    }
    if *ending != RunEnding::Done {
        response["data"] = Value::Null;
        response["citations"] = json!([]);
        response["success"] = json!(false);
    }
    response
}

fn figures_of_run(run: &RunningRun, outcome: Outcome) -> RunFigures {
    let took = run.matter.started.elapsed().as_millis();
    let limits = run.recipe().thresholds(run.context.sensitivity_level);
    let asked = run.matter.findings.iter().find(|one| one.guard == GuardKind::Consent);
    let reserved = run.matter.payment.reservation.as_ref();
    RunFigures {
        outcome: outcome.as_str().to_owned(),
        consent: asked.map(|one| one.disposition == Disposition::Passed),
        claims: run.report.claims,
        cited: run.report.cited,
        unsupported: run.report.unsupported,
        blocked: outcome == Outcome::Blocked,
        held: outcome == Outcome::Held,
        downgraded: run.matter.payment.downgraded_to.is_some(),
        within_budget: reserved.map(|reservation| run.cost <= reservation.amount),
        cost: run.cost.0,
        duration_ms: u64::try_from(took).unwrap_or(u64::MAX),
        slo_ms: limits.p95_ms,
        purity: run.matter.content.output.as_ref().and_then(cluster_purity),
        review: None,
    }
}

fn model_name(run: &RunningRun) -> &str {
    run.matter.model.as_deref().unwrap_or("none")
}

/// A whole run in the terms of OpenTelemetry; recipes and their models are the configuration's.
fn span_of(run: &RunningRun, outcome: Outcome) -> (String, Attributes) {
    let recipe = run.recipe().name.as_str();
    let id = run.matter.id.to_string();
    let attributes: Attributes = vec![
        ("gen_ai.operation.name", "invoke_agent".into()),
        ("gen_ai.agent.name", recipe.into()),
        ("gen_ai.request.model", model_name(run).into()),
        ("gen_ai.response.id", id.as_str().into()),
        ("gen_ai.conversation.id", hex::encode(run.matter.who.session).as_str().into()),
        ("conclave.audit_id", id.as_str().into()),
        ("conclave.outcome", outcome.as_str().into()),
    ];
    (format!("invoke_agent {recipe}"), attributes)
}

/// The review that a held run needs.
fn review_of(run: &RunningRun) -> NewReview {
    let matter = &run.matter;
    let held: Vec<_> = matter
        .findings
        .iter()
        .filter(|one| one.counts() && one.disposition >= Disposition::Held)
        .collect();
    let communities = matter.hold.as_ref().map(|hold| hold.communities.clone()).unwrap_or_default();
    // A guard that failed has found nothing yet: whoever lets the run go on has it look again.
    let is_cultural = held.iter().any(|one| is_held_by_culture(one)) && !communities.is_empty();
    let kind = match (is_cultural, held.is_empty() && !run.is_critical()) {
        (true, _) => ReviewKind::ElderReview,
        (false, true) => ReviewKind::Draft,
        (false, false) => ReviewKind::Escalation,
    };
    let mut issues: Vec<_> = held
        .iter()
        .map(|one| Issue { code: one.code_name().to_owned(), detail: one.detail.clone() })
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
    let mut communities = communities.into_iter().filter(|_| is_cultural);
    NewReview {
        kind,
        tenant: matter.tenant.clone(),
        content_type: format!("recipe:{}", run.recipe().name),
        community: communities.next(),
        others: communities.collect(),
        issues,
        priority: priority(run, kind),
        audit_id: Some(matter.id),
        author: matter.key.as_ref().map(|key| key.as_str().to_owned()),
        subject: matter.who.subject,
        four_eyes: run.is_sacred(),
    }
}

fn is_held_by_culture(finding: &Finding) -> bool {
    finding.guard == GuardKind::Culture && finding.disposition == Disposition::Held
}

/// Told when a guard failed, or something must wait, and nobody is configured who could decide.
const UNGUARDED: &str =
    "This must wait for a person, and nobody is configured who could decide; nothing is returned.";

/// `{score, failing, critical}`: how the result stands against its limits.
fn evaluation_row(run: &RunningRun) -> Public {
    let Some(done) = &run.evaluation else { return Public::Null };
    let named = |metrics: &[Metric]| {
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
pub(super) fn figures_of(public: &Public) -> RunFigures {
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

fn outcome_of(run: &RunningRun, ending: &RunEnding) -> Outcome {
    match ending {
        RunEnding::Done if run.matter.is_redacted_after() => Outcome::Redacted,
        RunEnding::Done => Outcome::Delivered,
        RunEnding::Held { .. } => Outcome::Held,
        RunEnding::Refused { .. } => Outcome::Blocked,
        RunEnding::GuardUnavailable => Outcome::GuardUnavailable,
        RunEnding::Failed { .. } => Outcome::Failed,
    }
}

fn action_of(outcome: Outcome, run: &RunningRun) -> Action {
    match outcome {
        Outcome::Delivered if run.matter.is_flagged() => Action::Flag,
        Outcome::Delivered => Action::Deliver,
        Outcome::Redacted => Action::Redact,
        Outcome::Held => Action::Hold,
        _ => Action::Block,
    }
}

fn priority(run: &RunningRun, kind: ReviewKind) -> ReviewPriority {
    match kind {
        _ if run.crisis => ReviewPriority::Urgent,
        _ if run.is_sacred() || run.context.sensitivity_level == Sensitivity::Sacred => {
            ReviewPriority::High
        }
        ReviewKind::Escalation => ReviewPriority::High,
        _ => ReviewPriority::Medium,
    }
}

/// Where a run stands, in the words of `ai_usage_events`: the response and the event say the same.
fn safety_status(run: &RunningRun, outcome: Outcome) -> &'static str {
    let is_held_by_elders = run.matter.findings.iter().any(is_held_by_culture);
    match outcome {
        Outcome::Held if is_held_by_elders => "elder_review_required",
        Outcome::Held => "flagged",
        Outcome::Delivered | Outcome::Redacted if run.matter.is_flagged() => "flagged",
        Outcome::Delivered | Outcome::Redacted => "approved",
        _ => "blocked",
    }
}

/// Why a guard stopped a run, in a word of a closed list.
fn refusal_of(run: &RunningRun, outcome: Outcome) -> Public {
    let gravest = run.matter.gravest().filter(|_| outcome == Outcome::Blocked);
    gravest.map_or(Public::Null, |gravest| Public::from(gravest.code_name()))
}

fn metadata(run: &RunningRun, outcome: Outcome, figures: &RunFigures) -> Value {
    let evaluation = run.evaluation.as_ref();
    let row = |one: &Finding| {
        json!({
            "guard": one.guard, "phase": one.phase, "outcome": one.disposition,
            "code": one.code_name(),
        })
    };
    let guards: Vec<_> = run.matter.findings.iter().filter(|one| one.counts()).map(row).collect();
    let panel = run.panel.as_ref();
    json!({
        "agent_name": run.recipe().name,
        "model": model_name(run),
        "input_tokens": run.usage.input_tokens,
        "output_tokens": run.usage.output_tokens,
        "duration_ms": figures.duration_ms,
        "cost_usd_estimate": run.cost.dollars(),
        "safety_status": safety_status(run, outcome),
        "outcome": outcome,
        "eval_score": evaluation.and_then(|done| done.score),
        "failing_metrics": evaluation.map(|done| done.failing.clone()).unwrap_or_default(),
        "citation_coverage": run.report.coverage().map(|share| fraction(u64::from(share) / 100)),
        "safety_score": panel.map(|panel| f64::from(panel.consensus.safety_score_e4()) / 1e4),
        "consent_verified": run.matter.is_consent_verified(),
        "draft": run.recipe().human_in_loop,
        "attempts": run.attempts.len(),
        "guards": guards,
        "audit_id": run.matter.id.to_string(),
    })
}

#[expect(clippy::cast_precision_loss, reason = "at most one hundred")]
fn fraction(hundredths: u64) -> f64 {
    hundredths as f64 / 100.0
}

fn count(number: usize) -> Public {
    Public::Uint(u64::try_from(number).unwrap_or(u64::MAX))
}
