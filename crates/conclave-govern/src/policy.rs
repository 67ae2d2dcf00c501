//! What a tenant may do and spend.
//!
//! **Invariant:** a policy can only be stricter than the directives' floor and what the operator set;
//! one that would be laxer is refused when it is written.

use crate::allowance::LINES_MAX;
use crate::{AccountKey, AccountLimit, BudgetScope, Period, Price, Rates, Scopes, Usd};
use conclave_core::{Bars, FLOOR, GuardKind, MicroUsd, Mode, Scrutiny};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use thiserror::Error;

/// The most names in one list of a policy.
const NAMES_MAX: usize = 200;
/// The longest of them.
const NAME_BYTES_MAX: usize = 200;
/// The longest time words may be kept.
const RETENTION_DAYS_MAX: u32 = 36_500;

/// How much may be spent in a day and in a month.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Allowance {
    /// Dollars a day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub daily_usd: Option<Usd>,
    /// Dollars a month.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub monthly_usd: Option<Usd>,
}

/// What happens to a reply whose decision no disk takes; the stricter is the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditFailure {
    /// It is delivered, counted and reported; the log states later which numbers are missing. Turns of
    /// high or sacred sensitivity are held all the same.
    DeliverAndAlert,
    /// It is withheld, and where the trouble is known already, no model is asked.
    Hold,
}

impl AuditFailure {
    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DeliverAndAlert => "deliver_and_alert",
            Self::Hold => "hold",
        }
    }
}

/// What happens to an input that may be meant to do harm, where one weak sign alone says so; the stricter
/// is the greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnDoubt {
    /// It is marked and treated as strictly as possible.
    #[default]
    Flag,
    /// It is refused.
    Block,
}

/// What happens to images, sounds and files that nobody can judge; the stricter is the greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnjudgedParts {
    /// They are passed on, and the decision says so.
    #[default]
    Pass,
    /// The request is refused.
    Refuse,
}

/// Whether a reply to somebody who seems to have a hard time ends with a sentence that offers help.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CareOffer {
    /// It does.
    #[default]
    On,
    /// It does not, except where children read.
    Off,
}

/// When a conversation that runs away is stopped for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Breaker {
    /// So many refusals for want of money within a minute.
    pub refusals_per_minute: u16,
    /// So many dollars within a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spend_per_minute_usd: Option<Usd>,
}

impl Default for Breaker {
    fn default() -> Self {
        Self { refusals_per_minute: 30, spend_per_minute_usd: None }
    }
}

/// What happens to identifying data in a person's messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageData {
    /// The model sees it.
    #[default]
    Pass,
    /// The model sees tokens in its place.
    Redact,
    /// A message that has any is refused.
    Block,
}

/// What happens to identifying data that a reply brings up by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyData {
    /// It leaves.
    Pass,
    /// Numbers of cards, accounts, documents, patients and national ids are replaced.
    #[default]
    AccountNumbers,
    /// Everything that identifies somebody is replaced.
    Redact,
}

/// What happens to identifying data in conversations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PersonalDataPolicy {
    /// In what a person writes.
    pub messages: MessageData,
    /// Whether what was kept from the model is put back in the reply to the person it belongs to.
    pub restore: bool,
    /// In what a reply brings up by itself, where it is stated: what nobody stated must not bind a tenant
    /// as if the operator had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replies: Option<ReplyData>,
}

impl Default for PersonalDataPolicy {
    fn default() -> Self {
        Self { messages: MessageData::Pass, restore: true, replies: None }
    }
}

impl PersonalDataPolicy {
    /// What happens to data that a reply brings up by itself.
    #[must_use]
    pub fn reply_data(self) -> ReplyData {
        self.replies.unwrap_or_default()
    }

    fn strictest(self, other: Self) -> Self {
        Self {
            messages: self.messages.max(other.messages),
            restore: self.restore && other.restore,
            replies: self.replies.max(other.replies),
        }
    }
}

