//! The guards of a run, in their order, before a model is asked and after.
//!
//! **Invariant:** whoever cannot be asked, takes too long or panics has failed, and the run is held.
//! **Invariant:** nothing here asks a model.

use crate::engine::Engine;
use crate::long_text;
use crate::off_thread;
use crate::running::{Running, change_texts, redacted, texts};
use conclave_core::Mode;
use conclave_detect::Reading;
use conclave_govern::{ConsentAsk, ConsentState};
use conclave_ports::Elsewhere;
use conclave_ports::GovernError;
use conclave_recipes::{
    Address, Guard, GuardAction, Passage, Phase, Ruling, Taken, Transcript, Work, passage,
};
use futures_util::FutureExt;
use serde_json::Value;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How long a guard may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// From where on words harm, in hundredths, where a recipe does not say.
const TOXIC: u8 = 50;

/// An answer, or why there is none.
pub(crate) async fn answer<T>(
    asked: impl Future<Output = Result<T, GovernError>> + Send,
) -> Result<T, String> {
    match timeout(PATIENCE, AssertUnwindSafe(asked).catch_unwind()).await {
        Ok(Ok(Ok(answer))) => Ok(answer),
        Ok(Ok(Err(error))) => Err(error.0),
        Ok(Err(_panic)) => Err("the guard panicked".to_owned()),
        Err(_late) => Err("the guard did not answer in time".to_owned()),
    }
}

/// Lets a guard look that asks nobody; one that panics has failed. Each changes the run at its end only.
fn unbroken(run: &mut Running, at: (Guard, Phase), look: impl FnOnce(&mut Running)) {
    if catch_unwind(AssertUnwindSafe(|| look(run))).is_err() {
        run.found(at, Taken::Failed, "guard_failed", "the guard panicked");
    }
}

impl Engine {
    /// Everybody who looks before anything is done; the first that closes the way ends it.
    pub(crate) async fn guard_before(&self, run: &mut Running) -> Passage {
        for guard in Guard::ALL {
            let at = (*guard, Phase::Pre);
            match guard {
                Guard::Cost => unbroken(run, at, |run| self.guard_cost(run)),
                Guard::Cultural => self.guard_culture(run, Phase::Pre).await,
                Guard::Consent => self.guard_consent(run).await,
                Guard::Pii => unbroken(run, at, |run| self.replace_identifying(run)),
                Guard::Jurisdiction => unbroken(run, at, |run| self.guard_jurisdiction(run)),
                Guard::Toxicity => self.guard_words(run, Phase::Pre).await,
                // Money is set aside last, when nothing else speaks against the run.
                Guard::Budget => {}
            }
            if passage(&run.outcomes) == Passage::Closed {
                return Passage::Closed;
            }
        }
        if passage(&run.outcomes) == Passage::Open {
            self.guard_budget(run).await;
        }
        passage(&run.outcomes)
    }

    /// Everybody who looks at a result.
    pub(crate) async fn guard_after(&self, run: &mut Running) -> Passage {
        self.guard_culture(run, Phase::Post).await;
        unbroken(run, (Guard::Pii, Phase::Post), |run| self.guard_output(run));
        self.guard_words(run, Phase::Post).await;
        passage(&run.outcomes)
    }

    fn guard_cost(&self, run: &mut Running) {
        let at = (Guard::Cost, Phase::Pre);
        if run.recipe.work != Work::Model {
            return run.passed(Guard::Cost, Phase::Pre);
        }
        let sensitivity = run.context.sensitivity_level;
        let limit = u64::from(run.recipe.limits.input_tokens_max);
        let read = input_tokens(run);
        if self.models.find(&run.model).is_none() {
            run.found(
                at,
                Taken::Blocked,
                "unknown_model",
                "The recipe's model is not offered here.",
            );
        } else if !self.in_force(&run.tenant).policy.permits(&run.model) {
            let why = "The tenant's policy does not permit the recipe's model.";
            run.found(at, Taken::Blocked, "model_not_permitted", why);
        } else if !self.workshop.permits(&run.model, sensitivity) {
            let why = "The recipe's model may not see material of this sensitivity.";
            run.found(at, Taken::Blocked, "model_not_permitted", why);
        } else if let Some(judge) = self.unfit_judge(run) {
            let why =
                format!("The verifier's model `{judge}` may not see material of this sensitivity.");
            run.found(at, Taken::Blocked, "model_not_permitted", why);
        } else if read > limit {
            let why = format!("The input has about {read} tokens, at most {limit} are possible.");
            run.found(at, Taken::Blocked, "too_long", why);
        } else {
            run.passed(Guard::Cost, Phase::Pre);
        }
    }

