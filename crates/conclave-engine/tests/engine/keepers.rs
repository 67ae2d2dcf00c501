//! Keepers of consent, culture and money that say what a test wants.

use conclave_core::{MicroUsd, TenantId};
use conclave_engine::{
    GovernError, Governance, Record, RecordChange, RecordKey, RecordKind, Records, RecordsInMemory,
};
use conclave_govern::{ConsentAsk, ConsentState, CulturalAsk, CulturalFinding, NewReview};
use conclave_money::{
    AccountBalance, Accounts, AccountsError, Crossing, ReservationOrder, ReserveOutcome,
    UnsettledReservation,
};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use serde_json::json;
use std::sync::{Arc, Mutex};

/// Says what it was told to say, and remembers what it was asked.
pub struct Keeper {
    pub consent: Mutex<Result<ConsentState, GovernError>>,
    pub finding: Mutex<Result<CulturalFinding, GovernError>>,
    pub panics: bool,
    /// Whether every community has elders.
    pub elders: bool,
    pub asked: Mutex<Vec<ConsentAsk>>,
    pub looked: Mutex<Vec<CulturalAsk>>,
    pub reviews: Mutex<Vec<NewReview>>,
    pub records: Arc<RecordsInMemory>,
}

impl Keeper {
    pub fn granting() -> Arc<Self> {
        Arc::new(Self::new())
    }

    pub fn new() -> Self {
        Self {
            consent: Mutex::new(Ok(ConsentState::Granted { record: "c-1".into() })),
            finding: Mutex::new(Ok(CulturalFinding::Clear)),
            panics: false,
            elders: true,
            asked: Mutex::default(),
            looked: Mutex::default(),
            reviews: Mutex::default(),
            records: Arc::new(RecordsInMemory::default()),
        }
    }

    /// People decide a review, and say this about it.
    pub async fn rule(&self, review: &str, state: &str, data: serde_json::Value) {
        let key = key_of(review);
        let version = self.records.get(key.clone()).await.unwrap().unwrap().version;
        self.put(key, version, state, data).await;
    }

    /// People decide a review.
    pub async fn decide(&self, review: &str, state: &str, edited: Option<serde_json::Value>) {
        let key = key_of(review);
        let version = self.records.get(key.clone()).await.unwrap().unwrap().version;
        self.put(key, version, state, json!({"edited": edited})).await;
    }

    async fn put(&self, key: RecordKey, version: u64, state: &str, data: serde_json::Value) {
        let record = Record {
            key,
            version,
            state: state.into(),
            owner: "x".into(),
            rank: 0,
            due_ms: None,
            changed_ms: 1,
            subject: None,
            data,
        };
        self.records.put(vec![RecordChange { record, entry: None }]).await.unwrap();
    }
}

fn key_of(review: &str) -> RecordKey {
    let tenant = TenantId::new("default").unwrap();
    RecordKey { kind: RecordKind::Review, tenant, id: review.to_owned() }
}

impl Governance for Keeper {
    fn consent<'a>(
        &'a self,
        _: &'a TenantId,
        ask: ConsentAsk,
    ) -> BoxFuture<'a, Result<ConsentState, GovernError>> {
        self.asked.lock().unwrap().push(ask);
        assert!(!self.panics, "told to");
        ready(self.consent.lock().unwrap().clone()).boxed()
    }

    fn look<'a>(
        &'a self,
        _: &'a TenantId,
        ask: CulturalAsk,
    ) -> BoxFuture<'a, Result<CulturalFinding, GovernError>> {
        self.looked.lock().unwrap().push(ask);
        ready(self.finding.lock().unwrap().clone()).boxed()
    }

    fn has_elders<'a>(
        &'a self,
        _: &'a TenantId,
        _: &'a str,
    ) -> BoxFuture<'a, Result<bool, GovernError>> {
        ready(Ok(self.elders)).boxed()
    }

    fn submit(&self, review: NewReview) -> BoxFuture<'_, Result<String, GovernError>> {
        async move {
            let id = {
                let mut reviews = self.reviews.lock().unwrap();
                reviews.push(review);
                format!("r-{}", reviews.len())
            };
            self.put(key_of(&id), 0, "pending", json!({})).await;
            Ok(id)
        }
        .boxed()
    }
}

/// Accounts that do not answer.
pub struct AccountsAway;

fn away<'a, T: Send + 'a>() -> BoxFuture<'a, Result<T, AccountsError>> {
    ready(Err(AccountsError::Unreachable("away".into()))).boxed()
}

impl Accounts for AccountsAway {
    fn reserve(&self, _: ReservationOrder) -> BoxFuture<'_, Result<ReserveOutcome, AccountsError>> {
        away()
    }

    fn settle(
        &self,
        _: [u8; 16],
        _: MicroUsd,
        _: Vec<u8>,
    ) -> BoxFuture<'_, Result<Vec<Crossing>, AccountsError>> {
        away()
    }

    fn unsettled(
        &self,
        _: u64,
        _: u32,
    ) -> BoxFuture<'_, Result<Vec<UnsettledReservation>, AccountsError>> {
        away()
    }

    fn balances(
        &self,
        _: u64,
        _: u64,
        _: u32,
    ) -> BoxFuture<'_, Result<Vec<AccountBalance>, AccountsError>> {
        away()
    }
}
