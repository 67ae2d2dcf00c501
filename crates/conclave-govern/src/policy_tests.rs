//! Which policies there can be, and what follows from them.

use super::*;
use conclave_core::TenantId;
use serde_json::json;

fn scopes() -> Scopes {
    Scopes {
        tenant: TenantId::new("acme").unwrap(),
        key: Some("k1".into()),
        user: None,
        session: Some("s".into()),
        recipe: None,
    }
}

#[test]
fn what_crosses_the_floor_or_makes_no_sense_is_refused_with_its_place() {
    for (bad, place) in [
        (json!({"harm_threshold": 71}), "harm_threshold: a threshold of 71"),
        (json!({"harm_threshold": 0}), "harm_threshold"),
        (json!({"harm_treshold": 20}), "unknown field `harm_treshold`"),
        (json!({"daily_budget_usd": -1}), "dollars from 0"),
        (json!({"daily_budget_usd": 0.000_000_1}), "dollars from 0"),
        (json!({"per_key": {"weekly_usd": 1}}), "unknown field `weekly_usd`"),
        (json!({"alert_at_percent": [101]}), "alert_at_percent"),
        (json!({"downgrade_at_percent": 0}), "downgrade_at_percent"),
        (json!({"auto_downgrade_enabled": true}), "downgrade_model: must be named"),
        (json!({"blocked_models": ["m"], "downgrade_model": "m"}), "is not among the models"),
        (json!({"allowed_models": [""]}), "allowed_models"),
        (json!({"modes": []}), "modes"),
        (json!({"modes": ["lenient"]}), "unknown variant"),
        (json!({"scrutiny_min": "none"}), "unknown variant"),
        (json!({"regions": ["Japan"]}), "regions"),
        (json!({"retention_days": 40_000}), "retention_days"),
        (json!({"breaker": {"refusals_per_minute": 0}}), "breaker"),
        (json!({"allowed_models": vec!["m"; 201]}), "at most 200"),
        (json!([]), "policy"),
    ] {
        let sentence = TenantPolicy::parse(bad.clone()).unwrap_err().to_string();
        assert!(sentence.contains(place), "{bad}: {sentence}");
    }
    assert_eq!(TenantPolicy::parse(json!({})).unwrap(), TenantPolicy::default());
}

#[test]
fn a_policy_comes_back_as_it_was_written() {
    let policy = TenantPolicy::parse(json!({
        "allowed_models": ["a", "b"], "daily_budget_usd": 12.34, "per_user": {"monthly_usd": 0.5},
        "prices": {"a": {"input_usd_per_million": 0.1, "output_usd_per_million": 2}},
        "modes": ["child-safe"], "scrutiny_min": "strict", "harm_threshold": 20,
    }))
    .unwrap();
    let again = TenantPolicy::parse(serde_json::to_value(&policy).unwrap()).unwrap();
    assert_eq!(again, policy);
    assert_eq!(policy.daily_budget_usd, Some(Usd(MicroUsd(12_340_000))));
}

#[test]
fn blocked_wins_over_allowed() {
    let policy =
        TenantPolicy::parse(json!({"allowed_models": ["a", "b"], "blocked_models": ["b"]}));
    let policy = policy.unwrap();
    assert_eq!(["a", "b", "c"].map(|model| policy.permits(model)), [true, false, false]);
    assert!(TenantPolicy::default().permits("anything"));
}

#[test]
fn a_request_counts_towards_every_limit_that_concerns_it() {
    let policy = TenantPolicy::parse(json!({
        "daily_budget_usd": 5, "monthly_budget_usd": 50, "per_key": {"daily_usd": 4},
        "per_user": {"daily_usd": 3}, "per_recipe": {"daily_usd": 2},
    }))
    .unwrap();
    let lines = policy.lines(7, &scopes(), 86_400_000);
    let told: Vec<_> = lines
        .iter()
        .map(|line| {
            let key = &line.key;
            (key.scope.as_str(), key.period.as_str(), key.name.as_str(), key.number, line.limit.0)
        })
        .collect();
    assert_eq!(
        told,
        [
            ("tenant", "day", "", 1, 5_000_000),
            ("tenant", "month", "", 0, 50_000_000),
            ("key", "day", "k1", 1, 4_000_000),
            ("user", "day", "", 1, 3_000_000),
        ]
    );
    let keyless = Scopes { key: None, ..scopes() };
    assert_eq!(policy.lines(7, &keyless, 0)[2].key.name, "", "all without a key share one");
    assert!(policy.limits_money());
    assert!(!TenantPolicy::default().limits_money());
}