    async fn guard_consent(&self, run: &mut Running) {
        let policy = self.in_force(&run.tenant).policy;
        let named = policy.requires_consent(&run.recipe.name);
        if run.recipe.guard(Guard::Consent).is_none() && !named {
            return;
        }
        let at = (Guard::Consent, Phase::Pre);
        if run.context.consent_scope.is_empty() {
            return run.found(
                at,
                Taken::Blocked,
                "consent_required",
                "No scope of consent is stated.",
            );
        }
        let subjects = subjects(run);
        if subjects.is_empty() {
            return run.found(
                at,
                Taken::Blocked,
                "consent_required",
                "Nobody is named who agreed.",
            );
        }
        let Some(governance) = self.governed.governance.clone() else {
            if run.recipe.work == Work::ConsentIntake && !stated(&run.input) {
                let why = "The content comes without consent.";
                return run.found(at, Taken::Blocked, "consent_required", why);
            }
            return run.found(
                at,
                Taken::Flagged,
                "consent_unverified",
                "Consent is stated, not checked.",
            );
        };
        let mut verified = true;
        for subject in subjects {
            let name = subject.clone();
            let context = &run.context;
            let ask = ConsentAsk {
                subject,
                scopes: context.consent_scope.clone(),
                purpose: context.purpose.clone(),
                party: context.party.clone(),
                now_ms: self.clock.now_ms(),
            };
            let state = answer(async { governance.consent(&run.tenant, ask).await }).await;
            let granted = state.as_ref().is_ok_and(ConsentState::is_granted);
            verified &= granted;
            run.consented.extend(granted.then_some(name));
            if let Some((taken, code, why)) = objection(state, run) {
                return run.found(at, taken, code, why);
            }
        }
        run.consent_verified = verified;
        run.passed(Guard::Consent, Phase::Pre);
    }

    /// Identifying data in what a model would see.
    fn replace_identifying(&self, run: &mut Running) {
        let Some(rule) = run.recipe.guard(Guard::Pii).cloned() else { return };
        // An intake makes its own tokens, and no model sees its input.
        if run.recipe.work != Work::Model {
            return;
        }
        let finder = self.workshop.finder();
        let (mut tokens, mut input) = (run.tokens.clone(), run.input.clone());
        change_texts(&mut input, &mut |text| redacted(finder, text, &mut tokens));
        let (mut transcripts, mut told) = (run.transcripts.clone(), run.told.clone());
        let segments = transcripts.iter_mut().flat_map(|one| &mut one.segments);
        let spoken = segments.flat_map(|one| [&mut one.speaker, &mut one.text]);
        let stated = told.cultural_affiliations.iter_mut().chain(&mut told.consent_scope);
        for text in spoken.chain(stated).chain([&mut told.purpose]) {
            if let Some(other) = redacted(finder, text, &mut tokens) {
                *text = other;
            }
        }
        if tokens.is_empty() {
            return run.passed(Guard::Pii, Phase::Pre);
        }
        let at = (Guard::Pii, Phase::Pre);
        let why = format!("{} values identify somebody.", tokens.len());
        if rule.action == GuardAction::Block {
            return run.found(at, Taken::Blocked, "pii", why);
        }
        run.tokens = tokens;
        run.input = input;
        run.transcripts = transcripts;
        run.told = told;
        run.found(at, Taken::Redacted, "pii", why);
    }

    /// Identifying data in what the client would get.
    fn guard_output(&self, run: &mut Running) {
        let Some(rule) = run.recipe.guard(Guard::Pii).cloned() else { return };
        let Some(mut output) = run.output.clone() else { return };
        let finder = self.workshop.finder();
        let (mut tokens, mut count) = (run.tokens.clone(), 0);
        change_texts(&mut output, &mut |text| {
            let other = redacted(finder, text, &mut tokens);
            count += usize::from(other.is_some());
            other
        });
        let at = (Guard::Pii, Phase::Post);
        if count == 0 {
            return run.passed(Guard::Pii, Phase::Post);
        }
        let why = format!("{count} texts of the result identified somebody.");
        if rule.action == GuardAction::Block {
            return run.found(at, Taken::Blocked, "pii", why);
        }
        run.tokens = tokens;
        run.output = Some(output);
        run.found(at, Taken::Redacted, "pii", why);
    }

