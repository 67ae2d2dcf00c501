//! What types alone cannot say about providers, models and verifiers.

use super::check::Findings;
use super::{Config, ModelConfig, OnFailure, Provider, ProviderKind, SeatChange, VerifierKind};
use conclave_models::BaseUrl;
use std::collections::{BTreeMap, BTreeSet};

/// The verifiers that are compiled in.
const BUILT_IN: [&str; 7] =
    ["crisis", "higher_self", "wisdom", "shadow", "attachment", "counterfactual", "classifier"];
/// What they weigh together, as they come.
const BUILT_IN_WEIGHT: u64 = 14;
/// The seat of the directives' floor, which is nobody's to fill.
const FLOOR: &str = "floor";
/// How many verifiers of one's own there may be.
const OUTSIDE_MAX: usize = 16;
/// The most one of them may weigh: nobody from outside should decide alone.
const OUTSIDE_WEIGHT_MAX: u64 = 10;
/// How many keys a provider, and how many stand-ins a model, may have.
const KEYS_MAX: usize = 64;
const FALLBACK_MAX: usize = 8;
/// How long a verifier may take unless it is said otherwise.
pub const OUTSIDE_TIMEOUT_MS: u64 = 5_000;

pub fn check(config: &Config, found: &mut Findings) {
    for (at, provider) in config.providers.iter().enumerate() {
        check_provider(&format!("providers[{at}]"), provider, found);
    }
    check_fallbacks(config, found);
    for (name, seat) in &config.verifiers {
        let path = format!("verifiers.{name}");
        if name == FLOOR {
            found.error(&path, "is the seat of the directives' floor, which nobody else takes");
        }
        if seat.kind == VerifierKind::Builtin {
            check_built_in(&path, name, seat, found);
        } else {
            check_outside(&path, name, seat, config, found);
        }
    }
    check_panel(config, found);
}

fn check_provider(path: &str, provider: &Provider, found: &mut Findings) {
    if provider.name.is_empty() || provider.name.len() > 128 {
        found.error(format!("{path}.name"), "must be 1 to 128 bytes");
    }
    if let Err(error) = BaseUrl::parse(&provider.base_url, provider.allow_private) {
        found.error(format!("{path}.base_url"), error.to_string());
    }
    if provider.api_key.is_some() && !provider.keys.is_empty() {
        found.error(format!("{path}.keys"), "give either `api_key` or `keys`, not both");
    }
    if provider.keys.len() > KEYS_MAX {
        found.error(format!("{path}.keys"), format!("there may be at most {KEYS_MAX}"));
    }
    for (at, key) in provider.keys.iter().enumerate() {
        found.range(&format!("{path}.keys[{at}].weight"), key.weight.into(), 1, 1_000);
    }
    let version = provider.api_version.as_deref();
    match (provider.kind, version) {
        (ProviderKind::Azure, None) => {
            found.error(format!("{path}.api_version"), "is needed, such as \"2024-10-21\"");
        }
        (ProviderKind::Openai | ProviderKind::Anthropic, Some(_)) => {
            found.error(format!("{path}.api_version"), "is for Azure only");
        }
        _ => {}
    }
    found.range(&format!("{path}.timeout_ms"), provider.timeout_ms, 100, 600_000);
    let tokens = provider.reply_tokens_max.into();
    found.range(&format!("{path}.reply_tokens_max"), tokens, 1, 1_000_000);
    found.range(&format!("{path}.breaker_failures"), provider.breaker_failures.into(), 0, 1_000);
    let pause = provider.breaker_pause_ms;
    found.range(&format!("{path}.breaker_pause_ms"), pause, 100, 3_600_000);
}

