//! What types alone cannot say about a configuration.

use super::own_files::PATTERN_FILES_MAX;
use super::{AuditFailureName, Config, ModeName, WitnessPlace, check_upstream};
use conclave_core::{TenantId, UserId};
use conclave_govern::{TenantPolicy, tenant_name_fault};
use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;

/// One thing found in a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether it stops the start; otherwise it is a warning.
    pub is_error: bool,
    /// Where.
    pub path: String,
    /// What.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// Everything wrong or doubtful, errors first.
#[must_use]
pub fn findings(config: &Config) -> Vec<Finding> {
    let mut found = Findings(Vec::new());
    ranges(config, &mut found);
    references(config, &mut found);
    tls(config, &mut found);
    check_upstream::check(config, &mut found);
    anchors(config, &mut found);
    tenants(config, &mut found);
    pattern_files("detection", &config.detection.pattern_files, &mut found);
    recipes(config, &mut found);
    warnings(config, &mut found);
    public_url(config, &mut found);
    found.0.sort_by_key(|finding| !finding.is_error);
    found.0
}

/// What was found so far.
pub(super) struct Findings(Vec<Finding>);

impl Findings {
    pub(super) fn error(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.0.push(Finding { is_error: true, path: path.into(), message: message.into() });
    }

    pub(super) fn warn(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.0.push(Finding { is_error: false, path: path.into(), message: message.into() });
    }

    pub(super) fn range(&mut self, path: &str, value: u64, least: u64, most: u64) {
        if !(least..=most).contains(&value) {
            self.error(path, format!("must be {least} to {most}, not {value}"));
        }
    }
}

fn ranges(config: &Config, found: &mut Findings) {
    let wide = |value: usize| u64::try_from(value).unwrap_or(u64::MAX);
    let (limits, rules) = (&config.limits, &config.deliberation);
    found.range("limits.body_bytes_max", wide(limits.body_bytes_max), 1024, 64 << 20);
    found.range("limits.turns_max", wide(limits.turns_max), 1, 100_000);
    found.range("limits.connections_max", wide(limits.connections_max), 1, 1_000_000);
    let each = wide(limits.connections_per_address_max);
    found.range("limits.connections_per_address_max", each, 0, 1_000_000);
    found.range("limits.share_wait_ms", limits.share_wait_ms, 100, 300_000);
    found.range("limits.drain_timeout_ms", limits.drain_timeout_ms, 0, 600_000);
    found.range("limits.drain_grace_ms", limits.drain_grace_ms, 0, 60_000);
    found.range("deliberation.attempts_max", rules.attempts_max.into(), 1, 5);
    found.range("deliberation.turn_deadline_ms", rules.turn_deadline_ms, 1_000, 600_000);
    found.range("deliberation.reply_timeout_ms", rules.reply_timeout_ms, 1_000, 600_000);
    if rules.reply_timeout_ms < rules.turn_deadline_ms {
        let message = "is less than turn_deadline_ms: a reply could not even begin in that time";
        found.error("deliberation.reply_timeout_ms", message);
    }
    found.range("deliberation.crisis_deadline_ms", rules.crisis_deadline_ms, 1_000, 8_000);
    found.range("deliberation.panel_deadline_ms", rules.panel_deadline_ms, 10, 10_000);
    if let Some((path, message)) = config.rate_limits.fault() {
        found.error(path, message);
    }
    let spool = config.storage.spool_bytes_max;
    found.range("storage.spool_bytes_max", spool, 3 * (64 << 20), 1 << 40);
    found.range("storage.kept_bytes_max", config.storage.kept_bytes_max, 0, 1 << 40);
    found.range("storage.kept_hours", config.storage.kept_hours, 1, 720);
    for (at, provider) in config.providers.iter().enumerate() {
        let path = format!("providers[{at}].reply_bytes_max");
        found.range(&path, wide(provider.reply_bytes_max), 1024, 16 << 20);
    }
    for (at, model) in config.models.iter().enumerate() {
        for (field, price) in [
            ("input_usd_per_million", model.input_usd_per_million),
            ("output_usd_per_million", model.output_usd_per_million),
        ] {
            if price.is_some_and(|price| !(0.0..=1e6).contains(&price)) {
                found.error(format!("models[{at}].{field}"), "must be 0 to 1,000,000 dollars");
            }
        }
        if model.input_usd_per_million.is_some() != model.output_usd_per_million.is_some() {
            found.error(format!("models[{at}]"), "has one price without the other");
        }
        if let Some(tokens) = model.output_tokens_max {
            found.range(&format!("models[{at}].output_tokens_max"), tokens, 1, 1_000_000);
        }
    }
}