/// What a tenant may do and spend. Everything may be left out; then the operator's word holds alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TenantPolicy {
    /// Models that may be asked; all where empty.
    pub allowed_models: Vec<String>,
    /// Models that may not be asked.
    pub blocked_models: Vec<String>,
    /// Dollars that one request with everything it causes may cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_per_request_usd: Option<Usd>,
    /// Dollars a day for the whole tenant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub daily_budget_usd: Option<Usd>,
    /// Dollars a month for the whole tenant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub monthly_budget_usd: Option<Usd>,
    /// What each API key may spend.
    pub per_key: Allowance,
    /// What each person may spend; those without an id share one.
    pub per_user: Allowance,
    /// What each conversation may spend.
    pub per_session: Allowance,
    /// What each recipe may spend.
    pub per_recipe: Allowance,
    /// Prices that hold for this tenant, by model.
    pub prices: BTreeMap<String, Price>,
    /// Whether a cheaper model is asked when a limit comes near.
    pub auto_downgrade_enabled: bool,
    /// From which share of a limit on, in per cent.
    pub downgrade_at_percent: u8,
    /// Which model then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub downgrade_model: Option<String>,
    /// At which shares of a limit somebody is told, in per cent.
    pub alert_at_percent: Vec<u8>,
    /// When a conversation that runs away is stopped for a while.
    pub breaker: Breaker,
    /// How fast the tenant may ask; stricter than the operator's only.
    #[serde(skip_serializing_if = "Rates::is_unlimited")]
    pub rates: Rates,
    /// Modes a request may ask for; the operator's where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modes: Option<Vec<Mode>>,
    /// The least scrutiny of every turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scrutiny_min: Option<Scrutiny>,
    /// From which harm score on an input is blocked, in hundredths; stricter than the mode's only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub harm_threshold: Option<u8>,
    /// Bars that every reply must reach on top of its scrutiny's own; each may only raise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bars_min: Option<Bars>,
    /// Whether an attempt to override instructions is refused instead of flagged.
    pub block_injection: bool,
    /// What happens to an input in doubt; stricter than the operator's only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_doubt: Option<OnDoubt>,
    /// What happens to parts that nobody can judge; stricter than the operator's only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unjudged: Option<UnjudgedParts>,
    /// Whether help is offered beside replies to people who seem to have a hard time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub care: Option<CareOffer>,
    /// Whether replies carry a link under which their person may ask why, and appeal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why_url: Option<bool>,
    /// What happens to identifying data in conversations.
    pub personal_data: PersonalDataPolicy,
    /// Guards that only watch: what they find is recorded and changes nothing. What reaches the
    /// directives' floor is stopped all the same.
    pub monitor_guards: Vec<GuardKind>,
    /// Recipes that need a person's consent even where they would not by themselves.
    pub require_consent_for_agents: Vec<String>,
    /// Countries whose rules the tenant stands under, as ISO 3166 codes.
    pub regions: Vec<String>,
    /// Days after which the words of a decision are deleted; 0 keeps them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention_days: Option<u32>,
    /// What happens to a reply whose decision no disk takes; stricter than the operator's only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit_failure: Option<AuditFailure>,
}

impl Default for TenantPolicy {
    fn default() -> Self {
        Self {
            allowed_models: Vec::new(),
            blocked_models: Vec::new(),
            max_cost_per_request_usd: None,
            daily_budget_usd: None,
            monthly_budget_usd: None,
            per_key: Allowance::default(),
            per_user: Allowance::default(),
            per_session: Allowance::default(),
            per_recipe: Allowance::default(),
            prices: BTreeMap::new(),
            auto_downgrade_enabled: false,
            downgrade_at_percent: 80,
            downgrade_model: None,
            alert_at_percent: vec![70, 90, 100],
            breaker: Breaker::default(),
            rates: Rates::default(),
            modes: None,
            scrutiny_min: None,
            harm_threshold: None,
            bars_min: None,
            block_injection: false,
            on_doubt: None,
            unjudged: None,
            care: None,
            why_url: None,
            personal_data: PersonalDataPolicy::default(),
            monitor_guards: Vec::new(),
            require_consent_for_agents: Vec::new(),
            regions: Vec::new(),
            retention_days: None,
            audit_failure: None,
        }
    }
}

/// Why a policy cannot be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field}: {message}")]
pub struct PolicyError {
    /// Where.
    pub field: String,
    /// What.
    pub message: String,
}

impl PolicyError {
    fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

impl TenantPolicy {
    /// Reads a policy and checks it.
    ///
    /// # Errors
    /// When a field is unknown, out of its range, or would cross the directives' floor.
    pub fn parse(value: serde_json::Value) -> Result<Self, PolicyError> {
        if !value.is_object() {
            return Err(PolicyError::new("policy", "must be an object"));
        }
        let policy: Self = serde_json::from_value(value)
            .map_err(|error| PolicyError::new("policy", error.to_string()))?;
        policy.check().map(|()| policy)
    }

