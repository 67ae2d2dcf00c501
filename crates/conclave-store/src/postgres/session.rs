//! A connection that comes back by itself, for work that is done now and then.

use super::link::{Conn, Connector, LinkError};
use crate::error::StoreError;
use std::time::Duration;

/// Holds a connection for as long as it works.
pub(crate) struct Session {
    connector: Connector,
    conn: Option<Conn>,
    patience: Duration,
}

impl Session {
    /// Does not connect yet.
    pub(crate) const fn new(connector: Connector, patience: Duration) -> Self {
        Self { connector, conn: None, patience }
    }

    /// Does something with the connection, after making one if need be.
    ///
    /// # Errors
    /// When the server cannot be reached or refuses.
    pub(crate) fn with<T>(
        &mut self,
        work: impl FnOnce(&Conn) -> Result<T, LinkError>,
    ) -> Result<T, StoreError> {
        let conn = match self.conn.take().filter(|conn| !conn.is_closed()) {
            Some(conn) => conn,
            None => {
                let made = self.connector.connect(self.patience);
                made.map_err(|error| self.connector.named(&error))?
            }
        };
        let done = work(&conn);
        // After an answer in time the connection is as good as before, whatever the answer was.
        if done.as_ref().err().is_none_or(|error| error.is_conflict() || error.is_about_content()) {
            self.conn = Some(conn);
        }
        done.map_err(|error| self.connector.named(&error))
    }
}