/// What people are given as a link must be one, and must not lose its token on the way.
fn public_url(config: &Config, found: &mut Findings) {
    let Some(url) = &config.server.public_url else { return };
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let host = rest.and_then(|rest| rest.split('/').next()).unwrap_or_default();
    let is_plain = url.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#\"<>\\".contains(&byte));
    if host.is_empty() || host.contains('@') || url.len() > 1_000 || !is_plain {
        let message = "must be an address such as https://conclave.example.org, without ? and #";
        found.error("server.public_url", message);
    }
}

fn references(config: &Config, found: &mut Findings) {
    let mut providers = BTreeSet::new();
    for (at, provider) in config.providers.iter().enumerate() {
        if !providers.insert(provider.name.as_str()) {
            found.error(format!("providers[{at}].name"), "stands twice");
        }
    }
    let mut models = BTreeSet::from(["builtin"]);
    for (at, model) in config.models.iter().enumerate() {
        if model.name.is_empty() || model.name.len() > 128 {
            found.error(format!("models[{at}].name"), "must be 1 to 128 bytes");
        }
        if !models.insert(model.name.as_str()) {
            found.error(format!("models[{at}].name"), "is taken");
        }
        if !providers.contains(model.provider.as_str()) {
            let message = format!("there is no provider `{}`", model.provider);
            found.error(format!("models[{at}].provider"), message);
        }
    }
}

fn anchors(config: &Config, found: &mut Findings) {
    let ledger = &config.ledger;
    let odd = |name: &String| conclave_ledger::NoteSigner::new(name, &[0; 32]).is_err();
    if ledger.origin.as_ref().is_some_and(odd) {
        let message = "must be 1 to 256 bytes without spaces and `+`, such as example.com/log";
        found.error("ledger.origin", message);
    }
    let anchor = &ledger.anchor;
    if anchor.webhook.is_some() && anchor.webhook_secret.is_none() {
        found.error("ledger.anchor.webhook_secret", "is needed to sign the webhook");
    }
    if let Some(Err(error)) = anchor
        .webhook
        .as_ref()
        .map(|url| conclave_models::BaseUrl::parse(url, anchor.allow_private))
    {
        found.error("ledger.anchor.webhook", error.to_string());
    }
    witnesses(&ledger.witnesses, found);
    if anchor.file.is_none() && anchor.webhook.is_none() && ledger.witnesses.is_empty() {
        let message = "checkpoints are kept in the data directory only: whoever can rewrite it can \
                       rewrite the log";
        found.warn("ledger.anchor", message);
    }
}

/// More witnesses than this are not asked.
const WITNESSES_MAX: usize = 16;

fn witnesses(witnesses: &[WitnessPlace], found: &mut Findings) {
    if witnesses.len() > WITNESSES_MAX {
        found.error("ledger.witnesses", format!("there may be {WITNESSES_MAX} at most"));
    }
    for (at, witness) in witnesses.iter().enumerate() {
        if let Err(error) = conclave_ledger::WitnessKey::parse(&witness.vkey) {
            found.error(format!("ledger.witnesses[{at}].vkey"), error.to_string());
        }
        let url = conclave_models::BaseUrl::parse(&witness.url, witness.allow_private);
        if let Err(error) = url {
            found.error(format!("ledger.witnesses[{at}].url"), error.to_string());
        }
    }
}

