//! Decisions whose review was never opened, because a process died or the records were away.

use crate::fakes::Scripted;
use crate::holding::{TOLD, governed, keyed};
use crate::office::caller;
use crate::turns::{KIND, turn};
use conclave_core::{Outcome, TenantId};
use conclave_engine::{Caller, GovernError, Governance, KeyRole, review_id};
use conclave_govern::{ConsentAsk, ConsentState, CulturalAsk, CulturalFinding, NewReview};
use conclave_people::{MissingReviews, People, ReviewFilter};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::Arc;

/// Knows everything and opens no review.
struct Dying(Arc<People>);

impl Governance for Dying {
    fn consent<'a>(
        &'a self,
        tenant: &'a TenantId,
        ask: ConsentAsk,
    ) -> BoxFuture<'a, Result<ConsentState, GovernError>> {
        Governance::consent(&*self.0, tenant, ask)
    }

    fn look<'a>(
        &'a self,
        tenant: &'a TenantId,
        ask: CulturalAsk,
    ) -> BoxFuture<'a, Result<CulturalFinding, GovernError>> {
        self.0.look(tenant, ask)
    }

    fn submit(&self, _: NewReview) -> BoxFuture<'_, Result<String, GovernError>> {
        std::future::ready(Err(GovernError("it died".into()))).boxed()
    }

    fn has_elders<'a>(
        &'a self,
        tenant: &'a TenantId,
        community: &'a str,
    ) -> BoxFuture<'a, Result<bool, GovernError>> {
        self.0.has_elders(tenant, community)
    }
}

#[tokio::test]
async fn what_nobody_was_asked_about_is_found_and_asked_about_once() {
    let (mut house, office) = governed(Scripted::saying(&[Ok(KIND)])).await;
    house.engine.governance = Some(Arc::new(Dying(office.people.clone())));
    let reply = house.engine.deliver(keyed(TOLD)).await.unwrap();
    assert_eq!((reply.decision.outcome, reply.review_id), (Outcome::Held, None));
    house.engine.deliver(keyed("My day was long.")).await.unwrap();
    let archive = house.engine.archive.clone();
    let missing = MissingReviews::new(archive, office.people.clone(), office.clock.clone());
    assert_eq!(missing.open_missing().await, Ok(0), "who has just decided still asks");
    office.pass(20_000);
    assert_eq!(missing.open_missing().await, Ok(1));
    assert_eq!(missing.open_missing().await, Ok(0));
    let elder = Caller { tenant: turn("").tenant, ..caller("e1", KeyRole::Elder) };
    let filter = ReviewFilter { limit: 9, ..ReviewFilter::default() };
    let open = office.people.reviews(&elder, &filter).await.unwrap();
    assert_eq!(open.len(), 1);
    assert_eq!(open[0].id, review_id(reply.decision.id));
    assert!(open[0].review.four_eyes && open[0].review.author.as_deref() == Some("app"));
    let again =
        MissingReviews::new(house.engine.archive, office.people.clone(), office.clock.clone());
    assert_eq!(again.open_missing().await, Ok(0), "another house finds it asked about");
}
