//! `GET /v1/usage`: what the key's tenant used and spent, and what is left.

use super::decisions::unavailable;
use super::tenants::steward;
use crate::admission::auth::{Need, admit};
use crate::error::ApiError;
use crate::routes::people::desk::{number, query};
use crate::routes::respond;
use crate::state::Gateway;
use axum::Json;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use conclave_core::{MicroUsd, TenantId, UserId};
use conclave_engine::{Engine, UsageAsk, UsageBy, UsagePage, UsageRow, UsageSums};
use conclave_govern::{date_of, day_of, parse_date};
use conclave_ledger::tenant_number;
use conclave_money::AccountBalance;
use http::HeaderMap;
use serde_json::{Map, Value, json};

const DAY_MS: u64 = 86_400_000;
/// The longest stretch that is added up at once.
const DAYS_MAX: u32 = 366;
/// The most accounts that are shown.
const ACCOUNTS_MAX: u32 = 200;
/// Rows of one page, where nothing is said and at most.
const ROWS: u32 = 100;
const ROWS_MAX: u32 = 1_000;
/// The furthest a page can begin.
const OFFSET_MAX: u32 = 1_000_000;
/// The most things that rows are parted by at once.
const BY_MAX: usize = 4;
const FILTERS: [&str; 6] = ["from", "to", "by", "user", "limit", "offset"];

/// What is asked for.
struct Asked {
    from: u32,
    to: u32,
    by: Vec<UsageBy>,
    user: Option<String>,
    limit: u32,
    offset: u32,
}

/// What was used, parted as the caller asks, and how the accounts stand.
pub(crate) async fn usage(
    State(gateway): State<Gateway>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let found = async {
        let key = admit(&gateway, &headers, Need::Usage)?;
        let (steward, engine) = (steward(&gateway)?, gateway.engine());
        let now_ms = engine.clock.now_ms();
        let asked = asked(query.as_deref().unwrap_or(""), now_ms)?;
        let tenant = tenant_number(key.tenant.as_str());
        let ask = UsageAsk {
            tenant,
            from_ms: u64::from(asked.from) * DAY_MS,
            to_ms: (u64::from(asked.to) + 1) * DAY_MS,
            by: asked.by.clone(),
            subject: subject(&engine, &key.tenant, asked.user.as_deref()).await?,
            offset: asked.offset,
            // One more than is shown says whether there is another page.
            limit: asked.limit + 1,
        };
        let page = steward.state.usage().sums(ask).await.map_err(unavailable)?;
        let accounts = steward.state.accounts().balances(tenant, now_ms, ACCOUNTS_MAX).await;
        let accounts = accounts.map_err(|error| {
            tracing::error!(%error, "the accounts cannot be shown");
            ApiError::budget_unavailable()
        })?;
        let accounts: Vec<_> = accounts.iter().map(account).collect();
        Ok(Json(shown(&asked, &page, &accounts)).into_response())
    };
    respond(found.await)
}

/// The person's pseudonym; whoever is not known here has used nothing.
async fn subject(
    engine: &Engine,
    tenant: &TenantId,
    user: Option<&str>,
) -> Result<Option<[u8; 16]>, ApiError> {
    let Some(user) = user else { return Ok(None) };
    let user = UserId::new(user).map_err(|error| ApiError::invalid("user", error.to_string()))?;
    let found = engine.subjects.find(tenant, &user).await.map_err(|error| {
        tracing::error!(%error, "a person could not be looked up");
        ApiError::archive_unavailable()
    })?;
    found.map(Some).ok_or_else(|| ApiError::not_found("Nobody is known by this id."))
}

fn asked(text: &str, now_ms: u64) -> Result<Asked, ApiError> {
    let (mut from, mut to) = (None, None);
    let mut asked = Asked {
        from: 0,
        to: 0,
        by: vec![UsageBy::Day, UsageBy::Model],
        user: None,
        limit: ROWS,
        offset: 0,
    };
    for (name, value) in query(text, &FILTERS)? {
        match name {
            "from" => from = Some(day(name, &value)?),
            "to" => to = Some(day(name, &value)?),
            "by" => asked.by = by(&value)?,
            "user" => asked.user = Some(value),
            "limit" => asked.limit = number(name, &value, ROWS_MAX)?.max(1),
            _ => asked.offset = number(name, &value, OFFSET_MAX)?,
        }
    }
    asked.to = to.unwrap_or_else(|| day_of(now_ms));
    asked.from = from.unwrap_or_else(|| asked.to.saturating_sub(29));
    if asked.from > asked.to || asked.to - asked.from >= DAYS_MAX {
        let message = format!("`from` must not be after `to`, and at most {DAYS_MAX} days before");
        return Err(ApiError::invalid("from", message));
    }
    Ok(asked)
}

