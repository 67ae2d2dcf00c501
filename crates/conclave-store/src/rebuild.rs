//! Derives the query tables again from the log.
//!
//! **Invariant:** the log is only read. All of it happens in one transaction: whoever reads meanwhile
//! sees the tables as they were, and a failure leaves them so.

use crate::backing::refuse_bound;
use crate::db::{LEDGER, open_writer, rederive};
use crate::error::StoreError;
use crate::lock::DirLock;
use std::path::Path;

/// Derives the tables of a data directory again; says from how many entries. The gateway must not
/// run on it.
///
/// # Errors
/// When the directory is in use, or the database refuses.
pub fn rebuild(dir: &Path) -> Result<u64, StoreError> {
    let _lock = DirLock::take(dir)?;
    refuse_bound(dir)?;
    let database = dir.join("ledger.db");
    if !database.is_file() {
        return Err(StoreError::Key(format!("there is no ledger in {}", dir.display())));
    }
    let mut conn = open_writer(&database, LEDGER)?;
    rederive(&mut conn).map_err(StoreError::database(&database))
}
