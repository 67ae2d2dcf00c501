//! Whether the money is there: the most that a matter can cost is reserved before anything is spent, and
//! settled with what it did cost.
//!
//! **Invariant:** where less is left than the most, fewer attempts are made and the model is told to write less,
//! until what is left is enough or one short reply is all.
//! **Invariant:** under a limit no model is asked whose price nobody knows, and no cheaper one that the
//! policy, the sensitivity or a rule of a country does not permit.
//! **Invariant:** where no limit is in force, nothing is asked of a database.

use super::{Examined, Guard, GuardEffect, GuardError, jurisdiction};
use crate::conclude::Choice;
use crate::engine::Engine;
use crate::matter::{Matter, Purpose};
use conclave_core::{
    Candidate, Disposition, Finding, GenerationFailure, GuardAction, GuardCode, GuardKind,
    MicroUsd, Passage, Phase, TenantId,
};
use conclave_govern::{JurisdictionRuling, Price, Scopes, TenantPolicy, Usd};
use conclave_ledger::{Body, Draft, Kind, Value, sha256};
use conclave_money::{
    BudgetRefusal, Crossing, LineExceeded, Outlook, Payer, RequestSize, Reservation,
    ReservationRequest, Steward,
};
use conclave_ports::{Announcement, EventKind, OfferedModel};
use conclave_voice::{BudgetNotice, Language, NamedLimit, budget_notice};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;

pub(super) struct Budget;

/// How a matter is paid for.
#[derive(Clone, Debug, Default)]
pub struct Payment {
    /// What its model costs the tenant.
    pub price: Price,
    /// What the dearest that may stand in for it costs.
    pub dearest: Price,
    /// What is reserved, if anything is.
    pub reservation: Option<Reservation>,
    /// The model that was asked for, where a cheaper one is asked because money became scarce.
    pub downgraded_from: Option<String>,
    /// The model that is asked instead.
    pub downgraded_to: Option<String>,
    /// How much the model may write, where a limit is in force and nobody else said.
    pub output_tokens: Option<u64>,
    /// How many attempts the model has, where money is left for fewer than usual.
    pub attempts: Option<u8>,
    /// Why it may not be paid for.
    pub refusal: Option<BudgetRefusal>,
}

impl Payment {
    /// What the calls of a turn cost: tokens that were counted, and the most for calls whose end nobody
    /// saw.
    #[must_use]
    pub(crate) fn cost(&self, size: &RequestSize, choices: &[Choice]) -> MicroUsd {
        let attempts = || choices.iter().flat_map(|choice| &choice.attempts);
        let unseen = attempts().filter(|attempt| match &attempt.candidate {
            Ok(candidate) => candidate.is_cut_off,
            Err(failure) => is_unseen(*failure),
        });
        let unseen = u64::try_from(unseen.count()).unwrap_or(u64::MAX);
        let answers = attempts().filter_map(|attempt| attempt.candidate.as_ref().ok());
        let answers = answers.filter(|candidate| !candidate.is_cut_off);
        let ballots = attempts().flat_map(|attempt| &attempt.panels).flat_map(|run| &run.ballots);
        let counted = answers.map(|candidate| self.cost_of(candidate));
        let known = counted.chain(ballots.map(|ballot| ballot.cost));
        let known = known.fold(MicroUsd(0), MicroUsd::saturating_add);
        if unseen == 0 || self.dearest.is_free() {
            return known;
        }
        // Whoever stood in for the model may have been asked last.
        let call = size.call(&self.dearest);
        known.saturating_add(MicroUsd(call.0.saturating_mul(unseen)))
    }

    /// What an answer cost, at the price of whoever wrote it.
    #[must_use]
    pub fn cost_of(&self, candidate: &Candidate) -> MicroUsd {
        match &candidate.stand_in {
            Some(stand_in) => stand_in.cost,
            None => self.price.cost(candidate.usage),
        }
    }
}

/// Whether a model may have answered, and been paid for it, although nobody saw what.
#[must_use]
pub const fn is_unseen(failure: GenerationFailure) -> bool {
    matches!(
        failure,
        GenerationFailure::Timeout | GenerationFailure::Invalid | GenerationFailure::TooLarge
    )
}

impl Guard for Budget {
    fn kind(&self) -> GuardKind {
        GuardKind::Budget
    }

