//! Connections to PostgreSQL, for threads that may wait and for tasks that may not.
//!
//! The bytes are moved by a runtime of one thread that belongs to the link, so a caller needs no
//! runtime of its own and may stand in another one's.
//!
//! **Invariant:** nothing is waited for without end: every question has a patience, and a
//! connection whose answer came too late is not used again.

use super::tls::Encryption;
use super::url::DatabaseUrl;
use crate::error::{StoreError, malformed_id};
use std::error::Error as _;
use std::fmt::Display;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;
use thiserror::Error;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, NoTls, Row};

/// A value and its type, as every statement gets them: no statement is prepared by name, so that a
/// pooler between us and the server may hand each transaction to another connection.
pub(in crate::postgres) type Param<'a> = (&'a (dyn ToSql + Sync), Type);

/// What went wrong between us and the server.
#[derive(Debug, Error)]
pub(crate) enum LinkError {
    #[error("{}", sentence(.0))]
    Server(#[from] tokio_postgres::Error),
    #[error("the server did not answer within {} ms", .0.as_millis())]
    Late(Duration),
    #[error("{0}")]
    Told(String),
    #[error("{}", StoreError::Replaced)]
    Replaced,
    #[error("{0}")]
    Overtaken(String),
}

impl From<StoreError> for LinkError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Replaced => Self::Replaced,
            StoreError::Overtaken(why) => Self::Overtaken(why),
            other => Self::Told(other.to_string()),
        }
    }
}

impl LinkError {
    /// Whether the server says that a row is there already.
    pub(in crate::postgres) fn is_conflict(&self) -> bool {
        matches!(self, Self::Server(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION))
    }

    /// Whether the server could not be reached, or was about to go or to come.
    fn is_absence(&self) -> bool {
        match self {
            Self::Server(error) => error
                .code()
                .is_none_or(|code| matches!(code.code().get(..2), Some("08" | "53" | "57"))),
            Self::Late(_) => true,
            Self::Told(_) | Self::Replaced | Self::Overtaken(_) => false,
        }
    }

    /// Whether the server was reached and gave an answer that retrying will not change.
    pub(in crate::postgres) fn is_about_content(&self) -> bool {
        match self {
            Self::Server(error) => error.code().is_some_and(|code| {
                let class = code.code().get(..2).unwrap_or_default();
                matches!(class, "22" | "42" | "XX")
            }),
            _ => false,
        }
    }
}

/// The server's words, without the statement's values.
fn sentence(error: &tokio_postgres::Error) -> String {
    match (error.as_db_error(), error.source()) {
        (Some(said), _) => format!("{} ({})", said.message(), said.code().code()),
        (None, Some(cause)) => format!("{error}: {cause}"),
        (None, None) => error.to_string(),
    }
}

/// The id in a column; `named` says which row it is where the id cannot be read.
pub(in crate::postgres) fn id_in<const BYTES: usize>(
    row: &Row,
    at: usize,
    named: impl Display,
) -> Result<[u8; BYTES], LinkError> {
    let id: &[u8] = row.try_get(at)?;
    id.try_into().map_err(|_| LinkError::Told(malformed_id(named, id, BYTES)))
}

/// Makes connections to one database.
#[derive(Clone)]
pub(crate) struct Connector(Arc<Inner>);

struct Inner {
    url: DatabaseUrl,
    encryption: Option<Encryption>,
    handle: Handle,
    runtime: Mutex<Option<Runtime>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        let runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner).take();
        // May happen within another runtime, where waiting for this one is not allowed.
        if let Some(runtime) = runtime {
            runtime.shutdown_background();
        }
    }
}

impl Connector {
    /// Prepares to connect; does not connect yet.
    ///
    /// # Errors
    /// When the certificates to believe cannot be read, or no thread can be had.
    pub(crate) fn new(url: &DatabaseUrl) -> Result<Self, StoreError> {
        let encryption = url.tls().map(Encryption::new).transpose();
        let encryption = encryption.map_err(StoreError::Address)?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("postgres")
            .enable_all()
            .build()
            .map_err(|source| StoreError::Thread { name: "postgres", source })?;
        let handle = runtime.handle().clone();
        let runtime = Mutex::new(Some(runtime));
        Ok(Self(Arc::new(Inner { url: url.clone(), encryption, handle, runtime })))
    }

    /// Which database, without the password.
    pub(crate) fn shown(&self) -> PathBuf {
        PathBuf::from(self.0.url.to_string())
    }

    /// Turns an error into one that names the database.
    pub(crate) fn named(&self, error: &LinkError) -> StoreError {
        let (path, message) = (self.shown(), error.to_string());
        if let LinkError::Overtaken(why) = error {
            StoreError::Overtaken(why.clone())
        } else if matches!(error, LinkError::Replaced) {
            StoreError::Replaced
        } else if error.is_absence() {
            StoreError::Unreachable { path, message }
        } else {
            StoreError::Database { path, message }
        }
    }

