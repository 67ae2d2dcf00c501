//! What all replicas of one database must have in common.
//!
//! **Invariant:** a data directory writes to one database for ever: its numbers mean nothing in
//! another. And all replicas have one pepper, or keys and pseudonyms of one would be strange to the
//! others.

use super::link::{Conn, LinkError};
use crate::durable;
use crate::error::StoreError;
use crate::keys::Pepper;
use conclave_engine::Entropy;
use std::path::Path;
use tokio_postgres::types::Type;

/// What the keyed hash of this says about a pepper is all that is stored of it.
const PEPPER_CHECK: &str = "conclave.pepper.check.v1";
/// Names the database a data directory belongs to.
pub(crate) const BOND: &str = "database";

/// States a fact unless it was stated before; returns what holds.
fn settle(conn: &Conn, name: &str, value: &[u8]) -> Result<Vec<u8>, LinkError> {
    let sql = "INSERT INTO shared_fact VALUES ($1, $2) ON CONFLICT DO NOTHING";
    conn.execute(sql, &[(&name, Type::TEXT), (&value, Type::BYTEA)])?;
    let row = conn.row("SELECT value FROM shared_fact WHERE name = $1", &[(&name, Type::TEXT)])?;
    Ok(row.map(|row| row.try_get(0)).transpose()?.unwrap_or_default())
}

/// Checks that this pepper is the one all replicas have.
pub(crate) fn agree_on_pepper(conn: &Conn, pepper: &Pepper) -> Result<(), StoreError> {
    let ours = pepper.digest(PEPPER_CHECK);
    let theirs = settle(conn, "pepper", &ours);
    let theirs = theirs.map_err(|error| conn.connector().named(&error))?;
    if theirs == ours {
        return Ok(());
    }
    let database = conn.connector().shown();
    Err(StoreError::Foreign(format!(
        "the pepper of this data directory is not the one of {}: keys made elsewhere would not \
         open anything here; copy the file `pepper` from the data directory of another replica",
        database.display()
    )))
}

/// Whether this replica is the one that begins the log.
pub(crate) fn begins_log(conn: &Conn, replica: [u8; 8]) -> Result<bool, LinkError> {
    Ok(settle(conn, "genesis", &replica)? == replica)
}

/// Binds a data directory to a database, or finds that it is bound to another.
pub(crate) fn bind(conn: &Conn, dir: &Path, entropy: &dyn Entropy) -> Result<(), StoreError> {
    let mut drawn = [0; 16];
    entropy.fill(&mut drawn);
    let id = settle(conn, "database", &drawn);
    let id = hex::encode(id.map_err(|error| conn.connector().named(&error))?);
    let path = dir.join(BOND);
    match std::fs::read_to_string(&path) {
        Ok(bound) if bound.trim() == id => Ok(()),
        Ok(_) => Err(StoreError::Foreign(format!(
            "the data directory {} belongs to another database than {}; give the right one, or \
             another --data directory",
            dir.display(),
            conn.connector().shown().display()
        ))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let written = durable::replace(&path, format!("{id}\n").as_bytes());
            written.map_err(StoreError::file("write", &path))
        }
        Err(error) => Err(StoreError::file("read", &path)(error)),
    }
}

/// Whether a data directory has ever been bound to a database.
pub(crate) fn is_bound(dir: &Path) -> bool {
    dir.join(BOND).is_file()
}