    fn examine<'a>(
        &'a self,
        engine: &'a Engine,
        matter: &'a Matter,
        phase: Phase,
    ) -> BoxFuture<'a, Result<Option<Examined>, GuardError>> {
        async move {
            // Nothing is reserved for what goes no further.
            if phase == Phase::After || matter.passage() != Passage::Open {
                return Ok(None);
            }
            let Some(steward) = &engine.steward else {
                return Ok(unkept(matter));
            };
            match (&matter.purpose, &matter.model) {
                (Purpose::Moderations, _) | (Purpose::Recipe(_), None) => Ok(None),
                _ => reserve(engine, steward, matter).await.map(Some),
            }
        }
        .boxed()
    }
}

fn unkept(matter: &Matter) -> Option<Examined> {
    matter.rule(GuardKind::Budget)?;
    let why = "No budget is kept.";
    let code = GuardCode::NoBudgetKept;
    let flagged = Disposition::Flagged;
    Some(Finding::new(GuardKind::Budget, Phase::Before, flagged, code, why).into())
}

async fn reserve(
    engine: &Engine,
    steward: &Steward,
    matter: &Matter,
) -> Result<Examined, GuardError> {
    let policy = matter.policy();
    let mut payment = engine.unreserved_payment(matter);
    let passed = || Finding::passed(GuardKind::Budget, Phase::Before);
    // Whoever spent too fast is stopped also where no limit is in force, and there is nothing to bound.
    let (most, cheaper) = if policy.limits_money() {
        match engine.most(matter, matter.model.as_deref()) {
            Ok(most) => (most, engine.cheaper(matter, most)),
            Err(refusal) => return Ok(refused(GuardCode::Unpriced, refusal)),
        }
    } else {
        (MicroUsd(0), None)
    };
    let scopes = scopes(matter);
    let request = ReservationRequest {
        id: matter.id.0.into_bytes(),
        policy,
        scopes: &scopes,
        payer: payer(matter),
        cost: steward.estimate(&matter.tenant, matter.model.as_deref().unwrap_or_default(), most),
        cheaper: cheaper
            .as_ref()
            .map(|other| steward.estimate(&matter.tenant, &other.model, other.most)),
        now_ms: engine.clock.now_ms(),
    };
    match steward.reserve(request).await {
        Ok(reservation) => {
            let is_cheaper = reservation.as_ref().is_some_and(|one| one.is_cheaper);
            payment.reservation = reservation;
            let mut finding = passed();
            if let Some(other) = cheaper.filter(|_| is_cheaper) {
                finding = downgrade(matter, &mut payment, other);
            }
            if policy.limits_money() {
                engine.spend_within(matter, &mut payment);
            }
            Ok(Examined::with(finding, GuardEffect::Pay(Box::new(payment))))
        }
        // Whoever asked for a run is told to wait for a person; a turn is told to ask again.
        Err(BudgetRefusal::Unavailable) if matter.purpose.is_recipe() => {
            Err(GuardError("budgets cannot be checked".to_owned()))
        }
        Err(refusal) => {
            if let Some(crossing) = refusal.crossing() {
                engine.note_crossing(&matter.tenant, crossing);
            }
            Ok(refused(GuardCode::InsufficientQuota, refusal))
        }
    }
}

fn refused(code: GuardCode, refusal: BudgetRefusal) -> Examined {
    let why = refusal.to_string();
    let blocked = Disposition::Blocked;
    let finding = Finding::new(GuardKind::Budget, Phase::Before, blocked, code, why);
    Examined::with(finding, GuardEffect::Unpaid(Box::new(refusal)))
}

fn downgrade(matter: &Matter, payment: &mut Payment, other: CheaperModel) -> Finding {
    let asked = matter.model.clone().unwrap_or_default();
    let why = format!("`{}` is asked instead of `{asked}`.", other.model);
    payment.price = other.price;
    payment.dearest = other.dearest;
    payment.downgraded_from = Some(asked);
    payment.downgraded_to = Some(other.model);
    let code = GuardCode::Downgraded;
    Finding::new(GuardKind::Budget, Phase::Before, Disposition::Downgraded, code, why)
}

/// A model that may be asked when money becomes scarce.
struct CheaperModel {
    model: String,
    price: Price,
    dearest: Price,
    most: MicroUsd,
}

/// The least that a model is told to write at most, however little money is left.
const OUTPUT_TOKENS_MIN: u64 = 256;

