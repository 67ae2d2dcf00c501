//! Accounts and reservations of all replicas, one transaction a batch.
//!
//! **Invariant:** a reservation is durable before anybody hears that it was granted.
//!
//! **Invariant:** nothing is reserved for ever: what nobody settles is charged in full when its time is
//! over, and forgotten a day later.
//!
//! One thread takes everything that waits, reads the accounts concerned, does the sums in memory and
//! writes them back: whoever came meanwhile shares the next transaction, so that a single busy account is
//! no bottleneck.

mod sqlite;
mod tables;

pub(crate) use sqlite::{CHARGED_KEPT_MS, SqliteAccounts};
pub(crate) use tables::{
    AccountTables, Changes, PageRequest, ReservationRow, account_key, add_reservation, changes,
};

use crate::error::StoreError;
use conclave_core::MicroUsd;
use conclave_engine::Clock;
use conclave_money::{
    AccountBalance, AccountPage, Accounts, AccountsError, Crossing, ReservationOrder,
    ReserveOutcome, UnsettledReservation,
};
use futures_util::future::{BoxFuture, FutureExt};
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// How many requests may wait for the accounts.
const QUEUE_MAX: usize = 16_384;
/// How many of them one transaction takes.
const BATCH_MAX: usize = 512;
/// How many settlements wait while the database is away; what is beyond is charged in full and found
/// in the ledger later.
const LATE_MAX: usize = 65_536;
/// How often reservations are looked for whose time is over.
const TICK: Duration = Duration::from_secs(5);
/// How many of those are charged in one transaction.
const EXPIRED_MAX: u32 = 500;
/// After how many ticks old accounts are removed: every hour.
const PRUNE_TICKS: u32 = 720;
/// At which of them: some minutes after a start, when decisions that were still in the spool are in the
/// log, and have been found.
const PRUNE_TICK: u32 = 60;

type AnswerSender<T> = oneshot::Sender<Result<T, AccountsError>>;

/// A question that is answered beside the batches.
type TableQuery = Box<dyn FnOnce(&mut dyn AccountTables) + Send>;

enum Job {
    Reserve(ReservationOrder, AnswerSender<ReserveOutcome>),
    Settle(Settlement, Option<AnswerSender<Vec<Crossing>>>),
    Query(TableQuery),
    Expire(AnswerSender<()>),
    Stop,
}

#[derive(Clone, Debug)]
struct Settlement {
    id: [u8; 16],
    spent: MicroUsd,
    alerts: Vec<u8>,
}

/// The accounts as the engine asks for them.
pub(crate) struct StoredAccounts {
    jobs: SyncSender<Job>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl StoredAccounts {
    /// Starts the thread.
    ///
    /// # Errors
    /// When there is none to be had.
    pub(crate) fn start(
        tables: Box<dyn AccountTables>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        let (jobs, waiting) = sync_channel(QUEUE_MAX);
        let mut keeper = Keeper { tables, clock, late: VecDeque::new() };
        let thread = std::thread::Builder::new()
            .name("accounts".to_owned())
            .spawn(move || keeper.run(&waiting))
            .map_err(|source| StoreError::Thread { name: "accounts", source })?;
        Ok(Self { jobs, thread: Mutex::new(Some(thread)) })
    }

    /// Finishes what waits and ends the thread; calling it again does nothing.
    pub(crate) fn stop(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread else { return };
        let _ = self.jobs.send(Job::Stop);
        if thread.join().is_err() {
            tracing::error!("the thread of the accounts ended badly");
        }
    }

    /// Charges what is over now, instead of within seconds. Blocks.
    pub(crate) fn charge_expired(&self) {
        let (tell, answer) = oneshot::channel();
        if self.jobs.send(Job::Expire(tell)).is_ok() {
            let _ = answer.blocking_recv();
        }
    }

    fn send<'a, T: Send + 'a>(
        &self,
        job: Job,
        answer: oneshot::Receiver<Result<T, AccountsError>>,
    ) -> BoxFuture<'a, Result<T, AccountsError>> {
        let sent = self.jobs.try_send(job).map_err(|error| {
            AccountsError::Unreachable(match error {
                TrySendError::Full(_) => "too many requests wait for them".to_owned(),
                TrySendError::Disconnected(_) => "they are closed".to_owned(),
            })
        });
        async move {
            sent?;
            let closed = |_| AccountsError::Unreachable("they were closed".to_owned());
            answer.await.map_err(closed)?
        }
        .boxed()
    }

