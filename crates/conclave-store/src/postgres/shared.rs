//! What all replicas of one database must have in common.
//!
//! **Invariant:** a data directory writes to one database for ever: its numbers mean nothing in
//! another. And all replicas have one pepper, or keys and pseudonyms of one would be strange to the
//! others.

use super::link::{Conn, LinkError};
use crate::durable;
use crate::error::StoreError;
use crate::keys::Pepper;
use crate::publish::{Handover, KeyFile};
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

/// What is settled already; absent if nothing is.
fn settled(conn: &Conn, name: &str) -> Result<Option<Vec<u8>>, LinkError> {
    let row = conn.row("SELECT value FROM shared_fact WHERE name = $1", &[(&name, Type::TEXT)])?;
    Ok(row.map(|row| row.try_get(0)).transpose()?)
}

/// The first key of the log, by its own word.
pub(crate) fn first_key(conn: &Conn) -> Result<Option<String>, LinkError> {
    Ok(settled(conn, "ledger_key")?.map(|key| String::from_utf8_lossy(&key).into_owned()))
}

/// Checks that this directory signs with the key of the log; the first replica makes it.
pub(crate) fn agree_on_key(
    conn: &Conn,
    dir: &Path,
    make: impl FnOnce() -> Result<KeyFile, StoreError>,
) -> Result<KeyFile, StoreError> {
    let named = |error: LinkError| conn.connector().named(&error);
    let advice = || {
        StoreError::Foreign(format!(
            "checkpoints of {} are signed with another key than that of {}; copy the file \
             `ledger.key` from the data directory of another replica",
            conn.connector().shown().display(),
            dir.display()
        ))
    };
    let there = settled(conn, "ledger_key").map_err(named)?;
    if there.is_some() && !dir.join("ledger.key").is_file() {
        return Err(advice());
    }
    let file = make()?;
    let sql = "SELECT new_vkey FROM log_rotation ORDER BY seq DESC LIMIT 1";
    let rotated = conn.row(sql, &[]).map_err(named)?;
    let rotated = rotated.map(|row| row.try_get::<_, String>(0)).transpose();
    if let Some(in_force) = rotated.map_err(|error| named(error.into()))? {
        // Which of the keys in the file signs is then said by the log.
        let last = Handover { seq: 0, old: String::new(), new: in_force };
        return file.signers(&[last]).map(|_| file).map_err(|_| advice());
    }
    let ours = file.verifiers(&[]).first().map(ToString::to_string).unwrap_or_default();
    let theirs = settle(conn, "ledger_key", ours.as_bytes()).map_err(named)?;
    if theirs == ours.as_bytes() { Ok(file) } else { Err(advice()) }
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
