//! Events on their way to webhooks.

use crate::house::{caller, office, tenant};
use conclave_people::{EventState, NewWebhook, PeopleError, webhook_signature};
use conclave_ports::{Announcement, Caller, EventKind, Governance, KeyRole, Post};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU16, Ordering};

/// The headers and the body of one request.
pub type Got = (Vec<(&'static str, String)>, String);

/// A place outside that can be told what to answer.
pub struct Place {
    pub answer: AtomicU16,
    pub got: Mutex<Vec<Got>>,
}

impl Post for Place {
    fn check<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<(), String>> {
        let is_encrypted = url.starts_with("https://");
        let checked = if is_encrypted { Ok(()) } else { Err("not https".into()) };
        std::future::ready(checked).boxed()
    }

    fn post<'a>(
        &'a self,
        _: &'a str,
        headers: Vec<(&'static str, String)>,
        body: String,
    ) -> BoxFuture<'a, Result<u16, String>> {
        self.got.lock().unwrap().push((headers, body));
        let status = self.answer.load(Ordering::Relaxed);
        let answer = if status == 0 { Err("no answer".to_owned()) } else { Ok(status) };
        std::future::ready(answer).boxed()
    }
}

fn alert() -> Announcement {
    Announcement { kind: EventKind::BudgetAlert, data: json!({"at": 70}) }
}

#[tokio::test]
async fn an_event_is_tried_for_more_than_a_day_under_one_id_then_dead_and_sent_again_on_demand() {
    let office = office();
    let people = &office.people;
    let place = Place { answer: AtomicU16::new(0), got: Mutex::default() };
    let admin = caller("adm", KeyRole::Admin);
    let bad = people.add_webhook(&admin, &place, "http://127.0.0.1/", vec![]).await;
    assert!(matches!(bad, Err(PeopleError::Unfit(_))));
    let url = "https://example.com/hook";
    let only = vec![EventKind::BudgetAlert];
    let NewWebhook { id, secret, .. } =
        people.add_webhook(&admin, &place, url, only).await.unwrap();
    let t = tenant("t");
    people.announce(&t, alert()).await.unwrap();
    let other = Announcement { kind: EventKind::DriftAlert, data: json!({}) };
    people.announce(&t, other).await.unwrap();
    people.announce(&tenant("other"), alert()).await.unwrap();
    let begun = office.clock.0.load(Ordering::Relaxed);
    let mut last_try = begun;
    for round in 0..40_000_u32 {
        if people.send_due(&place).await.unwrap() > 0 {
            last_try = office.clock.0.load(Ordering::Relaxed);
            // Down, then redirecting, then failing.
            place.answer.store([0, 302, 500][round as usize % 3], Ordering::Relaxed);
        }
        office.pass(5_000);
        if !people.queued_events(&t, &id, EventState::Dead, 9).await.unwrap().is_empty() {
            break;
        }
    }
    assert!(last_try - begun > 24 * 3_600_000, "tried for {} ms", last_try - begun);
    let dead = people.queued_events(&t, &id, EventState::Dead, 9).await.unwrap();
    let event = dead[0].id.clone();
    assert_eq!((dead.len(), dead[0].event.attempts), (1, 11));
    let foreign = Caller { tenant: tenant("other"), ..admin.clone() };
    assert!(people.resend_event(&foreign, &id, &event).await.is_err());
    people.resend_event(&admin, &id, &event).await.unwrap();
    place.answer.store(204, Ordering::Relaxed);
    assert_eq!(people.send_due(&place).await, Ok(1));
    assert_eq!(people.send_due(&place).await, Ok(0), "it arrived");
    let got = place.got.lock().unwrap().clone();
    assert_eq!(got.len(), 12);
    let header = |at: usize, name: &str| {
        got[at].0.iter().find(|(known, _)| *known == name).unwrap().1.clone()
    };
    assert!((0..12).all(|at| header(at, "webhook-id") == event), "one id for ever");
    let key = base64_of(secret.strip_prefix("whsec_").unwrap());
    let (stamp, body) = (header(11, "webhook-timestamp"), &got[11].1);
    assert_eq!(header(11, "webhook-signature"), webhook_signature(&key, &event, &stamp, body));
    assert_ne!(people.replace_secret(&admin, &id).await.unwrap(), secret);
}

fn base64_of(text: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text).unwrap()
}

#[tokio::test]
async fn an_event_is_in_one_hand_at_a_time() {
    let office = office();
    let people = &office.people;
    let place = Place { answer: AtomicU16::new(200), got: Mutex::default() };
    let admin = caller("adm", KeyRole::Admin);
    people.add_webhook(&admin, &place, "https://example.com/", vec![]).await.unwrap();
    for _ in 0..20 {
        people.announce(&tenant("t"), alert()).await.unwrap();
    }
    let rounds = (0..8).map(|_| people.send_due(&place));
    futures_util::future::join_all(rounds).await;
    assert_eq!(place.got.lock().unwrap().len(), 20, "eight workers, each event once");
    office.pass(2 * 86_400_000);
    people.send_due(&place).await.unwrap();
    let webhooks = people.webhooks(&tenant("t")).await.unwrap();
    let webhook = webhooks.keys().next().unwrap();
    let kept = people.queued_events(&tenant("t"), webhook, EventState::Arrived, 99).await.unwrap();
    assert!(kept.is_empty(), "what arrived is forgotten after a day");
    people.remove_webhook(&admin, webhook).await.unwrap();
    assert!(people.webhooks(&tenant("t")).await.unwrap().is_empty());
}
