//! The same case is not judged twice; another tenant's, another policy's or another wording is.

use crate::fakes::{Juror, Scripted, opinion};
use crate::turns::{KIND, house, turn};
use conclave_core::{Outcome, TenantId, Vote};
use conclave_engine::{Engine, Settings, Turn};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

const THINKING: Duration = Duration::from_millis(100);

fn slow_house() -> Engine {
    let slow = |name| Juror::seated(name, 3, THINKING, |_| Ok(opinion(Vote::Safe, 0.9, &[])));
    house(Scripted::saying(&[Ok(KIND)]), ["crisis", "a", "b"].map(slow).into()).engine
}

async fn time_of(engine: &Engine, turn: Turn) -> Duration {
    let started = Instant::now();
    assert_eq!(engine.deliver(turn).await.unwrap().decision.outcome, Outcome::Delivered);
    started.elapsed()
}

#[tokio::test(start_paused = true)]
async fn the_same_case_is_judged_once_and_decided_twice() {
    let engine = slow_house();
    assert!(time_of(&engine, turn("My day was long.")).await >= THINKING);
    assert!(time_of(&engine, turn("My day was long.")).await < THINKING);
    assert!(time_of(&engine, turn("My day was short.")).await >= THINKING);
}

#[tokio::test(start_paused = true)]
async fn no_verdict_crosses_a_tenant_or_outlives_a_policy() {
    let engine = slow_house();
    time_of(&engine, turn("My day was long.")).await;
    let elsewhere = Turn { tenant: TenantId::new("other").unwrap(), ..turn("My day was long.") };
    assert!(time_of(&engine, elsewhere).await >= THINKING);
    let settings = Settings { policy: [1; 32], ..(*engine.settings).clone() };
    let changed = Engine { settings: Arc::new(settings), ..engine.clone() };
    assert!(time_of(&changed, turn("My day was long.")).await >= THINKING);
    engine.verdicts.clear();
    assert!(time_of(&engine, turn("My day was long.")).await >= THINKING);
}