    fn query<'a, T: Send + 'static>(
        &self,
        ask: impl FnOnce(&mut dyn AccountTables) -> Result<T, StoreError> + Send + 'static,
    ) -> BoxFuture<'a, Result<T, AccountsError>> {
        let (tell, answer) = oneshot::channel();
        let query: TableQuery = Box::new(move |tables| {
            // Whoever asked may have gone.
            let answer = ask(tables);
            let unreachable = |error: StoreError| AccountsError::Unreachable(error.to_string());
            let _ = tell.send(answer.map_err(unreachable));
        });
        self.send(Job::Query(query), answer)
    }
}

impl Accounts for StoredAccounts {
    fn reserve(
        &self,
        order: ReservationOrder,
    ) -> BoxFuture<'_, Result<ReserveOutcome, AccountsError>> {
        let (tell, answer) = oneshot::channel();
        self.send(Job::Reserve(order, tell), answer)
    }

    fn settle(
        &self,
        id: [u8; 16],
        spent: MicroUsd,
        alerts: Vec<u8>,
    ) -> BoxFuture<'_, Result<Vec<Crossing>, AccountsError>> {
        let (tell, answer) = oneshot::channel();
        self.send(Job::Settle(Settlement { id, spent, alerts }, Some(tell)), answer)
    }

    fn unsettled(
        &self,
        before_ms: u64,
        at_most: u32,
    ) -> BoxFuture<'_, Result<Vec<UnsettledReservation>, AccountsError>> {
        self.query(move |tables| tables.unsettled(before_ms, at_most))
    }

    fn balances(
        &self,
        tenant: u64,
        now_ms: u64,
        at_most: u32,
    ) -> BoxFuture<'_, Result<Vec<AccountBalance>, AccountsError>> {
        self.query(move |tables| tables.balances(tenant, now_ms, at_most))
    }
}

/// The thread's own side.
struct Keeper {
    tables: Box<dyn AccountTables>,
    clock: Arc<dyn Clock>,
    /// Settlements that the database did not take yet.
    late: VecDeque<Settlement>,
}

/// What one transaction does.
#[derive(Default)]
struct Batch {
    orders: Vec<(ReservationOrder, AnswerSender<ReserveOutcome>)>,
    settlements: Vec<(Settlement, Option<AnswerSender<Vec<Crossing>>>)>,
    queries: Vec<TableQuery>,
    expires: Vec<AnswerSender<()>>,
    stops: bool,
}

impl Batch {
    fn add(&mut self, job: Job) {
        match job {
            Job::Reserve(order, tell) => self.orders.push((order, tell)),
            Job::Settle(settlement, tell) => self.settlements.push((settlement, tell)),
            Job::Query(query) => self.queries.push(query),
            Job::Expire(tell) => self.expires.push(tell),
            Job::Stop => self.stops = true,
        }
    }

    fn len(&self) -> usize {
        self.orders.len() + self.settlements.len() + self.queries.len()
    }

    fn wanted(&self) -> PageRequest {
        let lines = self.orders.iter().flat_map(|(order, _)| &order.lines);
        let settled = self.settlements.iter().map(|(settlement, _)| settlement.id);
        PageRequest {
            accounts: lines.map(|line| line.key.clone()).collect(),
            reservations: self.orders.iter().map(|(order, _)| order.id).chain(settled).collect(),
        }
    }
}