    fn guard_jurisdiction(&self, run: &mut Running) {
        let policy = self.in_force(&run.tenant).policy;
        if run.recipe.guard(Guard::Jurisdiction).is_none() && policy.regions.is_empty() {
            return;
        }
        let stated = self.workshop.settings.regions.iter().chain(&policy.regions);
        let regions: Vec<String> = stated.cloned().collect();
        let fallback = run.recipe.models.fallback.map(|class| self.workshop.model(class));
        // What this program does itself goes nowhere.
        let models: Vec<&str> = match run.recipe.work {
            Work::Model => std::iter::once(run.model.as_str()).chain(fallback).collect(),
            _ => Vec::new(),
        };
        let country = run.context.country.as_deref();
        let at = (Guard::Jurisdiction, Phase::Pre);
        match self.may_go(country, &regions, &models, &self.judges_of(run)) {
            Ruling::Allowed => run.passed(Guard::Jurisdiction, Phase::Pre),
            Ruling::Forbidden => {
                let why = "A rule forbids that these words go there.";
                run.found(at, Taken::Blocked, "jurisdiction", why);
            }
            Ruling::Unknown(what) => {
                let agreed = run.is_agreed(Phase::Pre, "jurisdiction_unknown", &[]);
                let taken = if agreed { Taken::Flagged } else { Taken::Held };
                run.found(at, taken, "jurisdiction_unknown", format!("Not known: {what}."));
            }
        }
    }

    /// Everybody elsewhere who would be shown the result.
    pub(crate) fn judges_of(&self, run: &Running) -> Vec<Elsewhere> {
        let speaks = run.recipe.prose.iter().any(|place| place.address == Address::To);
        if speaks { self.panel.elsewhere() } else { Vec::new() }
    }

    /// A verifier's model that may not see material of this sensitivity.
    fn unfit_judge(&self, run: &Running) -> Option<Arc<str>> {
        let sensitivity = run.context.sensitivity_level;
        let models = self.judges_of(run).into_iter().map(|judge| judge.model);
        models.into_iter().find(|model| !self.workshop.permits(model, sensitivity))
    }

    /// Before: what the caller asks for in words of their own. After: what would be said.
    async fn guard_words(&self, run: &mut Running, phase: Phase) {
        self.guard_against_orders(run, phase).await;
        let rule = run.recipe.guard(Guard::Toxicity).cloned();
        let written = phase == Phase::Post && run.recipe.work == Work::Model;
        if rule.is_none() && !written {
            return;
        }
        let text = match phase {
            Phase::Pre => own_words(&run.input),
            Phase::Post => run.output.as_ref().map(texts).unwrap_or_default().join("\n"),
        };
        let at = (Guard::Toxicity, phase);
        let reading = match self.read_words(text, phase).await {
            Ok(reading) => reading,
            Err(why) => return run.found(at, Taken::Failed, "guard_failed", why),
        };
        let harm = harm_of(&reading);
        let line = rule.as_ref().and_then(|rule| rule.threshold).unwrap_or(TOXIC);
        // The floor of the directives holds for every recipe, also where it has no such guard.
        let stops = reading.floor || (rule.is_some() && harm >= line);
        if !stops {
            return run.passed(Guard::Toxicity, phase);
        }
        let flags = rule.is_some_and(|rule| rule.action == GuardAction::Flag) && !reading.floor;
        let taken = if flags { Taken::Flagged } else { Taken::Blocked };
        run.found(at, taken, "toxicity", format!("Harm of {harm} hundredths; the line is {line}."));
    }

    /// Material that speaks to the model is marked; the prompt gives it no authority in any case.
    async fn guard_against_orders(&self, run: &mut Running, phase: Phase) {
        if phase == Phase::Post || run.recipe.work != Work::Model {
            return;
        }
        let at = (Guard::Toxicity, phase);
        match self.read_words(looked_at(run, phase).join("\n"), phase).await {
            Ok(reading) if reading.is_injection() => {
                let why = "The material tries to give orders to the model.";
                run.found(at, Taken::Flagged, "injection", why);
            }
            Ok(_) => {}
            Err(why) => run.found(at, Taken::Failed, "guard_failed", why),
        }
    }