/// What somebody reads whose request a budget refuses.
#[must_use]
pub fn refusal_sentence(refusal: &BudgetRefusal, language: Language) -> String {
    let of_line = |exceeded: &LineExceeded| {
        let LineExceeded { line, left, likely, outlook, .. } = exceeded;
        let (scope, period) = (line.key.scope.as_str(), line.key.period.as_str());
        let limit = NamedLimit { scope, period, limit: line.limit };
        let (left, likely) = (*left, *likely);
        let notice = match outlook {
            Outlook::Soon => BudgetNotice::Soon { limit, left, likely },
            Outlook::NextPeriod => BudgetNotice::NextPeriod { limit, left, likely },
            Outlook::Never => BudgetNotice::Never { limit, likely },
        };
        budget_notice(&notice, language)
    };
    let notice = match refusal {
        BudgetRefusal::LineExceeded(exceeded) => return of_line(exceeded),
        BudgetRefusal::RequestLimit { likely, limit } => {
            BudgetNotice::RequestLimit { likely: *likely, limit: *limit }
        }
        BudgetRefusal::RunningAway { .. } => BudgetNotice::RunningAway,
        BudgetRefusal::Unpriced { model } => BudgetNotice::Unpriced { model },
        BudgetRefusal::Unavailable => BudgetNotice::Unavailable,
    };
    budget_notice(&notice, language)
}

impl Engine {
    /// Sets how much a model may write, and how often it is asked, so that what is left is enough.
    fn spend_within(&self, matter: &Matter, payment: &mut Payment) {
        let full = matter.content.size(payment.price.output_tokens_max);
        payment.output_tokens = Some(full.output_tokens);
        let Some(reservation) = &payment.reservation else { return };
        let left = reservation.left;
        let usual = match matter.purpose {
            Purpose::Chat => u64::from(self.settings.attempts_max.max(1)),
            _ => 1,
        };
        let with_attempts = |attempts: u64| RequestSize {
            calls: full.calls * attempts / usual,
            panels: full.panels * attempts / usual,
            ..full
        };
        let is_enough = |size: RequestSize| {
            let judging = self.judging_cost(&size).unwrap_or(MicroUsd(u64::MAX));
            size.calls_cost(&payment.dearest).saturating_add(judging) <= left
        };
        let most = (1..=usual).rev().find(|attempts| is_enough(with_attempts(*attempts)));
        if most == Some(usual) {
            return;
        }
        if matter.purpose == Purpose::Chat {
            payment.attempts = u8::try_from(most.unwrap_or(1)).ok();
        }
        if most.is_some() {
            return;
        }
        let once = with_attempts(1);
        let (mut enough, mut too_much) = (0, full.output_tokens);
        while enough + 1 < too_much {
            let output_tokens = enough.midpoint(too_much);
            let fits = is_enough(RequestSize { output_tokens, ..once });
            *(if fits { &mut enough } else { &mut too_much }) = output_tokens;
        }
        payment.output_tokens = Some(enough.max(OUTPUT_TOKENS_MIN).min(full.output_tokens));
    }

    /// How a matter is paid for where nothing is reserved: at the price that is known.
    #[must_use]
    pub fn unreserved_payment<C: ?Sized>(&self, matter: &Matter<C>) -> Payment {
        let Some(model) = &matter.model else { return Payment::default() };
        let price = self.price_of(matter.policy(), model).unwrap_or_default();
        let dearest = self.dearest(matter.policy(), model, price);
        Payment { price, dearest, ..Payment::default() }
    }

    /// What a model costs a tenant; `None` if nobody knows.
    #[must_use]
    pub fn price_of(&self, policy: &TenantPolicy, model: &str) -> Option<Price> {
        match &self.steward {
            // Without limits a turn is counted at the price of the offer; under one, it must be stated.
            Some(steward) => steward.price(policy, model).or_else(|| {
                let offered = self.models.find(model).filter(|_| !policy.limits_money());
                offered.map(|offered| price_of_offer(&offered))
            }),
            None => self.models.find(model).map(|offered| price_of_offer(&offered)),
        }
    }

    /// The highest price that a call can be charged at: whoever stands in for the model may be dearer.
    fn highest_price(&self, policy: &TenantPolicy, model: &str) -> Result<Price, BudgetRefusal> {
        match &self.steward {
            Some(steward) => steward.price_at_most(policy, model),
            None => self
                .price_of(policy, model)
                .ok_or_else(|| BudgetRefusal::Unpriced { model: model.to_owned() }),
        }
    }