impl Keeper {
    fn run(&mut self, waiting: &Receiver<Job>) {
        let mut ticks = 0_u32;
        let mut ticked_at = None::<Instant>;
        loop {
            let mut batch = Batch::default();
            match waiting.recv_timeout(TICK) {
                Ok(job) => batch.add(job),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            while batch.len() < BATCH_MAX
                && !batch.stops
                && let Ok(job) = waiting.try_recv()
            {
                batch.add(job);
            }
            let (stops, expires) = (batch.stops, std::mem::take(&mut batch.expires));
            self.run_batch(batch);
            if stops {
                return;
            }
            if !expires.is_empty() || ticked_at.is_none_or(|at| at.elapsed() >= TICK) {
                ticks = ticks.wrapping_add(1);
                ticked_at = Some(Instant::now());
                self.charge_and_prune(ticks);
            }
            for tell in expires {
                let _ = tell.send(Ok(()));
            }
        }
    }

    fn run_batch(&mut self, mut batch: Batch) {
        let room = BATCH_MAX.saturating_sub(batch.len()).min(self.late.len());
        batch.settlements.extend(self.late.drain(..room).map(|late| (late, None)));
        let queries = std::mem::take(&mut batch.queries);
        if batch.len() > 0 {
            self.change_page(batch);
        }
        queries.into_iter().for_each(|query| query(&mut *self.tables));
    }

    fn change_page(&mut self, batch: Batch) {
        let (mut granted, mut crossed) = (Vec::new(), Vec::new());
        let done = self.tables.change_page(&batch.wanted(), &mut |page: &mut AccountPage| {
            // Money that comes back is there for whoever asks in the same breath.
            let settle = |(one, _): &(Settlement, _)| page.settle(one.id, one.spent, &one.alerts);
            crossed = batch.settlements.iter().map(settle).collect();
            granted = batch.orders.iter().map(|(order, _)| page.reserve(order)).collect();
        });
        match done {
            Ok(()) => {
                for ((_, tell), answer) in batch.orders.into_iter().zip(granted) {
                    let _ = tell.send(Ok(answer));
                }
                for ((_, tell), answer) in batch.settlements.into_iter().zip(crossed) {
                    let answer = answer.map_err(AccountsError::Unreadable);
                    match tell {
                        Some(tell) => drop(tell.send(answer)),
                        None => drop(answer.inspect_err(|error| tracing::error!(%error))),
                    }
                }
            }
            Err(error) => self.fail(batch, &AccountsError::Unreachable(error.to_string())),
        }
    }

    /// Nothing was granted; what was to be settled is kept for later.
    fn fail(&mut self, batch: Batch, error: &AccountsError) {
        tracing::warn!(%error, "money can be neither reserved nor settled");
        for (_, tell) in batch.orders {
            let _ = tell.send(Err(error.clone()));
        }
        for (settlement, tell) in batch.settlements {
            if self.late.len() < LATE_MAX {
                self.late.push_back(settlement);
            }
            let _ = tell.map(|tell| tell.send(Err(error.clone())));
        }
    }

    /// Charges reservations whose time is over, and removes what nobody asks for any more.
    fn charge_and_prune(&mut self, ticks: u32) {
        let now_ms = self.clock.now_ms();
        let charged = self.tables.expired(now_ms, EXPIRED_MAX).and_then(|ids| {
            if !ids.is_empty() {
                tracing::warn!(requests = ids.len(), "what nobody settled is charged in full");
                let reservations = ids.iter().copied().collect();
                let wanted = PageRequest { reservations, ..PageRequest::default() };
                self.tables.change_page(&wanted, &mut |page: &mut AccountPage| {
                    page.unreadable.values().for_each(|error| tracing::error!(%error));
                    ids.iter().for_each(|id| page.expire(*id, now_ms));
                })?;
            }
            if ticks % PRUNE_TICKS == PRUNE_TICK { self.tables.prune(now_ms) } else { Ok(()) }
        });
        if let Err(error) = charged {
            tracing::warn!(%error, "what nobody settled could not be charged");
        }
    }
}