fn check_fallbacks(config: &Config, found: &mut Findings) {
    let models: BTreeMap<_, _> =
        config.models.iter().map(|model| (model.name.as_str(), model)).collect();
    for (at, model) in config.models.iter().enumerate() {
        let path = format!("models[{at}].fallback");
        let mut seen = BTreeSet::new();
        for name in &model.fallback {
            if name == "builtin" {
                found.error(&path, "`builtin` cannot stand in for another model");
            } else if !models.contains_key(name.as_str()) {
                found.error(&path, format!("there is no model `{name}`"));
            } else if !seen.insert(name) {
                found.error(&path, format!("`{name}` stands twice"));
            }
        }
        match stand_ins(model, &models) {
            None => found.error(&path, format!("`{}` would stand in for itself", model.name)),
            Some(all) if all.len() > FALLBACK_MAX => {
                found.error(&path, format!("at most {FALLBACK_MAX} models may stand in"));
            }
            Some(_) => {}
        }
    }
}

/// Everybody who stands in for a model, in the order they are asked: each one's own stand-ins come
/// right after it. `None` when the model itself is among them.
pub fn stand_ins<'a>(
    model: &'a ModelConfig,
    models: &BTreeMap<&'a str, &'a ModelConfig>,
) -> Option<Vec<&'a str>> {
    let mut order = Vec::new();
    let mut open: Vec<&str> = model.fallback.iter().rev().map(String::as_str).collect();
    while let Some(name) = open.pop() {
        if name == model.name {
            return None;
        }
        if order.contains(&name) {
            continue;
        }
        order.push(name);
        let next = models.get(name).map(|model| model.fallback.as_slice()).unwrap_or_default();
        open.extend(next.iter().rev().map(String::as_str));
    }
    Some(order)
}

fn check_built_in(path: &str, name: &str, seat: &SeatChange, found: &mut Findings) {
    if !BUILT_IN.contains(&name) {
        let message = format!(
            "there is no such verifier; there are {BUILT_IN:?}, and those whose `kind` is judge, \
             guard, moderation or http"
        );
        found.error(path, message);
    }
    if let Some(weight) = seat.weight {
        found.range(&format!("{path}.weight"), weight.into(), 1, 100);
    }
    let loosened = seat.monitor == Some(true) || seat.required == Some(false);
    if name == "crisis" && loosened {
        found.error(path, "Crisis always votes and is always required");
    }
    for (field, is_set) in given(seat) {
        if is_set {
            found.error(format!("{path}.{field}"), "is not for a built-in verifier");
        }
    }
}