    /// The same where calls are counted that were made: under a limit no unknown price gets that far, and
    /// without one a stand-in whose price nobody knows is counted like the model.
    #[must_use]
    pub fn dearest(&self, policy: &TenantPolicy, model: &str, price: Price) -> Price {
        self.highest_price(policy, model).unwrap_or(price)
    }

    /// Whether a model is offered and permitted by the policy and for the sensitivity, and its price is
    /// known where it must be.
    #[must_use]
    pub fn may_be_asked<C: ?Sized>(&self, matter: &Matter<C>, model: &str) -> bool {
        let policy = matter.policy();
        self.models.find(model).is_some()
            && self.settings.permits(model, matter.context.sensitivity)
            && policy.permits(model)
            && (!policy.limits_money() || self.highest_price(policy, model).is_ok())
    }

    /// The most that a matter can cost with a model: every call as long as can be, also by the model that
    /// is asked next, and what judging can cost.
    ///
    /// # Errors
    /// When nobody knows the price of one that may be asked.
    fn most(&self, matter: &Matter, model: Option<&str>) -> Result<MicroUsd, BudgetRefusal> {
        let Some(model) = model else { return self.judging_cost(&matter.content.size(None)) };
        let price = self.highest_price(matter.policy(), model)?;
        let size = matter.content.size(price.output_tokens_max);
        let mut calls = size.calls_cost(&price);
        let next = matter.fallback.as_deref().filter(|next| self.may_be_asked(matter, next));
        if let Some(next) = next {
            calls = calls.max(size.calls_cost(&self.highest_price(matter.policy(), next)?));
        }
        Ok(calls.saturating_add(self.judging_cost(&size)?))
    }

    fn judging_cost(&self, size: &RequestSize) -> Result<MicroUsd, BudgetRefusal> {
        self.steward.as_ref().map_or(Ok(MicroUsd(0)), |steward| steward.judging_cost(size))
    }

    /// The recipe's other model where its guard says so, else that of the tenant's policy; only if it is
    /// permitted in every respect and costs less.
    fn cheaper(&self, matter: &Matter, most: MicroUsd) -> Option<CheaperModel> {
        let policy = matter.policy();
        let asked = matter.model.as_deref()?;
        let rule = matter.rule(GuardKind::Budget);
        let by_recipe = rule.is_some_and(|rule| rule.action == GuardAction::Downgrade);
        let own = matter.fallback.as_deref().filter(|_| by_recipe);
        let stated = policy.downgrade_model.as_deref().filter(|_| policy.auto_downgrade_enabled);
        own.into_iter().chain(stated).find_map(|model| {
            let may_be_sent = !jurisdiction::governs(matter)
                || self.may_go(matter, &[model]) == JurisdictionRuling::Allowed;
            if model == asked || !may_be_sent || !self.may_be_asked(matter, model) {
                return None;
            }
            let less = self.most(matter, Some(model)).ok().filter(|less| *less < most)?;
            let price = self.price_of(policy, model)?;
            let dearest = self.highest_price(policy, model).ok()?;
            Some(CheaperModel { model: model.to_owned(), price, dearest, most: less })
        })
    }

    /// Says what a matter cost. Nobody waits for it: what is lost on the way is found in the ledger.
    pub fn settle<C: ?Sized>(&self, matter: &Matter<C>, cost: MicroUsd) {
        let Some(steward) = &self.steward else { return };
        let reservation = matter.payment.reservation;
        let needs_accounts = reservation.is_some();
        if let Some(reservation) = &reservation {
            let model = matter.model.as_deref().unwrap_or_default();
            steward.learn_cost(&matter.tenant, model, reservation.amount, cost);
        }
        let settled = steward.settle(reservation, cost, matter.policy(), payer(matter));
        if !needs_accounts {
            return;
        }
        let (engine, tenant) = (self.clone(), matter.tenant.clone());
        tokio::spawn(async move {
            settled.await.iter().for_each(|crossing| engine.note_crossing(&tenant, crossing));
        });
    }