#[test]
fn what_tightens_is_never_loosened_by_the_other() {
    let operator = TenantPolicy::parse(json!({
        "daily_budget_usd": 5, "harm_threshold": 20, "scrutiny_min": "raised",
        "block_injection": true, "audit_failure": "hold", "require_consent_for_agents": ["chat"], "regions": ["DE"],
    }))
    .unwrap();
    let tenant = TenantPolicy::parse(json!({
        "harm_threshold": 30, "daily_budget_usd": 7, "require_consent_for_agents": ["de-escalator"],
        "audit_failure": "deliver_and_alert",
    }))
    .unwrap();
    let both = tenant.over(&operator);
    assert_eq!(both.harm_threshold, Some(20));
    assert_eq!(both.scrutiny_min, Some(Scrutiny::Raised));
    assert!(both.block_injection);
    assert_eq!(both.audit_failure, Some(AuditFailure::Hold));
    assert!(both.requires_consent("chat") && both.requires_consent("de-escalator"));
    assert!(!both.requires_consent("embeddings"));
    assert_eq!(both.regions, ["DE"]);
    assert_eq!(both.daily_budget_usd, Some(Usd(MicroUsd(7_000_000))));
}

#[test]
fn only_what_the_operator_states_about_replies_binds_a_tenant() {
    let policy = |personal_data: serde_json::Value| {
        TenantPolicy::parse(json!({"personal_data": personal_data})).unwrap()
    };
    let passing = policy(json!({"replies": "pass"}));
    for (operator, tenant, expected) in [
        (TenantPolicy::default(), passing.clone(), ReplyData::Pass),
        (policy(json!({"messages": "redact"})), passing.clone(), ReplyData::Pass),
        (policy(json!({"replies": "account_numbers"})), passing.clone(), ReplyData::AccountNumbers),
        (passing.clone(), TenantPolicy::default(), ReplyData::Pass),
        (passing, policy(json!({"replies": "redact"})), ReplyData::Redact),
        (TenantPolicy::default(), TenantPolicy::default(), ReplyData::AccountNumbers),
    ] {
        assert_eq!(tenant.over(&operator).personal_data.reply_data(), expected);
    }
}

#[test]
fn a_doubt_is_refused_where_either_says_so_and_care_is_the_tenants_to_switch() {
    let policy = |value: serde_json::Value| TenantPolicy::parse(value).unwrap();
    let refuse = policy(json!({"unjudged": "refuse"}));
    let pass = policy(json!({"unjudged": "pass"}));
    assert_eq!(pass.clone().over(&refuse).unjudged, Some(UnjudgedParts::Refuse));
    assert_eq!(refuse.over(&pass).unjudged, Some(UnjudgedParts::Refuse));
    let block = policy(json!({"on_doubt": "block", "care": "off"}));
    let flag = policy(json!({"on_doubt": "flag", "care": "on"}));
    let none = TenantPolicy::default();
    assert_eq!(flag.clone().over(&block).on_doubt, Some(OnDoubt::Block));
    assert_eq!(block.clone().over(&flag).on_doubt, Some(OnDoubt::Block));
    assert_eq!(none.clone().over(&flag).on_doubt, Some(OnDoubt::Flag));
    assert_eq!(none.over(&block).care, Some(CareOffer::Off));
    assert_eq!(block.over(&flag).care, Some(CareOffer::Off));
}

#[test]
fn a_wrong_word_about_doubt_or_care_is_refused_with_what_may_stand_there() {
    for (policy, wanted) in [
        (json!({"on_doubt": "ignore"}), ["flag", "block"]),
        (json!({"care": "never"}), ["on", "off"]),
        (json!({"unjudged": "ignore"}), ["pass", "refuse"]),
    ] {
        let error = TenantPolicy::parse(policy).unwrap_err().to_string();
        assert!(wanted.iter().all(|word| error.contains(word)), "{error}");
    }
}
