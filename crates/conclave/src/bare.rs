//! Builds for benchmarks, without the checks or without the ledger: what both cost is the difference.
//!
//! **Invariant:** what is left out is left out when the program is compiled; no option, variable or file of the
//! shipped program can leave it out. Such a build says so when it starts, and listens on loopback alone.

use crate::config::Config;
use crate::output;
use anyhow::bail;
use conclave_core::{Opinion, Seat, Vote};
use conclave_engine::{AppendError, Appended, Ledger};
use conclave_ledger::{Body, Draft, EntryId};
use conclave_verifiers::{Case, Judge};
use futures_util::future::{BoxFuture, FutureExt, ready};
use std::sync::Arc;

/// Whether nothing is judged.
pub const NO_CHECKS: bool = cfg!(feature = "bare-checks");
/// Whether nothing is recorded.
pub const NO_LEDGER: bool = cfg!(feature = "bare-ledger");

/// Says what was left out, and keeps such a build away from people.
///
/// # Errors
/// When it would listen on an address that others can reach.
pub fn admit(config: &Config) -> anyhow::Result<()> {
    for (left_out, what) in [(NO_CHECKS, "judges"), (NO_LEDGER, "records")] {
        if left_out {
            output::note(&format!("conclave: this build is for benchmarks and {what} nothing"));
        }
    }
    if (NO_CHECKS || NO_LEDGER) && !config.server.listen.ip().is_loopback() {
        bail!("a build for benchmarks listens on loopback addresses only");
    }
    Ok(())
}

/// The judges of the panel, or somebody who nods in the place of each.
pub fn judges(judges: Vec<Box<dyn Judge>>) -> Vec<Box<dyn Judge>> {
    if !NO_CHECKS {
        return judges;
    }
    judges.into_iter().map(|judge| Box::new(Nods(judge.seat())) as Box<dyn Judge>).collect()
}

/// The ledger, or one that forgets.
pub fn ledger(ledger: Arc<dyn Ledger>) -> Arc<dyn Ledger> {
    if NO_LEDGER { Arc::new(Forgets) } else { ledger }
}

/// Says yes.
struct Nods(Seat);

impl Judge for Nods {
    fn seat(&self) -> Seat {
        self.0.clone()
    }

    fn judge(&self, _case: &Case) -> Option<Opinion> {
        let (vote, confidence) = (Vote::Safe, 1.0);
        let (reasons, reasoning, flagged_patterns) = (Vec::new(), String::new(), Vec::new());
        Some(Opinion { vote, confidence, reasons, reasoning, flagged_patterns })
    }
}

/// Takes everything and keeps nothing.
struct Forgets;

impl Ledger for Forgets {
    fn append(&self, _draft: Draft, _body: Body) -> BoxFuture<'_, Result<Appended, AppendError>> {
        let id = EntryId { replica: [0; 8], epoch: 0, n: 1 };
        ready(Ok(Appended { id, leaf_hash: [0; 32] })).boxed()
    }

    fn append_soon(&self, _draft: Draft, _body: Body) {}

    fn dropped(&self) -> u64 {
        0
    }

    fn health(&self) -> Result<(), AppendError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinary_build_leaves_nothing_out() {
        assert_eq!((NO_CHECKS, NO_LEDGER), (false, false));
        let elsewhere = Config {
            server: crate::config::Server {
                listen: ([0, 0, 0, 0], 0).into(),
                ..Default::default()
            },
            ..Config::default()
        };
        assert!(admit(&elsewhere).is_ok());
    }
}
