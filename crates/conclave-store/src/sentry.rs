//! Looks once a second whether the data directory is still ours, and whether everything in it that is in
//! use can still be found.
//!
//! Files that are open go on working after somebody has removed them. Only at the next start would it show
//! that what was written to them is gone.
//!
//! **Invariant:** nobody waits for a look, and what is looked at is never changed by it.

use crate::archive::ReadSide;
use crate::error::StoreError;
use crate::lock::{DirLock, FileId, LockTrouble};
use crate::spool::{HighWater, Progress};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often it looks.
const TICK: Duration = Duration::from_secs(1);
/// The log in SQLite.
const LEDGER: &str = "ledger.db";
/// The keys of people: whoever is met while it is gone gets a key that nobody has tomorrow.
const KEYS: &str = "keys.db";
/// Databases and notes that stay open; each must be the very file that was opened.
const OPENED: [&str; 6] = [LEDGER, "ops.db", KEYS, "cache.db", "acknowledged", "spool"];
/// Secrets and names that are read at the start, and may be replaced by newer ones.
const READ: [&str; 4] = ["pepper", "replica", "ledger.key", "root.key"];

/// A file that has to stay where it is.
struct Watched {
    name: &'static str,
    path: PathBuf,
    /// Which file it is, where another one of that name would not do.
    id: Option<FileId>,
    /// Whether it was not there at the last look. A file that is being replaced is away for a moment.
    was_gone: bool,
}

/// What a look at one file came to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sight {
    InPlace,
    Gone,
    /// Another file stands there.
    Other(FileId),
}

impl Watched {
    /// The file as it is now; `None` if there is none, because an installation need not have all.
    fn begin(dir: &Path, name: &'static str, is_opened: bool) -> Result<Option<Self>, StoreError> {
        let path = dir.join(name);
        let found = FileId::at(&path).map_err(StoreError::file("look at", &path))?;
        let watched = |id| Self { name, path, id: is_opened.then_some(id), was_gone: false };
        Ok(found.map(watched))
    }

    /// Looks; what cannot be looked at now is looked at the next time.
    fn look(&mut self) -> Sight {
        let found = match FileId::at(&self.path) {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(file = self.name, %error, "a file could not be looked at");
                return Sight::InPlace;
            }
        };
        let is_gone = found.is_none();
        let was_gone = std::mem::replace(&mut self.was_gone, is_gone);
        match (found, self.id) {
            (None, _) if was_gone => Sight::Gone,
            (Some(found), Some(opened)) if found != opened => Sight::Other(found),
            _ => Sight::InPlace,
        }
    }
}

/// Watches one data directory.
pub(crate) struct Sentry {
    stopped: Mutex<bool>,
    wake: Condvar,
}

/// What a sentry looks at, and whom it tells.
pub(crate) struct SentryParts {
    pub(crate) lock: Arc<DirLock>,
    pub(crate) high_water: Arc<HighWater>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) archive: Arc<dyn ReadSide>,
    pub(crate) dir: PathBuf,
}

impl Sentry {
    pub(crate) fn new() -> Self {
        Self { stopped: Mutex::new(false), wake: Condvar::new() }
    }

    pub(crate) fn stop(&self) {
        *self.stopped() = true;
        self.wake.notify_all();
    }

    fn stopped(&self) -> MutexGuard<'_, bool> {
        self.stopped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next look; `false` when it is time to end.
    fn wait(&self) -> bool {
        let pause = self.wake.wait_timeout_while(self.stopped(), TICK, |stopped| !*stopped);
        !*pause.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Looks until it is told to stop.
    pub(crate) fn run(&self, mut round: Round) {
        while self.wait() {
            round.walk();
        }
    }
}

/// One sentry's round.
pub(crate) struct Round {
    parts: SentryParts,
    files: Vec<Watched>,
    lost_segments: Vec<PathBuf>,
}

impl Round {
    /// Notes what is there now.
    ///
    /// # Errors
    /// When it cannot be looked at.
    pub(crate) fn begin(parts: SentryParts) -> Result<Self, StoreError> {
        let opened = OPENED.iter().map(|name| Watched::begin(&parts.dir, name, true));
        let read = READ.iter().map(|name| Watched::begin(&parts.dir, name, false));
        let files = opened.chain(read).filter_map(Result::transpose).collect::<Result<_, _>>()?;
        Ok(Self { parts, files, lost_segments: Vec::new() })
    }

    /// Looks at everything once.
    pub(crate) fn walk(&mut self) {
        match self.parts.lock.check() {
            Ok(()) => {}
            Err(LockTrouble::Lost(why)) => {
                // Everything else is missing because of that.
                self.parts.progress.set_overtaken(&why);
                return;
            }
            Err(trouble) => tracing::warn!(%trouble, "the data directory could not be looked at"),
        }
        if let Err(error) = self.parts.high_water.sync() {
            tracing::warn!(%error, "how far entries were acknowledged could not be noted");
        }
        let mut missing: Vec<String> = Vec::new();
        let mut are_keys_gone = false;
        for file in &mut self.files {
            let sight = file.look();
            if sight == Sight::InPlace {
                continue;
            }
            if file.name == LEDGER {
                // Nothing more goes into a file that nobody can find. The spool takes it, until a database
                // stands there again, which is looked at like any that came back.
                self.parts.archive.close_idle();
                self.parts.progress.reopen();
                if let Sight::Other(found) = sight {
                    file.id = Some(found);
                    continue;
                }
            }
            are_keys_gone |= file.name == KEYS;
            missing.push(file.name.to_owned());
        }
        self.look_at_segments();
        self.parts.progress.set_missing(missing, are_keys_gone);
    }

    /// Segments that should be there and were not at the last look either: one that is drained is moved
    /// away before it is forgotten.
    fn look_at_segments(&mut self) {
        let gone = self.parts.progress.segment_paths();
        let gone: Vec<_> =
            gone.into_iter().filter(|path| matches!(FileId::at(path), Ok(None))).collect();
        let before = std::mem::replace(&mut self.lost_segments, gone);
        for path in self.lost_segments.iter().filter(|path| before.contains(path)) {
            self.parts.progress.note_lost_segment(path);
        }
    }
}
