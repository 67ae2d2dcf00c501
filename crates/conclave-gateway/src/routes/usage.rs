//! `GET /v1/usage`: what the key's tenant used and spent, and what is left.

use super::decisions::unavailable;
use super::respond;
use super::tenants::steward;
use crate::auth::{Need, admit};
use crate::error::ApiError;
use crate::state::Gateway;
use axum::Json;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use conclave_core::MicroUsd;
use conclave_engine::{UsageRow, resets_ms};
use conclave_govern::{Account, AccountKey, date_of, day_of, parse_date};
use conclave_ledger::tenant_number;
use http::HeaderMap;
use serde_json::{Value, json};

const DAY_MS: u64 = 86_400_000;
/// The longest stretch that is added up at once.
const DAYS_MAX: u32 = 366;
/// The most accounts that are shown.
const ACCOUNTS_MAX: u32 = 200;

/// What was used, day by day and model by model, and how the accounts stand.
pub(super) async fn usage(
    State(gateway): State<Gateway>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let found = async {
        let key = admit(&gateway, &headers, Need::Usage)?;
        let (steward, engine) = (steward(&gateway)?, gateway.engine());
        let now_ms = engine.clock.now_ms();
        let (from, to) = days(query.as_deref().unwrap_or(""), now_ms)?;
        let tenant = tenant_number(key.tenant.as_str());
        let (from_ms, to_ms) = (u64::from(from) * DAY_MS, (u64::from(to) + 1) * DAY_MS);
        let rows = steward.state.usage().daily(tenant, from_ms, to_ms).await;
        let rows = rows.map_err(unavailable)?;
        let accounts = steward.state.accounts().balances(tenant, now_ms, ACCOUNTS_MAX).await;
        let accounts = accounts.map_err(|error| {
            tracing::error!(%error, "the accounts cannot be shown");
            ApiError::budget_unavailable()
        })?;
        let cost = rows.iter().map(|row| row.cost_microusd).fold(0, u64::saturating_add);
        Ok(Json(json!({
            "object": "usage",
            "from": date_of(from),
            "to": date_of(to),
            "requests": rows.iter().map(|row| row.requests).sum::<u64>(),
            "cost_usd": MicroUsd(cost).dollars(),
            "cost_microusd": cost,
            "data": rows.iter().map(row).collect::<Vec<_>>(),
            "accounts": accounts.iter().map(|one| account(one, now_ms)).collect::<Vec<_>>(),
        }))
        .into_response())
    };
    respond(found.await)
}

/// Which days, both included; the last thirty where nothing is said.
fn days(query: &str, now_ms: u64) -> Result<(u32, u32), ApiError> {
    let (mut from, mut to) = (None, None);
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    for (name, value) in pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))) {
        let day = || {
            let day = parse_date(value);
            day.ok_or_else(|| ApiError::invalid(name, "must be a date such as 2026-01-31"))
        };
        match name {
            "from" => from = Some(day()?),
            "to" => to = Some(day()?),
            other => return Err(ApiError::invalid(other, "is not known here")),
        }
    }
    let to = to.unwrap_or_else(|| day_of(now_ms));
    let from = from.unwrap_or_else(|| to.saturating_sub(29));
    if from > to || to - from >= DAYS_MAX {
        let message = format!("`from` must not be after `to`, and at most {DAYS_MAX} days before");
        return Err(ApiError::invalid("from", message));
    }
    Ok((from, to))
}

fn row(row: &UsageRow) -> Value {
    json!({
        "day": date_of(row.day),
        "model": row.model,
        "requests": row.requests,
        "delivered": row.delivered,
        "blocked": row.blocked,
        "failed": row.failed,
        "attempts": row.attempts,
        "cost_usd": MicroUsd(row.cost_microusd).dollars(),
        "cost_microusd": row.cost_microusd,
    })
}

fn account((key, account): &(AccountKey, Account), now_ms: u64) -> Value {
    json!({
        "scope": key.scope.as_str(),
        "name": key.name,
        "period": key.period.as_str(),
        "spent_microusd": account.spent,
        "held_microusd": account.held,
        "resets_at_ms": resets_ms(key.period, now_ms),
    })
}