    /// Connects; blocks the calling thread, wherever it stands.
    pub(crate) fn connect(&self, patience: Duration) -> Result<Conn, LinkError> {
        let client = self.wait(patience, self.open())?;
        Ok(Conn { client, connector: self.clone(), patience })
    }

    /// Connects, for a task.
    pub(in crate::postgres) async fn open(&self) -> Result<Client, LinkError> {
        let config = self.0.url.config();
        // The connection must belong to our runtime: the caller's may end first.
        match &self.0.encryption {
            Some(encryption) => {
                let (config, encryption) = (config.clone(), encryption.clone());
                let made = self.0.handle.spawn(async move { config.connect(encryption).await });
                let (client, connection) = made.await.map_err(|error| told(&error))??;
                self.0.handle.spawn(connection);
                Ok(client)
            }
            None => {
                let config = config.clone();
                let made = self.0.handle.spawn(async move { config.connect(NoTls).await });
                let (client, connection) = made.await.map_err(|error| told(&error))??;
                self.0.handle.spawn(connection);
                Ok(client)
            }
        }
    }

    /// Runs something beside, for as long as the link lives.
    pub(in crate::postgres) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.0.handle.spawn(work);
    }

    /// Waits for a future on the calling thread.
    pub(in crate::postgres) fn wait<T, E: Into<LinkError>>(
        &self,
        patience: Duration,
        future: impl Future<Output = Result<T, E>>,
    ) -> Result<T, LinkError> {
        let _timers = self.0.handle.enter();
        // A task may use so much of its turn before it has to yield, and this thread cannot: without the limit
        // lifted, whoever asks often enough within one task would wait for ever.
        let answer = block_on(tokio::task::unconstrained(tokio::time::timeout(patience, future)));
        answer.map_err(|_| LinkError::Late(patience))?.map_err(Into::into)
    }

    /// Within a task of any runtime: an answer in time, or none.
    pub(in crate::postgres) async fn in_time<T, E: Into<LinkError>>(
        &self,
        patience: Duration,
        future: impl Future<Output = Result<T, E>>,
    ) -> Result<T, LinkError> {
        let timed = {
            let _timers = self.0.handle.enter();
            tokio::time::timeout(patience, future)
        };
        timed.await.map_err(|_| LinkError::Late(patience))?.map_err(Into::into)
    }
}

fn told(error: &tokio::task::JoinError) -> LinkError {
    LinkError::Told(error.to_string())
}

/// A connection of a thread that may wait. After an error it should be dropped: the server then
/// rolls back whatever was begun.
pub(crate) struct Conn {
    client: Client,
    connector: Connector,
    patience: Duration,
}

/// What every writing transaction begins with. `LOCAL`, so that it holds with a pooler in between.
const BEGIN: &str = "BEGIN; SET LOCAL synchronous_commit = on; SET LOCAL lock_timeout = '5s'; \
                     SET LOCAL idle_in_transaction_session_timeout = '30s'";

impl Conn {
    pub(in crate::postgres) const fn connector(&self) -> &Connector {
        &self.connector
    }

    /// Waits longer or shorter from now on.
    pub(in crate::postgres) const fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// Runs statements without values.
    pub(in crate::postgres) fn run(&self, sql: &str) -> Result<(), LinkError> {
        self.connector.wait(self.patience, self.client.batch_execute(sql))
    }

    /// Runs a statement; says how many rows it touched.
    pub(in crate::postgres) fn execute(
        &self,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<u64, LinkError> {
        self.connector.wait(self.patience, self.client.execute_typed(sql, params))
    }

    /// Asks for rows.
    pub(in crate::postgres) fn query(
        &self,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, LinkError> {
        self.connector.wait(self.patience, self.client.query_typed(sql, params))
    }

    /// Asks for a row that may be there.
    pub(in crate::postgres) fn row(
        &self,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Option<Row>, LinkError> {
        Ok(self.query(sql, params)?.into_iter().next())
    }

    /// Begins a transaction that is durable when it is committed, and does not wait for ever.
    pub(in crate::postgres) fn begin(&self) -> Result<(), LinkError> {
        self.run(BEGIN)
    }

    /// Ends the transaction.
    pub(in crate::postgres) fn commit(&self) -> Result<(), LinkError> {
        self.run("COMMIT")
    }

    /// Makes a change in a transaction of its own; nothing is left of one that fails.
    pub(in crate::postgres) fn change<T>(
        &self,
        make: impl FnOnce(&Self) -> Result<T, LinkError>,
    ) -> Result<T, LinkError> {
        self.begin()?;
        let made = make(self).and_then(|made| self.commit().map(|()| made));
        if made.is_err() {
            // If this fails too, the connection is dead and the server has rolled back.
            let _ = self.run("ROLLBACK");
        }
        made
    }

    /// Whether the connection is gone.
    pub(in crate::postgres) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a future by parking the thread. Unlike a runtime's own way of waiting, this is allowed
/// everywhere: the future makes progress on the link's thread.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut cx = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut cx) {
            return value;
        }
        std::thread::park();
    }
}