/// The settings that only some kinds have, and whether they are given.
fn given(seat: &SeatChange) -> [(&'static str, bool); 12] {
    [
        ("priority", seat.priority.is_some()),
        ("timeout_ms", seat.timeout_ms.is_some()),
        ("on_failure", seat.on_failure.is_some()),
        ("always", seat.always.is_some()),
        ("model", seat.model.is_some()),
        ("template", seat.template.is_some()),
        ("provider", seat.provider.is_some()),
        ("upstream_model", seat.upstream_model.is_some()),
        ("url", seat.url.is_some()),
        ("api_key", seat.api_key.is_some()),
        ("allow_private", seat.allow_private),
        ("usd_per_call", seat.usd_per_call.is_some()),
    ]
}

fn check_outside(path: &str, name: &str, seat: &SeatChange, config: &Config, found: &mut Findings) {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if BUILT_IN.contains(&name) {
        found.error(path, "is the name of a built-in verifier");
    } else if name.is_empty() || name.len() > 64 || !name.bytes().all(plain) {
        found.error(path, "must be named with 1 to 64 of a-z, 0-9 and _");
    }
    found.range(&format!("{path}.priority"), seat.priority.unwrap_or(2).into(), 1, 3);
    let weight = seat.weight.map_or(1, u64::from);
    found.range(&format!("{path}.weight"), weight, 1, OUTSIDE_WEIGHT_MAX);
    let timeout = seat.timeout_ms.unwrap_or(OUTSIDE_TIMEOUT_MS);
    found.range(&format!("{path}.timeout_ms"), timeout, 10, 10_000);
    let panel = config.deliberation.panel_deadline_ms;
    if timeout > panel {
        let message = format!(
            "{timeout} ms is more than the panel has; set deliberation.panel_deadline_ms to at \
             least as much (it is {panel})"
        );
        found.error(format!("{path}.timeout_ms"), message);
    }
    if seat.required == Some(true) {
        if seat.on_failure == Some(OnFailure::LeaveOut) {
            let message = "a required verifier cannot be left out";
            found.error(format!("{path}.on_failure"), message);
        }
        if seat.monitor == Some(true) {
            found.error(format!("{path}.monitor"), "a required verifier must be counted");
        }
    }
    check_kind(path, seat, config, found);
}

/// That everything its kind needs is there, and nothing else.
fn check_kind(path: &str, seat: &SeatChange, config: &Config, found: &mut Findings) {
    let (needed, permitted): (&[&str], &[&str]) = match seat.kind {
        VerifierKind::Builtin => return,
        VerifierKind::Judge => (&["model"], &[]),
        VerifierKind::Guard => (&["model"], &["template"]),
        VerifierKind::Moderation => (&["provider"], &["upstream_model", "usd_per_call"]),
        VerifierKind::Http => (&["url"], &["api_key", "allow_private", "usd_per_call"]),
    };
    let of_all = ["priority", "timeout_ms", "on_failure", "always"];
    for (field, is_set) in given(seat) {
        if needed.contains(&field) && !is_set {
            found.error(format!("{path}.{field}"), "is needed for a verifier of this kind");
        } else if is_set && ![needed, permitted, &of_all].concat().contains(&field) {
            found.error(format!("{path}.{field}"), "is not for a verifier of this kind");
        }
    }
    let unknown_model =
        seat.model.as_ref().filter(|name| !config.models.iter().any(|m| m.name == **name));
    if let Some(name) = unknown_model {
        found.error(format!("{path}.model"), format!("there is no model `{name}` of a provider"));
    }
    if let Some(name) = &seat.provider {
        match config.providers.iter().find(|provider| provider.name == *name) {
            None => {
                found.error(format!("{path}.provider"), format!("there is no provider `{name}`"));
            }
            Some(provider) if provider.kind != ProviderKind::Openai => {
                found.error(format!("{path}.provider"), "must be of the kind `openai`");
            }
            Some(_) => {}
        }
    }
    if let Some(Err(error)) = seat.url.as_ref().map(|url| BaseUrl::parse(url, seat.allow_private)) {
        found.error(format!("{path}.url"), error.to_string());
    }
    if seat.usd_per_call.is_some_and(|price| !(0.0..=1_000.0).contains(&price)) {
        found.error(format!("{path}.usd_per_call"), "must be 0 to 1,000 dollars");
    }
}

fn check_panel(config: &Config, found: &mut Findings) {
    let outside = || config.verifiers.values().filter(|seat| seat.kind != VerifierKind::Builtin);
    let built_in = config.verifiers.values().filter(|seat| seat.kind == VerifierKind::Builtin);
    let watching = built_in.filter(|seat| seat.monitor == Some(true)).count();
    if BUILT_IN.len() - 1 < watching + 3 {
        found.error("verifiers", "at least three built-in verifiers must vote on every reply");
    }
    if outside().count() > OUTSIDE_MAX {
        found.error("verifiers", format!("there may be at most {OUTSIDE_MAX} of your own"));
    }
    let counted = outside().filter(|seat| seat.monitor != Some(true));
    let weight: u64 =
        counted.map(|seat| seat.weight.map_or(seat.priority.unwrap_or(2).into(), u64::from)).sum();
    if weight > BUILT_IN_WEIGHT {
        let message = format!(
            "those of your own weigh {weight} together, more than the built-in ones: if they are \
             talked round, concerns of the others may not be enough"
        );
        found.warn("verifiers", message);
    }
}

#[cfg(test)]
#[path = "check_upstream_tests.rs"]
mod tests;