fn day(name: &str, value: &str) -> Result<u32, ApiError> {
    let day = parse_date(value);
    day.ok_or_else(|| ApiError::invalid(name, "must be a date such as 2026-01-31"))
}

fn by(value: &str) -> Result<Vec<UsageBy>, ApiError> {
    let names = value.split(',').filter(|name| !name.is_empty());
    let parsed: Option<Vec<_>> = names.map(UsageBy::parse).collect();
    let unique = |by: &Vec<UsageBy>| {
        by.iter().enumerate().all(|(at, one)| !by.iter().skip(at + 1).any(|other| other == one))
    };
    parsed.filter(|by| by.len() <= BY_MAX && unique(by)).ok_or_else(|| {
        let names = UsageBy::ALL.map(UsageBy::as_str).join(", ");
        let message =
            format!("must be up to {BY_MAX} of {names}, each once and with commas between");
        ApiError::invalid("by", message)
    })
}

fn shown(asked: &Asked, page: &UsagePage, accounts: &[Value]) -> Value {
    let rows = page.rows.iter().take(asked.limit as usize);
    let more = page.rows.len() > asked.limit as usize;
    let mut shown = json!({
        "object": "usage",
        "from": date_of(asked.from),
        "to": date_of(asked.to),
        "by": asked.by.iter().map(|by| by.as_str()).collect::<Vec<_>>(),
        "data": rows.map(|one| row(&asked.by, one)).collect::<Vec<_>>(),
        "has_more": more,
        "next_offset": more.then(|| asked.offset + asked.limit),
        "accounts": accounts,
    });
    if let Value::Object(shown) = &mut shown {
        shown.extend(sums(&page.total));
    }
    shown
}

fn row(by: &[UsageBy], row: &UsageRow) -> Value {
    let of = by.iter().zip(&row.of).map(|(by, name)| {
        let value = match by {
            _ if name.is_empty() => Value::Null,
            UsageBy::Day => name.parse().map_or(Value::Null, |day| date_of(day).into()),
            _ => name.as_str().into(),
        };
        (by.as_str().to_owned(), value)
    });
    Value::Object(of.chain(sums(&row.sums)).collect())
}

fn sums(sums: &UsageSums) -> Map<String, Value> {
    let cost = sums.cost_microusd;
    let all = json!({
        "requests": sums.requests,
        "delivered": sums.delivered,
        "blocked": sums.blocked,
        "failed": sums.failed,
        "flagged": sums.flagged,
        "attempts": sums.attempts,
        "input_tokens": sums.input_tokens,
        "output_tokens": sums.output_tokens,
        "cost_usd": MicroUsd(cost).dollars(),
        "cost_microusd": cost,
        "p95_ms": sums.p95_ms,
    });
    match all {
        Value::Object(all) => all,
        _ => Map::new(),
    }
}

fn account(AccountBalance { key, balance }: &AccountBalance) -> Value {
    json!({
        "scope": key.scope.as_str(),
        "name": key.name,
        "period": key.period.as_str(),
        "spent_microusd": balance.spent,
        "held_microusd": balance.reserved,
        "resets_at_ms": key.ends_ms(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_is_read_within_its_bounds() {
        let now_ms = 20_000 * DAY_MS;
        let plain = asked("", now_ms).unwrap();
        assert_eq!((plain.from, plain.to, plain.limit, plain.offset), (19_971, 20_000, 100, 0));
        let by_key = asked("by=key,outcome&limit=5&offset=10&user=a%20b", now_ms).unwrap();
        assert_eq!(by_key.by, [UsageBy::Key, UsageBy::Outcome]);
        assert_eq!((by_key.limit, by_key.offset, by_key.user.as_deref()), (5, 10, Some("a b")));
        assert!(asked("by=", now_ms).unwrap().by.is_empty(), "one sum of everything");
        for bad in [
            "by=colour",
            "by=day,day",
            "by=day,model,user,session,key",
            "limit=1001",
            "offset=-1",
            "from=yesterday",
            "from=2030-01-01&to=2020-01-01",
            "from=2020-01-01&to=2024-01-01",
            "other=1",
        ] {
            assert!(asked(bad, now_ms).is_err(), "{bad}");
        }
    }
}
