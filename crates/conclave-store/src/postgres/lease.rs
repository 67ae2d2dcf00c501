//! The right to write under a replica's name.
//!
//! **Invariant:** two processes never append under one name. A batch renews the lease in its own
//! transaction, and one that cannot is not written.
//!
//! A process that ended badly leaves a lease behind. Its successor in the same directory of the same
//! machine takes it over at once, because the directory's lock proves that the other is gone; a copy of
//! the directory is somebody else and has to wait until the lease ends, which it does not while the
//! original lives.

use super::link::{Conn, Connector, LinkError};
use super::session::Session;
use crate::error::StoreError;
use conclave_ledger::sha256;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio_postgres::types::Type;

/// How long a lease lasts without being renewed.
const LEASE_SECONDS: f64 = 15.0;
/// How long a lease of somebody who may be gone is waited for.
const WAIT_MAX: Duration = Duration::from_secs(20);
/// How long renewing may take.
const BEAT_PATIENCE: Duration = Duration::from_secs(2);
/// How often it is looked at meanwhile.
const WAIT_STEP: Duration = Duration::from_millis(500);

/// A replica's name and who claims it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lease {
    replica: [u8; 8],
    holder: [u8; 32],
}

impl Lease {
    /// The claim of a data directory, whose lock must be held.
    ///
    /// # Errors
    /// When the directory cannot be looked at.
    pub(crate) fn of(dir: &Path, replica: [u8; 8]) -> Result<Self, StoreError> {
        let lock = dir.join("lock");
        let file = std::fs::metadata(&lock).map_err(StoreError::file("read", &lock))?;
        let boot = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let (device, inode) = (file.dev().to_be_bytes(), file.ino().to_be_bytes());
        Ok(Self { replica, holder: sha256(&[b"conclave.lease.v1", &device, &inode, &boot]) })
    }

    pub(super) const fn replica(&self) -> [u8; 8] {
        self.replica
    }

    /// Takes the lease; waits for one whose holder does not renew it.
    pub(super) fn take(&self, conn: &Conn) -> Result<(), StoreError> {
        let named = |error: LinkError| conn.connector().named(&error);
        let (began, mut first) = (Instant::now(), None);
        loop {
            if self.claim(conn).map_err(named)? {
                return Ok(());
            }
            // One that is renewed while we look has a holder who lives.
            let until = self.until(conn).map_err(named)?;
            let renewed = until != *first.get_or_insert(until);
            if renewed || began.elapsed() > WAIT_MAX {
                return Err(StoreError::Foreign(self.refusal()));
            }
            std::thread::park_timeout(WAIT_STEP);
        }
    }

    fn until(&self, conn: &Conn) -> Result<Option<i64>, LinkError> {
        let sql = "SELECT (extract(epoch FROM until) * 1000)::bigint FROM replica_lease
                   WHERE replica = $1";
        let row = conn.row(sql, &[(&self.replica.as_slice(), Type::BYTEA)])?;
        Ok(row.map(|row| row.try_get(0)).transpose()?)
    }

    /// Renews the lease within a transaction.
    pub(super) fn renew(&self, conn: &Conn) -> Result<(), LinkError> {
        if self.claim(conn)? { Ok(()) } else { Err(LinkError::Told(self.refusal())) }
    }

    /// Gives the name free, for whoever continues in another place.
    pub(super) fn give_back(&self, conn: &Conn) -> Result<(), LinkError> {
        let sql = "DELETE FROM replica_lease WHERE replica = $1 AND holder = $2";
        let values = [
            (&self.replica.as_slice() as _, Type::BYTEA),
            (&self.holder.as_slice() as _, Type::BYTEA),
        ];
        conn.execute(sql, &values).map(|_| ())
    }

    fn claim(&self, conn: &Conn) -> Result<bool, LinkError> {
        let sql = "INSERT INTO replica_lease AS l (replica, holder, until)
                   VALUES ($1, $2, clock_timestamp() + make_interval(secs => $3))
                   ON CONFLICT (replica) DO UPDATE SET holder = $2, until = excluded.until
                   WHERE l.holder = $2 OR l.until < clock_timestamp()";
        let values = [
            (&self.replica.as_slice() as _, Type::BYTEA),
            (&self.holder.as_slice() as _, Type::BYTEA),
            (&LEASE_SECONDS as _, Type::FLOAT8),
        ];
        Ok(conn.execute(sql, &values)? == 1)
    }

    fn refusal(&self) -> String {
        format!(
            "another conclave writes to this database as replica {}; a data directory must not be \
             copied to a second one: stop the other, or remove the file `replica` in the copy",
            hex::encode(self.replica)
        )
    }
}

/// Keeps the lease while nothing is written.
pub(crate) struct Heart {
    session: Session,
    lease: Lease,
}

impl Heart {
    pub(crate) const fn new(connector: Connector, lease: Lease) -> Self {
        Self { session: Session::new(connector, BEAT_PATIENCE), lease }
    }

    /// Renews the lease.
    ///
    /// # Errors
    /// When the server cannot be reached, or somebody else has the name.
    pub(crate) fn beat(&mut self) -> Result<(), StoreError> {
        let lease = self.lease;
        self.session.with(|conn| lease.renew(conn))
    }

    /// Gives the name free.
    ///
    /// # Errors
    /// When the server cannot be reached: then it is free soon anyway.
    pub(crate) fn stop(&mut self) -> Result<(), StoreError> {
        let lease = self.lease;
        self.session.with(|conn| lease.give_back(conn))
    }
}