    /// What a text is read as, all of it; or why nobody could read it.
    pub(crate) async fn read_words(&self, text: String, phase: Phase) -> Result<Reading, String> {
        let reading = off_thread::reading(&self.detector, move |detector| {
            long_text::read_all(&text, |passage| match phase {
                Phase::Pre => detector.read(passage, Mode::Normal),
                Phase::Post => detector.read_reply("", passage, Mode::Normal),
            })
        });
        answer(async { Ok(reading.await) }).await
    }
}

/// About four bytes make a token.
pub(crate) fn input_tokens(run: &Running) -> u64 {
    let texts: usize = run.transcripts.iter().map(Transcript::text_bytes).sum();
    u64::try_from((texts + run.input.to_string().len()).div_ceil(4)).unwrap_or(u64::MAX)
}

pub(crate) fn looked_at(run: &Running, phase: Phase) -> Vec<String> {
    match phase {
        Phase::Post => run.output.as_ref().map(texts).unwrap_or_default(),
        Phase::Pre => {
            let said = run.transcripts.iter().flat_map(|one| &one.segments);
            let said = said.flat_map(|one| [one.speaker.clone(), one.text.clone()]);
            let told = texts(&run.input).into_iter().chain(said).chain([run.told.purpose.clone()]);
            told.filter(|text| !text.is_empty()).collect()
        }
    }
}

/// Everybody whose words would be used.
fn subjects(run: &Running) -> BTreeSet<String> {
    let of_run = run.context.subject();
    let mut all: BTreeSet<String> =
        run.transcripts.iter().filter_map(|one| one.storyteller_id.clone()).collect();
    let unnamed = run.transcripts.iter().any(|one| one.storyteller_id.is_none());
    if unnamed || run.transcripts.is_empty() {
        all.extend(of_run.map(str::to_owned));
        // A transcript of nobody cannot have been agreed to.
        if of_run.is_none() {
            all.clear();
        }
    }
    all
}

fn objection(
    state: Result<ConsentState, String>,
    run: &Running,
) -> Option<(Taken, &'static str, String)> {
    let blocked = |code, why: &str| Some((Taken::Blocked, code, why.to_owned()));
    match state {
        Ok(ConsentState::Granted { .. }) => None,
        Ok(ConsentState::Withdrawn { .. }) => {
            blocked("consent_withdrawn", "The person has taken their consent back.")
        }
        Ok(ConsentState::Missing)
            if run.recipe.work == Work::ConsentIntake && stated(&run.input) =>
        {
            None
        }
        Ok(ConsentState::Missing) => blocked("consent_required", "Nobody has agreed to this."),
        Ok(ConsentState::Expired { .. }) => {
            blocked("consent_required", "The person agreed for a time that is over.")
        }
        Ok(ConsentState::NotCovered { missing }) => {
            let why = format!("There is consent, but not to this: {}.", missing.join(", "));
            Some((Taken::Blocked, "consent_required", why))
        }
        Err(why) => Some((Taken::Failed, "guard_failed", why)),
    }
}

/// Whether content comes with consent of its own: an intake is where that is first written down.
fn stated(input: &Value) -> bool {
    let said = |kind: &str| input["provided_consent"][kind].as_bool().unwrap_or(false);
    said("written") || said("verbal")
}

/// What the caller says, without the material of others.
fn own_words(input: &Value) -> String {
    const MATERIAL: [&str; 6] =
        ["transcripts", "raw_content", "ticket_thread", "profile_context", "request", "response"];
    let Value::Object(members) = input else { return String::new() };
    let own = members.iter().filter(|(name, _)| !MATERIAL.contains(&name.as_str()));
    own.flat_map(|(_, member)| texts(member)).collect::<Vec<_>>().join("\n")
}

pub(crate) fn harm_of(reading: &Reading) -> u8 {
    let trained = reading.as_reply.map_or(0, |reply| reply.harm.hundredths());
    reading.harm.hundredths().max(trained)
}
