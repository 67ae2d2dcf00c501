//! `GET /`: how the house is doing.

use crate::board::{Board, Figures};
use crate::chart::{Gauge, HourChart};
use crate::dashboard::Dashboard;
use crate::figure::count;
use crate::label::{Badge, outcomes};
use crate::page::{Frame, Here, Trouble, page};
use crate::rows::Rows;
use crate::visitor::Visitor;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use conclave_people::{AppealEstimates, ErrorRate};
use http::{HeaderMap, StatusCode, header};

/// Decisions shown below the chart.
const LATEST_SHOWN: usize = 8;

/// One way to end, and how often it happened.
struct Ending {
    name: &'static str,
    badge: Badge,
    count: String,
    gauge: Gauge,
}

/// How often decisions that were appealed turned out to be wrong.
struct AppealFigure {
    name: &'static str,
    share: String,
    told: String,
}

#[derive(Template)]
#[template(path = "overview.html")]
struct OverviewPage {
    frame: Frame,
    figures: Figures,
    chart: HourChart,
    endings: Vec<Ending>,
    latest: Rows,
    appeals: Vec<AppealFigure>,
    host: String,
    https: bool,
}

/// The page.
pub(super) async fn show(
    State(dashboard): State<Dashboard>,
    visitor: Visitor,
    headers: HeaderMap,
) -> Response {
    let board = match Board::read(&dashboard, visitor.tenant()).await {
        Ok(board) => board,
        Err(trouble) => return trouble.page(&dashboard, Some(&visitor)),
    };
    let appeals = match dashboard.appeals() {
        Some(appeals) => appeals.estimates(&visitor.account.tenant).await,
        None => Ok(AppealEstimates::default()),
    };
    let appeals = match appeals {
        Ok(estimates) => appeal_figures(&estimates),
        Err(error) => {
            tracing::error!(%error, "the rulings on appeals cannot be counted");
            return Trouble::Archive.page(&dashboard, Some(&visitor));
        }
    };
    let shown = OverviewPage {
        appeals,
        frame: Frame::of(&dashboard, &visitor, Here::Overview, "Overview"),
        figures: board.figures(),
        chart: HourChart::draw(&board.tally.hours, board.now_ms),
        endings: endings(&board),
        latest: Rows::new("The latest decisions", board.latest.iter().take(LATEST_SHOWN)),
        host: host(&headers),
        https: dashboard.https(),
    };
    page(StatusCode::OK, &shown)
}

/// What rulings tell so far; nothing where nobody has ruled.
fn appeal_figures(estimates: &AppealEstimates) -> Vec<AppealFigure> {
    let figure = |name, rate: ErrorRate| {
        let share = rate.share?;
        let percent = |value: f64| format!("{:.0}%", value * 100.0);
        let told = format!(
            "{} of {} appeals that were ruled on; 95% interval {} to {}",
            count(rate.wrong),
            count(rate.ruled),
            percent(share.low),
            percent(share.high)
        );
        Some(AppealFigure { name, share: percent(share.value), told })
    };
    let all = [
        figure("Withheld and should not have been", estimates.false_alarms),
        figure("Sent and should not have been", estimates.misses),
    ];
    all.into_iter().flatten().collect()
}

/// How the day's turns ended, most frequent first.
fn endings(board: &Board) -> Vec<Ending> {
    let whole = board.decisions();
    let mut counted: Vec<_> = outcomes()
        .filter_map(|name| {
            let (_, count) = board.tally.outcomes.iter().find(|(known, _)| known == name)?;
            (*count > 0).then_some((name, *count))
        })
        .collect();
    counted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let ending = |(name, times): (&'static str, u64)| {
        let badge = Badge::outcome(name);
        Ending {
            name,
            count: count(times),
            gauge: Gauge::part(times, whole).toned(badge.tone()),
            badge,
        }
    };
    counted.into_iter().map(ending).collect()
}

/// Where the visitor reached us, for the example to copy; only if it is a plain host.
fn host(headers: &HeaderMap) -> String {
    let plain = |c: u8| c.is_ascii_alphanumeric() || b".-:[]".contains(&c);
    let named = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let fits = |host: &&str| !host.is_empty() && host.len() <= 255 && host.bytes().all(plain);
    named.filter(fits).unwrap_or("127.0.0.1:8420").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn only_a_plain_host_gets_into_the_example() {
        for (sent, shown) in [
            ("127.0.0.1:9000", "127.0.0.1:9000"),
            ("[::1]:8420", "[::1]:8420"),
            ("conclave.example", "conclave.example"),
            ("evil;rm -rf", "127.0.0.1:8420"),
            ("", "127.0.0.1:8420"),
        ] {
            let headers = HeaderMap::from_iter([(header::HOST, HeaderValue::from_static(sent))]);
            assert_eq!(host(&headers), shown);
        }
    }
}
