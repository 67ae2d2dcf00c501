//! Requests for vectors: permitted, paid for and recorded, but not judged.

use crate::fakes::Scripted;
use crate::money::{Kept, kept, settle_tasks};
use crate::office::{caller, office};
use crate::turns::{KIND, turn};
use conclave_core::{Candidate, GenerationFailure, GuardCode, KeyId, MicroUsd, Outcome};
use conclave_engine::{
    Caller, DeliverError, Embedded, Embedding, KeyRole, Model, ModelDirectory, ModelError,
    ModelRequest, OfferedModel, Turn,
};
use conclave_govern::BudgetScope;
use conclave_ledger::Value;
use conclave_money::BudgetRefusal;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Map, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A model that turns every text into the same vector, or fails.
struct Embedder {
    asked: AtomicUsize,
    failure: Option<GenerationFailure>,
}

impl Model for Embedder {
    fn generate(&self, _: ModelRequest) -> BoxFuture<'_, Result<Candidate, ModelError>> {
        panic!("nothing is written here")
    }

    fn embed(
        &self,
        _: Arc<Map<String, serde_json::Value>>,
        _: Duration,
    ) -> BoxFuture<'_, Option<Result<Embedded, ModelError>>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let answer = match self.failure {
            Some(failure) => Err(ModelError::new(failure, "told to")),
            None => {
                let vectors = vec![Embedding::Numbers(vec![0.5])];
                Ok(Embedded { vectors, input_tokens: 7 })
            }
        };
        std::future::ready(Some(answer)).boxed()
    }
}

struct One(Arc<Embedder>);

impl ModelDirectory for One {
    fn find(&self, name: &str) -> Option<OfferedModel> {
        (name == "scripted").then(|| OfferedModel {
            model: self.0.clone(),
            provider: "test".into(),
            input_price: MicroUsd(1_000_000),
            output_price: MicroUsd(2_000_000),
        })
    }

    fn names(&self) -> Vec<(String, Arc<str>)> {
        vec![("scripted".into(), "test".into())]
    }
}

fn embedding(
    policy: serde_json::Value,
    failure: Option<GenerationFailure>,
) -> (Kept, Arc<Embedder>) {
    let mut kept = kept(Scripted::saying(&[Ok(KIND)]), policy);
    let model = Arc::new(Embedder { asked: AtomicUsize::new(0), failure });
    kept.house.engine.models = Arc::new(One(model.clone()));
    (kept, model)
}

fn texts(text: &str) -> Turn {
    let body = json!({"model": "scripted", "input": text});
    let body = Arc::new(body.as_object().unwrap().clone());
    Turn { key: Some(KeyId::new("app").unwrap()), body, ..turn(text) }
}

#[tokio::test]
async fn vectors_are_recorded_counted_and_settled() {
    let (kept, _) = embedding(json!({"daily_budget_usd": 1}), None);
    let vectors = kept.house.engine.embed(texts("The river in winter.")).await.unwrap();
    assert_eq!(vectors.embedded.unwrap().input_tokens, 7);
    let decision = &vectors.reply.decision;
    assert_eq!((decision.outcome, decision.cost), (Outcome::Delivered, MicroUsd(7)));
    settle_tasks().await;
    let balance = kept.balance(BudgetScope::Tenant);
    assert_eq!((balance.spent, balance.reserved), (7, 0));
    let leaf = kept.house.ledger.leaves().remove(0).draft;
    let text = |key| leaf.public.get(key).and_then(Value::as_str).map(str::to_owned);
    assert_eq!(text("agent").as_deref(), Some("embeddings"));
    assert_eq!(text("key").as_deref(), Some("app"));
    assert_eq!(leaf.public.get("tokens_in").and_then(Value::as_u64), Some(7));
}

#[tokio::test]
async fn a_limit_refuses_vectors_before_a_model_is_asked_and_an_unseen_end_costs_the_most() {
    let (kept, model) = embedding(json!({"daily_budget_usd": 0.000_1}), None);
    let refused = kept.house.engine.embed(texts(&"river ".repeat(100))).await.err().unwrap();
    assert!(
        matches!(refused, DeliverError::Unpaid(BudgetRefusal::LineExceeded(_), _)),
        "{refused}"
    );
    assert_eq!(model.asked.load(Ordering::Relaxed), 0);
    let late = Some(GenerationFailure::Timeout);
    let (kept, _) = embedding(json!({"daily_budget_usd": 1}), late);
    let vectors = kept.house.engine.embed(texts("The river in winter.")).await.unwrap();
    assert_eq!(vectors.reply.decision.outcome, Outcome::Failed);
    assert!(vectors.reply.decision.cost > MicroUsd(7), "{:?}", vectors.reply.decision.cost);
    settle_tasks().await;
    let balance = kept.balance(BudgetScope::Tenant);
    assert_eq!((balance.spent, balance.reserved), (vectors.reply.decision.cost.0, 0));
}

#[tokio::test]
async fn a_model_that_turns_nothing_into_vectors_gives_the_money_back() {
    let kept = kept(Scripted::saying(&[Ok(KIND)]), json!({"daily_budget_usd": 1}));
    let refused = kept.house.engine.embed(texts("The river.")).await.err().unwrap();
    assert!(matches!(refused, DeliverError::UnknownModel(_)), "{refused}");
    settle_tasks().await;
    let balance = kept.balance(BudgetScope::Tenant);
    assert_eq!((balance.spent, balance.reserved), (0, 0));
}

#[tokio::test]
async fn what_needs_consent_or_belongs_to_a_community_is_not_sent() {
    let policy = json!({"require_consent_for_agents": ["embeddings"]});
    let (mut kept, model) = embedding(policy, None);
    let office = office();
    let people = &office.people;
    kept.house.engine.governance = Some(people.clone());
    let vectors = kept.house.engine.embed(texts("The river in winter.")).await.unwrap();
    assert_eq!(vectors.reply.decision.refusal, Some(GuardCode::ConsentRequired));
    let (mut kept, model_too) = embedding(json!({}), None);
    let owner = Caller { tenant: turn("").tenant, ..caller("o", KeyRole::Owner) };
    let elder = Caller { holder: "e1".into(), role: KeyRole::Elder, ..owner.clone() };
    people.name_elder(&owner, "River People", "e1", "Ana").await.unwrap();
    let protocol = json!({"community": "River People",
        "terms": [{"spellings": ["churinga"], "sacred": true}]});
    people.lay_down(&elder, serde_json::from_value(protocol).unwrap(), None).await.unwrap();
    kept.house.engine.governance = Some(people.clone());
    let told = texts("And then they carried the churinga to the cave.");
    let vectors = kept.house.engine.embed(told).await.unwrap();
    assert_eq!(vectors.reply.decision.outcome, Outcome::Blocked);
    assert!(vectors.embedded.is_none() && vectors.reply.review_id.is_none());
    assert_eq!(model.asked.load(Ordering::Relaxed), 0);
    assert_eq!(model_too.asked.load(Ordering::Relaxed), 0);
}