    /// Tells everybody who should know that a limit comes near: once in each period and scope.
    fn note_crossing(&self, tenant: &TenantId, crossing: &Crossing) {
        let Some(steward) = &self.steward else { return };
        let Crossing { line, percent, spent } = crossing;
        let (scope, period) = (line.key.scope.as_str(), line.key.period.as_str());
        tracing::warn!(%tenant, scope, period, percent, limit = line.limit.0, "a limit comes near");
        steward.state.show_alert(crossing);
        let draft = Draft {
            public: Value::map([
                ("scope", Value::from(scope)),
                ("period", Value::from(period)),
                ("number", Value::Uint(line.key.number.into())),
                ("percent", Value::Uint((*percent).into())),
                ("limit", Value::Uint(line.limit.0)),
                ("spent", Value::Uint(spent.0)),
            ]),
            ..self.settings.draft(Kind::Other("budget.alert".to_owned()), line.key.tenant)
        };
        self.ledger.append_soon(draft, Body::empty());
        let data = json!({
            "scope": scope,
            "period": period,
            "percent": percent,
            "limit_microusd": line.limit.0,
            "spent_microusd": spent.0,
            "resets_at_ms": line.key.ends_ms(),
        });
        self.announce_soon(tenant, Announcement { kind: EventKind::BudgetAlert, data });
    }
}

fn price_of_offer(offered: &OfferedModel) -> Price {
    Price {
        input_usd_per_million: Usd(offered.input_price),
        output_usd_per_million: Usd(offered.output_price),
        output_tokens_max: None,
    }
}

/// Who is watched for running away. Runs have no conversation in common, so that it is whoever asks for
/// the same recipe with the same key about the same person.
fn payer<C: ?Sized>(matter: &Matter<C>) -> Payer {
    let id = match &matter.purpose {
        Purpose::Recipe(name) => {
            let key = matter.key.as_ref().map_or("", |key| key.as_str());
            let subject = matter.who.subject.as_ref().map_or(&[][..], |subject| &subject[..]);
            let digest = sha256(&[
                b"conclave.runs.v1",
                &sha256(&[key.as_bytes()]),
                &sha256(&[subject]),
                name.as_bytes(),
            ]);
            let mut caller = [0; 16];
            caller.copy_from_slice(&digest[..16]);
            caller
        }
        _ => matter.who.session,
    };
    Payer { tenant: matter.who.tenant, id }
}

fn scopes(matter: &Matter) -> Scopes {
    let recipe = match &matter.purpose {
        Purpose::Recipe(name) => Some(name.to_string()),
        _ => None,
    };
    Scopes {
        tenant: matter.tenant.clone(),
        key: matter.key.as_ref().map(|key| key.as_str().to_owned()),
        user: matter.who.subject.map(hex::encode),
        session: recipe.is_none().then(|| hex::encode(matter.who.session)),
        recipe,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conclude::Delivered;
    use conclave_core::{
        Attempt, Ballot, Cast, Outcome, PanelRun, Priority, Scrutiny, Seat, StandIn, Usage, decide,
    };

    fn attempt(stand_in: Option<StandIn>, judge_cost: u64) -> Attempt {
        let usage = Usage { input_tokens: 10, output_tokens: 5 };
        let seat = Seat::new("judge", Priority::Middle);
        let ballot =
            Ballot { cost: MicroUsd(judge_cost), ..Ballot::bare(seat, Cast::NotApplicable) };
        let consensus = decide(&[], Scrutiny::Normal.bars(), false);
        let panel = PanelRun { ballots: vec![ballot], consensus };
        let candidate = Ok(Candidate { usage, stand_in, ..Candidate::default() });
        Attempt { candidate, panels: vec![panel.clone(), panel] }
    }

    #[test]
    fn every_candidate_every_stand_in_every_panel_and_every_unseen_call_is_paid() {
        let price = Price {
            input_usd_per_million: Usd(MicroUsd(1_000_000)),
            output_usd_per_million: Usd(MicroUsd(2_000_000)),
            output_tokens_max: None,
        };
        let payment = Payment { price, dearest: price, ..Payment::default() };
        let stand_in = StandIn { model: "spare".into(), cost: MicroUsd(1_000) };
        let refused = Attempt { candidate: Err(GenerationFailure::Refused), panels: Vec::new() };
        let attempts = vec![attempt(None, 300), refused, attempt(Some(stand_in), 0)];
        let choice =
            Choice { attempts, ..Choice::undeliberated(Outcome::Delivered, Delivered::default()) };
        let size = RequestSize { prompt_tokens: 100, output_tokens: 50, calls: 3, panels: 6 };
        let known = MicroUsd(20 + 600 + 1_000);
        assert_eq!(payment.cost(&size, std::slice::from_ref(&choice)), known);
        let unseen = Attempt { candidate: Err(GenerationFailure::Timeout), panels: Vec::new() };
        let late = Choice { attempts: vec![unseen], ..choice.clone() };
        let most = known.saturating_add(size.call(&price));
        assert_eq!(payment.cost(&size, &[choice, late]), most);
    }
}