/// The longest list of people on hold, because each purge names them.
const HELD_MAX: usize = 1_000;
const RETENTION_DAYS_MAX: u64 = 36_500;

fn tenants(config: &Config, found: &mut Findings) {
    let days = config.storage.retention_days.into();
    found.range("storage.retention_days", days, 0, RETENTION_DAYS_MAX);
    for (name, tenant) in &config.tenants {
        let path = format!("tenants.{name}");
        if let Err(error) = TenantId::new(name.as_str()) {
            found.error(&path, error.to_string());
        }
        if let Some(fault) = tenant_name_fault(name) {
            found.error(&path, fault);
        }
        if let Some(days) = tenant.retention_days {
            found.range(&format!("{path}.retention_days"), days.into(), 0, RETENTION_DAYS_MAX);
        }
        if let Some(Err(error)) = tenant.policy.clone().map(TenantPolicy::parse) {
            found.error(format!("{path}.policy.{}", error.field), error.message);
        }
        pattern_files(&path, &tenant.pattern_files, found);
        let held = &tenant.legal_hold_users;
        if held.len() > HELD_MAX {
            let message = format!("names more than {HELD_MAX} people; use legal_hold for all");
            found.error(format!("{path}.legal_hold_users"), message);
        }
        for (at, user) in held.iter().enumerate() {
            if let Err(error) = UserId::new(user.as_str()) {
                found.error(format!("{path}.legal_hold_users[{at}]"), error.to_string());
            }
        }
    }
}

fn pattern_files(path: &str, files: &[PathBuf], found: &mut Findings) {
    if files.len() > PATTERN_FILES_MAX {
        let message = format!("names more than {PATTERN_FILES_MAX} files");
        found.error(format!("{path}.pattern_files"), message);
    }
}

fn recipes(config: &Config, found: &mut Findings) {
    let models: Vec<_> = config.models.iter().map(|model| model.name.as_str()).collect();
    let providers: Vec<_> = config.providers.iter().map(|one| one.name.as_str()).collect();
    for (path, message) in config.recipes.faults(&models, &providers) {
        found.error(path, message);
    }
}

/// Why whoever is between a client and this gateway can read keys and words, if they can.
#[must_use]
pub fn exposure(config: &Config) -> Option<String> {
    let server = &config.server;
    let is_safe = server.listen.ip().is_loopback() || server.behind_proxy;
    (!is_safe && config.tls.files().is_none()).then(|| {
        format!(
            "{} is reached from other machines and nothing encrypts it: keys and words can be read on the way. Set \
             tls.certificate and tls.key, or put a proxy with TLS before it and set server.behind_proxy = true",
            server.listen
        )
    })
}

fn tls(config: &Config, found: &mut Findings) {
    match (&config.tls.certificate, &config.tls.key) {
        (Some(_), None) => found.error("tls.key", "is needed beside tls.certificate"),
        (None, Some(_)) => found.error("tls.certificate", "is needed beside tls.key"),
        (None, None) | (Some(_), Some(_)) => {}
    }
}

fn warnings(config: &Config, found: &mut Findings) {
    if let Some(message) = exposure(config) {
        found.warn("server.listen", message);
    }
    if config.policy.modes_allowed.contains(&ModeName::Debug) {
        found.warn("policy.modes_allowed", "`debug` is for operators, not for people");
    }
    if config.policy.audit_failure == AuditFailureName::DeliverAndAlert {
        let message = "replies leave unrecorded while no disk takes entries";
        found.warn("policy.audit_failure", message);
    }
    if !config.reviews.staffed {
        found.warn(
            "reviews.staffed",
            "no reviewers are configured: nobody looks at escalated replies, and no message says that \
             a person will look",
        );
    }
    for (at, model) in config.models.iter().enumerate() {
        if model.input_usd_per_million.is_none() {
            let message = "states no price: the table compiled in is asked, and what is not in it \
                           is counted as nothing and refused under a budget";
            found.warn(format!("models[{at}]"), message);
        }
    }
}
