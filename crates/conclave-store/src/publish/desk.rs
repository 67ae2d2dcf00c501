//! The thread that publishes, and what others may know of it.
//!
//! **Invariant:** trouble with signing never stops an entry: it is told in the health of the system
//! and in the log, and signing goes on when the trouble is over.

use super::checkpoints::Published;
use super::cosigned::Cosigned;
use super::publisher::{PublishError, Publisher};
use crate::lock::DirLock;
use crate::snapshot::Snapshots;
use crate::spool::Progress;
use conclave_engine::Clock;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often the log is looked at.
const TICK: Duration = Duration::from_secs(1);

/// A place elsewhere that gets a copy of every checkpoint.
pub trait Anchor: Send + Sync {
    /// Takes a note that was published, on the publisher's thread; must not wait for anybody.
    fn published(&self, size: u64, note: &str);
    /// What keeps it from passing notes on.
    fn trouble(&self) -> Option<String>;
}

/// What a desk is made of.
pub(crate) struct DeskParts {
    pub(crate) dir: PathBuf,
    pub(crate) snapshots: Arc<dyn Snapshots>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) anchor: Option<Arc<dyn Anchor>>,
    /// Nothing is signed in a directory of somebody else.
    pub(crate) lock: Arc<DirLock>,
    /// Knows whether what is stored was found damaged.
    pub(crate) progress: Arc<Progress>,
}

/// Publishes checkpoints until it is told to stop.
pub(crate) struct Desk {
    publisher: Mutex<Publisher>,
    anchor: Option<Arc<dyn Anchor>>,
    lock: Arc<DirLock>,
    progress: Arc<Progress>,
    /// What witnesses have said.
    pub(crate) cosigned: Cosigned,
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    stopped: bool,
    trouble: Option<String>,
}

impl Desk {
    pub(crate) fn new(parts: DeskParts) -> Self {
        let DeskParts { dir, snapshots, clock, anchor, lock, progress } = parts;
        let publisher = Mutex::new(Publisher::new(&dir, snapshots, clock));
        let (cosigned, state) = (Cosigned::open(&dir), Mutex::default());
        Self { publisher, anchor, lock, progress, cosigned, state, wake: Condvar::new() }
    }

    /// What keeps it from signing, or its anchor from taking notes.
    pub(crate) fn trouble(&self) -> Option<String> {
        let own = self.state().trouble.clone();
        own.or_else(|| self.anchor.as_ref().and_then(|anchor| anchor.trouble()))
    }

    /// Publishes now, unless the stored log was found damaged; says whether it had grown.
    pub(crate) fn publish(&self) -> Result<Option<Published>, String> {
        let mut publisher = self.publisher.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.progress.log_size();
        let damage = self.progress.damage();
        let damage =
            damage.map(|damage| format!("{damage}; nothing is signed until it is whole again"));
        let outcome = match self.lock.why_lost(&self.progress).or(damage) {
            Some(why) => Err(why),
            None => publisher.publish().map_err(|error| {
                // A database that lost entries is noticed here also while there is nothing to drain.
                if matches!(error, PublishError::Refused(_)) {
                    self.progress.look_again();
                }
                error.to_string()
            }),
        };
        if publisher.size().is_some_and(|size| size < before) {
            self.progress.look_again();
        }
        match &outcome {
            Ok(published) => {
                if self.state().trouble.take().is_some() {
                    tracing::info!("checkpoints are signed again");
                }
                if let Some(published) = published {
                    self.cosigned.follow(published);
                }
                if let (Some(published), Some(anchor)) = (published, &self.anchor) {
                    anchor.published(published.size, &published.note);
                }
            }
            Err(error) => {
                let before = self.state().trouble.replace(error.clone());
                if before.as_ref() != Some(error) {
                    tracing::error!(error, "no checkpoint was signed");
                }
            }
        }
        outcome
    }

    pub(crate) fn run(&self) {
        while self.wait() {
            // The trouble is kept and was logged; there is nothing else to do about it here.
            let _ = self.publish();
        }
    }

    pub(crate) fn stop(&self) {
        self.state().stopped = true;
        self.wake.notify_all();
    }

    fn wait(&self) -> bool {
        let pause = self.wake.wait_timeout_while(self.state(), TICK, |state| !state.stopped);
        !pause.unwrap_or_else(PoisonError::into_inner).0.stopped
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
