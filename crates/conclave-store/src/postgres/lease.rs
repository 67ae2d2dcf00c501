//! The right to write under a replica's name.
//!
//! **Invariant:** two processes never append under one name. A batch renews the lease in its own
//! transaction, and one that cannot is not written.
//!
//! A process that ended badly leaves a lease behind. Its successor in the same directory of the same
//! machine takes it over at once, because the directory's lock proves that the other is gone; a copy of
//! the directory is somebody else and has to wait until the lease ends, which it does not while the
//! original lives.
//!
//! **Invariant:** of two processes that pass for one holder, the one that came last has the lease. It
//! counts the writers of the name, and the earlier one is told that it was overtaken.

use super::link::{Conn, Connector, LinkError};
use super::session::Session;
use crate::error::StoreError;
use conclave_engine::Entropy;
use conclave_ledger::sha256;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
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
#[derive(Clone, Debug)]
pub(crate) struct Lease {
    replica: [u8; 8],
    holder: [u8; 32],
    /// Tells this process from others that look the same.
    claim: [u8; 16],
    /// The number of this writer; 0 until the lease was taken for the first time.
    writer: Arc<AtomicI64>,
}

impl Lease {
    /// The claim of a data directory, whose lock must be held.
    ///
    /// # Errors
    /// When the directory cannot be looked at.
    pub(crate) fn of(
        dir: &Path,
        replica: [u8; 8],
        entropy: &dyn Entropy,
    ) -> Result<Self, StoreError> {
        let file = std::fs::metadata(dir).map_err(StoreError::file("read", dir))?;
        let mut claim = [0; 16];
        entropy.fill(&mut claim);
        let boot = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let (device, inode) = (file.dev().to_be_bytes(), file.ino().to_be_bytes());
        let holder = sha256(&[b"conclave.lease.v1", &device, &inode, &boot]);
        Ok(Self { replica, holder, claim, writer: Arc::default() })
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
            if renewed || self.was_taken() || began.elapsed() > WAIT_MAX {
                return Err(StoreError::Overtaken(self.refusal()));
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
        if self.claim(conn)? { Ok(()) } else { Err(LinkError::Overtaken(self.refusal())) }
    }

    /// Gives the name free, for whoever continues in another place.
    pub(super) fn give_back(&self, conn: &Conn) -> Result<(), LinkError> {
        let sql = "DELETE FROM replica_lease WHERE replica = $1 AND holder = $2 AND claim = $3";
        let values = [
            (&self.replica.as_slice() as _, Type::BYTEA),
            (&self.holder.as_slice() as _, Type::BYTEA),
            (&self.claim.as_slice() as _, Type::BYTEA),
        ];
        conn.execute(sql, &values).map(|_| ())
    }

    fn claim(&self, conn: &Conn) -> Result<bool, LinkError> {
        // A database that was put back knows an earlier writer than the one who has the name; from there
        // on it goes on with this one.
        let sql = "INSERT INTO replica_lease AS l (replica, holder, until, claim, writer)
                   VALUES ($1, $2, clock_timestamp() + make_interval(secs => $3), $4,
                           greatest($5, 1))
                   ON CONFLICT (replica) DO UPDATE SET holder = $2, until = excluded.until, claim = $4,
                       writer = CASE WHEN l.claim = $4 THEN greatest(l.writer, $5)
                                     ELSE greatest(l.writer + 1, $5) END
                   WHERE (l.holder = $2 OR l.until < clock_timestamp())
                     AND ($5 = 0 OR l.claim = $4 OR l.writer < $5)
                   RETURNING writer";
        let mine = self.writer.load(Ordering::Acquire);
        let values = [
            (&self.replica.as_slice() as _, Type::BYTEA),
            (&self.holder.as_slice() as _, Type::BYTEA),
            (&LEASE_SECONDS as _, Type::FLOAT8),
            (&self.claim.as_slice() as _, Type::BYTEA),
            (&mine as _, Type::INT8),
        ];
        let Some(row) = conn.row(sql, &values)? else { return Ok(false) };
        self.writer.store(row.try_get(0)?, Ordering::Release);
        Ok(true)
    }

    /// Whether this process has had the lease.
    fn was_taken(&self) -> bool {
        self.writer.load(Ordering::Acquire) > 0
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
        let lease = &self.lease;
        self.session.with(|conn| lease.renew(conn))
    }

    /// Gives the name free.
    ///
    /// # Errors
    /// When the server cannot be reached: then it is free soon anyway.
    pub(crate) fn stop(&mut self) -> Result<(), StoreError> {
        let lease = &self.lease;
        self.session.with(|conn| lease.give_back(conn))
    }
}
