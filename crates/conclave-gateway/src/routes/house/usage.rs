//! `GET /v1/usage`: what the key's tenant used and spent, and what is left.

use super::decisions::archive_error;
use super::tenants::steward_of;
use crate::admission::entrance::{Need, admit_key};
use crate::error::ApiError;
use crate::routes::query::{QueryField, read_number, read_query};
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

struct UsageRequest {
    from: u32,
    to: u32,
    by: Vec<UsageBy>,
    user: Option<String>,
    limit: u32,
    offset: u32,
}

/// What was used, parted as the caller asks, and how the accounts stand.
pub(crate) async fn show_usage(
    State(gateway): State<Gateway>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let found = async {
        let key = admit_key(&gateway, &headers, Need::Usage)?;
        let steward = steward_of(&gateway)?;
        let engine = gateway.engine();
        let now_ms = engine.clock.now_ms();
        let asked = read_usage_request(query.as_deref(), now_ms)?;
        let tenant = tenant_number(key.tenant.as_str());
        let ask = UsageAsk {
            tenant,
            from_ms: u64::from(asked.from) * DAY_MS,
            to_ms: (u64::from(asked.to) + 1) * DAY_MS,
            by: asked.by.clone(),
            subject: find_subject(&engine, &key.tenant, asked.user.as_deref()).await?,
            offset: asked.offset,
            // One more than is shown says whether there is another page.
            limit: asked.limit + 1,
        };
        let page = steward.state.usage().sums(ask).await.map_err(archive_error)?;
        let accounts = steward.state.accounts().balances(tenant, now_ms, ACCOUNTS_MAX).await;
        let accounts = accounts.map_err(|error| {
            tracing::error!(%error, "the accounts cannot be shown");
            ApiError::budget_unavailable()
        })?;
        let accounts: Vec<_> = accounts.iter().map(account_view).collect();
        Ok(Json(usage_view(&asked, &page, &accounts)).into_response())
    };
    respond(found.await)
}

/// The person's pseudonym; whoever is not known here has used nothing.
async fn find_subject(
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

fn read_usage_request(query: Option<&str>, now_ms: u64) -> Result<UsageRequest, ApiError> {
    let mut from = None;
    let mut to = None;
    let mut asked = UsageRequest {
        from: 0,
        to: 0,
        by: vec![UsageBy::Day, UsageBy::Model],
        user: None,
        limit: ROWS,
        offset: 0,
    };
    for field in read_query(query, &FILTERS)? {
        match field.name {
            "from" => from = Some(read_day(&field)?),
            "to" => to = Some(read_day(&field)?),
            "by" => asked.by = read_by(&field.value)?,
            "user" => asked.user = Some(field.value),
            "limit" => asked.limit = read_number(&field, ROWS_MAX)?.max(1),
            _ => asked.offset = read_number(&field, OFFSET_MAX)?,
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

fn read_day(field: &QueryField<'_>) -> Result<u32, ApiError> {
    let day = parse_date(&field.value);
    day.ok_or_else(|| ApiError::invalid(field.name, "must be a date such as 2026-01-31"))
}

fn read_by(value: &str) -> Result<Vec<UsageBy>, ApiError> {
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

fn usage_view(asked: &UsageRequest, page: &UsagePage, accounts: &[Value]) -> Value {
    let rows = page.rows.iter().take(asked.limit as usize);
    let more = page.rows.len() > asked.limit as usize;
    let mut shown = json!({
        "object": "usage",
        "from": date_of(asked.from),
        "to": date_of(asked.to),
        "by": asked.by.iter().map(|by| by.as_str()).collect::<Vec<_>>(),
        "data": rows.map(|row| row_view(&asked.by, row)).collect::<Vec<_>>(),
        "has_more": more,
        "next_offset": more.then(|| asked.offset + asked.limit),
        "accounts": accounts,
    });
    if let Value::Object(shown) = &mut shown {
        shown.extend(sums_view(&page.total));
    }
    shown
}

fn row_view(by: &[UsageBy], row: &UsageRow) -> Value {
    let of = by.iter().zip(&row.of).map(|(by, name)| {
        let value = match by {
            _ if name.is_empty() => Value::Null,
            UsageBy::Day => name.parse().map_or(Value::Null, |day| date_of(day).into()),
            _ => name.as_str().into(),
        };
        (by.as_str().to_owned(), value)
    });
    Value::Object(of.chain(sums_view(&row.sums)).collect())
}

fn sums_view(sums: &UsageSums) -> Map<String, Value> {
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

fn account_view(AccountBalance { key, balance }: &AccountBalance) -> Value {
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
        let asked = |query: &str| read_usage_request(Some(query), 20_000 * DAY_MS);
        let plain = asked("").unwrap();
        assert_eq!((plain.from, plain.to, plain.limit, plain.offset), (19_971, 20_000, 100, 0));
        let by_key = asked("by=key,outcome&limit=5&offset=10&user=a%20b").unwrap();
        assert_eq!(by_key.by, [UsageBy::Key, UsageBy::Outcome]);
        assert_eq!((by_key.limit, by_key.offset, by_key.user.as_deref()), (5, 10, Some("a b")));
        assert!(asked("by=").unwrap().by.is_empty(), "one sum of everything");
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
            assert!(asked(bad).is_err(), "{bad}");
        }
    }
}
