//! The panel: everyone judges the same case at the same time, nobody sees another's ballot.
//!
//! **Invariant:** whoever fails, is late or panics has abstained; nobody is counted safe by absence.
//! Only a verifier the operator added, and said may be missing, is then left out of the sum.

use conclave_core::{Abstention, Ballot, Opinion, intake};
use conclave_ports::{Elsewhere, Verifier, VerifierError, WhenFailing};
use conclave_verifiers::{Case, Judge, floor_ballot};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// So many sit on every panel, whoever is spared.
const SEATED_MIN: usize = 3;

/// The verifiers that sit on every panel.
#[derive(Clone)]
pub struct Panel {
    verifiers: Arc<[Arc<dyn Verifier>]>,
}

impl Panel {
    /// Seats these verifiers.
    #[must_use]
    pub fn new(verifiers: Vec<Arc<dyn Verifier>>) -> Self {
        Self { verifiers: verifiers.into() }
    }

    /// Lets everyone judge the case; answers within `budget`. What the floor of the directives stops has
    /// its ballot too, whoever is seated. About people who are `established` fewer are asked.
    pub async fn judge(&self, case: Arc<Case>, budget: Duration, established: bool) -> Vec<Ballot> {
        let spares = established && self.has_enough_without();
        let asked = self.verifiers.iter().map(|one| {
            let (one, case) = (&**one, Arc::clone(&case));
            async move {
                if spares && one.may_be_spared() {
                    return intake(one.seat().clone(), Ok(None), 0);
                }
                ballot(one, case, budget).await
            }
        });
        let mut ballots = join_all(asked).await;
        ballots.extend(floor_ballot(&case));
        ballots
    }

    /// Whether those who are always asked are enough for a quorum, and the one among them that must be.
    fn has_enough_without(&self) -> bool {
        let seats = self.verifiers.iter().filter(|one| !one.may_be_spared()).map(|one| one.seat());
        let counted: Vec<_> = seats.filter(|seat| !seat.monitor).collect();
        counted.len() >= SEATED_MIN && counted.iter().any(|seat| seat.required)
    }

    /// Whether everybody answers at once.
    pub(crate) fn is_quick(&self) -> bool {
        self.verifiers.iter().all(|verifier| verifier.is_quick())
    }

    /// Everybody elsewhere who is shown what the panel judges.
    pub(crate) fn elsewhere(&self) -> Vec<Elsewhere> {
        self.verifiers.iter().filter_map(|verifier| verifier.elsewhere()).collect()
    }

    /// Who sits, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.verifiers.iter().map(|verifier| &*verifier.seat().verifier)
    }
}

async fn ballot(verifier: &dyn Verifier, case: Arc<Case>, budget: Duration) -> Ballot {
    let started = Instant::now();
    // `async` so that a panic while the future is being made is caught as well.
    let judged = Arc::clone(&case);
    let heard = AssertUnwindSafe(async { verifier.hear(judged).await }).catch_unwind();
    let (answer, cost) = match timeout(verifier.timeout().min(budget), heard).await {
        Ok(Ok(hearing)) => (hearing.answer.map_err(|error| failed(verifier, &error)), hearing.cost),
        // Whether the call was made, and what it came to, nobody saw: it is paid for in full.
        Ok(Err(_panic)) => (Err(Abstention::Panicked), verifier.most(&case)),
        Err(_late) => (Err(Abstention::Late), verifier.most(&case)),
    };
    let latency_ms = u32::try_from(started.elapsed().as_millis()).unwrap_or(u32::MAX);
    let ballot = intake(verifier.seat().clone(), answer, latency_ms);
    let ballot = Ballot { cost, basis: verifier.basis(), ..ballot };
    match verifier.when_failing() {
        WhenFailing::Dissents => ballot,
        WhenFailing::LeftOut => ballot.excused(),
    }
}

fn failed(verifier: &dyn Verifier, error: &VerifierError) -> Abstention {
    tracing::warn!(verifier = %verifier.seat().verifier, %error, "verifier failed");
    Abstention::Failed
}

/// Cases with more text than this are judged on a thread of their own, where time runs out for them.
const LONG_BYTES: usize = 64 << 10;

/// How much text a case has.
fn size(case: &Case) -> usize {
    let calls = case.candidate.tool_calls.iter().map(|call| call.arguments.len()).sum::<usize>();
    let said: usize = case.conversation.iter().map(|one| one.content.as_text().len()).sum();
    case.candidate.text.len() + calls + said
}

/// A built-in judge on the panel: it answers at once, fails only where the case could not be read, and
/// may panic.
pub struct BuiltIn {
    judge: Arc<dyn Judge>,
    seat: conclave_core::Seat,
}

impl BuiltIn {
    /// Seats a judge in its own place.
    #[must_use]
    pub fn new(judge: Box<dyn Judge>) -> Self {
        let seat = judge.seat();
        Self::seated(judge, seat)
    }

    /// Seats a judge in a place that configuration has changed.
    #[must_use]
    pub fn seated(judge: Box<dyn Judge>, seat: conclave_core::Seat) -> Self {
        Self { judge: judge.into(), seat }
    }
}

impl Verifier for BuiltIn {
    fn seat(&self) -> &conclave_core::Seat {
        &self.seat
    }

    fn timeout(&self) -> Duration {
        Duration::from_millis(500)
    }

    fn is_quick(&self) -> bool {
        true
    }

    fn judge(&self, case: Arc<Case>) -> BoxFuture<'_, Result<Option<Opinion>, VerifierError>> {
        if let Some(why) = case.unreadable() {
            return std::future::ready(Err(VerifierError(why.to_owned()))).boxed();
        }
        if size(&case) <= LONG_BYTES {
            return std::future::ready(Ok(self.judge.judge(&case))).boxed();
        }
        let judge = Arc::clone(&self.judge);
        async move {
            let judged = tokio::task::spawn_blocking(move || judge.judge(&case)).await;
            judged.map_err(|error| VerifierError(error.to_string()))
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conclave_core::{Candidate, Cast, Mode, TurnContext};
    use conclave_detect::Reading;

    #[tokio::test]
    async fn every_built_in_verifier_abstains_from_a_case_that_could_not_be_read() {
        let judges = conclave_verifiers::builtin().unwrap();
        let seated = judges.into_iter().map(|one| Arc::new(BuiltIn::new(one)) as Arc<dyn Verifier>);
        let panel = Panel::new(seated.collect());
        let reading = Reading::empty(Mode::Normal);
        let candidate = Candidate { text: "Good morning.".into(), ..Candidate::default() };
        let context = TurnContext::default();
        let case = Case::new([].into(), candidate, context, Arc::new(reading.clone()), reading);
        let case = Arc::new(case.left_unread("en.toml: broken"));
        let ballots = panel.judge(case, Duration::from_secs(5), false).await;
        assert_eq!(ballots.len(), 7);
        for ballot in ballots {
            assert_eq!(ballot.cast, Cast::Abstained(Abstention::Failed), "{:?}", ballot.seat);
        }
    }
}