    /// Checks every range, and that nothing crosses the floor.
    ///
    /// # Errors
    /// With the first thing that is wrong.
    pub fn check(&self) -> Result<(), PolicyError> {
        self.check_names()?;
        self.check_shares()?;
        if let Some(threshold) = self.harm_threshold {
            if threshold > FLOOR {
                let message = format!(
                    "a threshold of {threshold} hundredths would cross the directives' floor of \
                     {FLOOR}; nothing a tenant says can"
                );
                return Err(PolicyError::new("harm_threshold", message));
            }
            if threshold == 0 {
                return Err(PolicyError::new("harm_threshold", "0 would block every text"));
            }
        }
        if let Some(fault) = self.bars_min.and_then(Bars::fault) {
            return Err(PolicyError::new("bars_min", fault));
        }
        if self.modes.as_ref().is_some_and(Vec::is_empty) {
            return Err(PolicyError::new("modes", "without any mode nothing could be asked"));
        }
        if self.retention_days.is_some_and(|days| days > RETENTION_DAYS_MAX) {
            let message = format!("must be 0 to {RETENTION_DAYS_MAX}");
            return Err(PolicyError::new("retention_days", message));
        }
        let country =
            |name: &String| name.len() == 2 && name.bytes().all(|b| b.is_ascii_uppercase());
        if let Some(wrong) = self.regions.iter().find(|name| !country(name)) {
            let message = format!("`{wrong}` is not an ISO 3166 code of two capital letters");
            return Err(PolicyError::new("regions", message));
        }
        if let Some((field, message)) = self.rates.fault() {
            return Err(PolicyError::new(format!("rates.{field}"), message));
        }
        if self.breaker.refusals_per_minute == 0 {
            return Err(PolicyError::new("breaker.refusals_per_minute", "must be at least 1"));
        }
        Ok(())
    }

    fn check_names(&self) -> Result<(), PolicyError> {
        let lists = [
            ("allowed_models", &self.allowed_models),
            ("blocked_models", &self.blocked_models),
            ("require_consent_for_agents", &self.require_consent_for_agents),
            ("regions", &self.regions),
        ];
        for (field, names) in lists {
            if names.len() > NAMES_MAX {
                return Err(PolicyError::new(field, format!("at most {NAMES_MAX} names")));
            }
            names.iter().try_for_each(|name| check_name(field, name))?;
        }
        if self.prices.len() > NAMES_MAX {
            return Err(PolicyError::new("prices", format!("at most {NAMES_MAX} models")));
        }
        self.prices.keys().try_for_each(|name| check_name("prices", name))?;
        self.downgrade_model.iter().try_for_each(|name| check_name("downgrade_model", name))
    }

    fn check_shares(&self) -> Result<(), PolicyError> {
        let share = |percent: &u8| (1..=100).contains(percent);
        if !share(&self.downgrade_at_percent) {
            return Err(PolicyError::new("downgrade_at_percent", "must be 1 to 100"));
        }
        if self.alert_at_percent.len() > 10 || !self.alert_at_percent.iter().all(share) {
            return Err(PolicyError::new("alert_at_percent", "at most ten shares of 1 to 100"));
        }
        match &self.downgrade_model {
            None if self.auto_downgrade_enabled => Err(PolicyError::new(
                "downgrade_model",
                "must be named where auto_downgrade_enabled is true",
            )),
            Some(model) if !self.permits(model) => Err(PolicyError::new(
                "downgrade_model",
                format!("`{model}` is not among the models this policy allows"),
            )),
            _ => Ok(()),
        }
    }

    /// Whether a model may be asked.
    #[must_use]
    pub fn permits(&self, model: &str) -> bool {
        let named = |names: &[String]| names.iter().any(|name| name == model);
        !named(&self.blocked_models)
            && (self.allowed_models.is_empty() || named(&self.allowed_models))
    }

    /// Whether a recipe, or another way of asking, needs a person's consent; `*` names all of them.
    #[must_use]
    pub fn requires_consent(&self, agent: &str) -> bool {
        self.require_consent_for_agents.iter().any(|name| name == agent || name == "*")
    }

    /// Whether a guard only watches.
    #[must_use]
    pub fn monitors(&self, guard: GuardKind) -> bool {
        self.monitor_guards.contains(&guard)
    }

