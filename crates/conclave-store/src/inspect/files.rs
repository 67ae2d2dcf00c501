//! The files beside the log: whether those an installation needs are there, and whole.
//!
//! **Invariant:** a copy that was made for checking need not have them. An installation is told by its
//! name, the file `replica`.

use super::{Noted, Taken};
use crate::pages::read_through;
use conclave_ledger::{Auditor, EntryId};
use std::path::Path;

/// Databases of a data directory, whichever of them it has.
const DATABASES: [&str; 4] = ["ledger.db", "ops.db", "keys.db", "cache.db"];

/// Notes what is missing or damaged, behind everything that speaks of an entry.
pub(crate) fn note_files(dir: &Path, end: u64, auditor: &mut Auditor<'_>) {
    for name in missing(dir) {
        auditor.note(end, None, format!("{name} is missing beside the ledger"));
    }
    for name in DATABASES {
        match read_through(&dir.join(name)) {
            Ok(None) => {}
            Ok(Some(problem)) => auditor.note(end, None, format!("{name} is damaged: {problem}")),
            Err(error) => auditor.note(end, None, format!("{name} cannot be read: {error}")),
        }
    }
}

/// What an installation cannot go on without.
fn missing(dir: &Path) -> Vec<&'static str> {
    let has = |name: &str| dir.join(name).exists();
    let is_installation = has("replica");
    let is_own = has("ledger.db");
    let needs = [
        ("pepper", is_installation),
        ("ops.db", is_installation && is_own),
        ("keys.db", is_installation && has("root.key")),
    ];
    needs.into_iter().filter(|(name, is_needed)| *is_needed && !has(name)).map(|it| it.0).collect()
}

/// Notes entries that were acknowledged and are neither in the log nor in the spool.
pub(crate) fn note_cut(noted: &Noted, reached: &Taken, end: u64, auditor: &mut Auditor<'_>) {
    for (whose, n) in noted {
        let reached = reached.get(whose).copied().unwrap_or(0);
        if *n <= reached {
            continue;
        }
        let from = reached + 1;
        let problem = format!(
            "entries {from} to {n} of this replica were acknowledged and are missing: the end of the \
             spool was cut off, or a file of it was removed"
        );
        let id = EntryId { replica: whose.replica, epoch: whose.epoch, n: *n };
        auditor.note(end, Some(id), problem);
    }
}