    /// Whether any limit on money is in force.
    #[must_use]
    pub fn limits_money(&self) -> bool {
        self.max_cost_per_request_usd.is_some() || !self.allowances().is_empty()
    }

    fn allowances(&self) -> Vec<(BudgetScope, Period, MicroUsd)> {
        let tenant =
            Allowance { daily_usd: self.daily_budget_usd, monthly_usd: self.monthly_budget_usd };
        let all = [
            (BudgetScope::Tenant, tenant),
            (BudgetScope::Key, self.per_key),
            (BudgetScope::User, self.per_user),
            (BudgetScope::Session, self.per_session),
            (BudgetScope::Recipe, self.per_recipe),
        ];
        let each = all.into_iter().flat_map(|(scope, allowed)| {
            let day = allowed.daily_usd.map(|limit| (scope, Period::Day, limit.0));
            let month = allowed.monthly_usd.map(|limit| (scope, Period::Month, limit.0));
            [day, month]
        });
        each.flatten().take(LINES_MAX).collect()
    }

    /// Every limit that a request counts towards. Whoever has no name shares one account with all
    /// others who have none; a request without a recipe counts towards none.
    #[must_use]
    pub fn lines(&self, tenant: u64, scopes: &Scopes, now_ms: u64) -> Vec<AccountLimit> {
        let line = |(scope, period, limit): (BudgetScope, Period, MicroUsd)| {
            let name = match scope {
                BudgetScope::Tenant => "",
                BudgetScope::Key => scopes.key.as_deref().unwrap_or(""),
                BudgetScope::User => scopes.user.as_deref().unwrap_or(""),
                BudgetScope::Session => scopes.session.as_deref().unwrap_or(""),
                BudgetScope::Recipe => scopes.recipe.as_deref()?,
            };
            let (name, number) = (name.to_owned(), period.number_at(now_ms));
            Some(AccountLimit { key: AccountKey { tenant, scope, name, period, number }, limit })
        };
        self.allowances().into_iter().filter_map(line).collect()
    }

    /// This policy, with what it leaves open taken from the operator's defaults. A field that is stated
    /// in both is the stated one's; what only tightens is taken from whichever is stricter.
    #[must_use]
    pub fn over(mut self, defaults: &Self) -> Self {
        let base = Self::default();
        macro_rules! inherit {
            ($($field:ident),*) => {
                $(if self.$field == base.$field { self.$field = defaults.$field.clone(); })*
            };
        }
        inherit!(
            allowed_models,
            blocked_models,
            max_cost_per_request_usd,
            daily_budget_usd,
            monthly_budget_usd,
            per_key,
            per_user,
            per_session,
            per_recipe,
            prices,
            auto_downgrade_enabled,
            downgrade_at_percent,
            downgrade_model,
            alert_at_percent,
            breaker,
            modes,
            care,
            why_url,
            monitor_guards,
            retention_days
        );
        // Whoever must be asked, and where words may go, can only become more.
        join(&mut self.require_consent_for_agents, &defaults.require_consent_for_agents);
        join(&mut self.regions, &defaults.regions);
        self.scrutiny_min = self.scrutiny_min.max(defaults.scrutiny_min);
        self.audit_failure = self.audit_failure.max(defaults.audit_failure);
        self.harm_threshold = match (self.harm_threshold, defaults.harm_threshold) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        self.bars_min = match (self.bars_min, defaults.bars_min) {
            (Some(one), Some(other)) => Some(one.raised_to(other)),
            (one, other) => one.or(other),
        };
        self.block_injection |= defaults.block_injection;
        self.on_doubt = self.on_doubt.max(defaults.on_doubt);
        self.unjudged = self.unjudged.max(defaults.unjudged);
        self.personal_data = self.personal_data.strictest(defaults.personal_data);
        self.rates = self.rates.strictest(defaults.rates);
        self
    }
}

/// Adds the names that are not there yet.
fn join(names: &mut Vec<String>, others: &[String]) {
    for other in others {
        if !names.contains(other) {
            names.push(other.clone());
        }
    }
}

fn check_name(field: &str, name: &str) -> Result<(), PolicyError> {
    let fits = !name.is_empty() && name.len() <= NAME_BYTES_MAX;
    if fits && !name.chars().any(char::is_control) {
        return Ok(());
    }
    let message = format!("a name has 1 to {NAME_BYTES_MAX} bytes and no control characters");
    Err(PolicyError::new(field, message))
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
