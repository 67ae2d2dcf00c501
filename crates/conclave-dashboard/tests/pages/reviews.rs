//! The queue: who sees what, who decides, and that a foreign form does nothing.

use crate::fixture::scenes::{escalated, hostile};
use crate::house::{House, NOW_MS, tenant_no};
use crate::markup::check;
use conclave_core::{AuditId, TenantId};
use conclave_engine::Governance;
use conclave_govern::{Issue, NewReview, ReviewKind, ReviewPriority};
use http::{Method, StatusCode};

async fn submitted(
    house: &House,
    kind: ReviewKind,
    community: Option<&str>,
    id: AuditId,
) -> String {
    let detail = "<script>alert(1)</script>".to_owned();
    let review = NewReview {
        kind,
        tenant: TenantId::new("default").unwrap(),
        content_type: "chat".into(),
        community: community.map(str::to_owned),
        others: vec![],
        issues: vec![Issue { code: "x".into(), detail }],
        priority: ReviewPriority::Urgent,
        audit_id: Some(id),
        author: None,
        subject: None,
        four_eyes: false,
    };
    house.office.submit(review).await.unwrap()
}

#[tokio::test]
async fn a_reviewer_claims_reads_and_decides() {
    let house = House::new();
    let id = house.archive.add(tenant_no(), NOW_MS, &hostile());
    let review = submitted(&house, ReviewKind::Escalation, None, id).await;
    let mut browser = house.visited_by("reviewer").await;
    assert_eq!(browser.get("/").await.header("location"), "/reviews", "nothing else is theirs");
    assert_eq!(browser.get("/decisions").await.status, StatusCode::SEE_OTHER);
    assert_eq!(browser.get("/live").await.status, StatusCode::UNAUTHORIZED);
    let list = browser.get("/reviews").await;
    check(&list);
    assert!(list.body.contains(&format!("/reviews/{review}")));
    let path = format!("/reviews/{review}");
    let page = browser.get(&path).await;
    check(&page);
    assert!(!page.body.contains("What is held"), "nobody has claimed it");
    assert!(house.reads.lock().unwrap().is_empty());
    let token = page.field("token");
    let answer = browser.post(&format!("{path}/claim"), &[("token", &token)]).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER);
    let page = browser.get(&path).await;
    check(&page);
    assert!(page.body.contains("What is held") && !page.body.contains("<script>alert"));
    assert_eq!(*house.reads.lock().unwrap(), [("reviewer".to_owned(), id)]);
    let claim = page.field("claim");
    let wrong = [("token", token.as_str()), ("claim", "99"), ("ruling", "approve")];
    let answer = browser.post(&format!("{path}/decide"), &wrong).await;
    assert_eq!(answer.status, StatusCode::CONFLICT);
    let right = [("token", token.as_str()), ("claim", claim.as_str()), ("ruling", "reject")];
    let answer = browser.post(&format!("{path}/decide"), &right).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.body);
    let page = browser.get(&path).await;
    check(&page);
    assert!(page.body.contains("Rejected") && !page.body.contains(">Claim<"));
}

#[tokio::test]
async fn a_form_from_elsewhere_claims_nothing() {
    let house = House::new();
    let id = house.archive.add(tenant_no(), NOW_MS, &escalated());
    let review = submitted(&house, ReviewKind::Escalation, None, id).await;
    let mut browser = house.visited_by("reviewer").await;
    let path = format!("/reviews/{review}/claim");
    let token = browser.get("/reviews").await.field("token");
    let foreign = [("origin", "https://evil.example")];
    let sent = browser.send(Method::POST, &path, &foreign, format!("token={token}")).await;
    assert_eq!(sent.status, StatusCode::FORBIDDEN);
    assert_eq!(browser.post(&path, &[("token", "00")]).await.status, StatusCode::FORBIDDEN);
    let page = browser.get(&format!("/reviews/{review}")).await;
    assert!(page.body.contains(">Claim<"), "still free");
}

#[tokio::test]
async fn what_belongs_to_a_community_is_for_its_elders_alone() {
    let house = House::new();
    let owner = conclave_engine::Caller {
        holder: "o".into(),
        tenant: TenantId::new("default").unwrap(),
        role: conclave_engine::KeyRole::Owner,
        person: None,
    };
    let office = &house.office;
    office.name_elder(&owner, "River People", "person:elder", "Ana").await.unwrap();
    let id = house.archive.add(tenant_no(), NOW_MS, &escalated());
    let review = submitted(&house, ReviewKind::ElderReview, Some("River People"), id).await;
    let path = format!("/reviews/{review}");
    for (name, sees) in
        [("reviewer", false), ("owner", true), ("admin", true), ("auditor", true), ("elder", true)]
    {
        let mut browser = house.visited_by(name).await;
        let page = browser.get(&path).await;
        assert_eq!(page.status == StatusCode::OK, sees, "{name}");
        let token = browser.get("/reviews").await.field("token");
        let claimed = browser.post(&format!("{path}/claim"), &[("token", &token)]).await;
        assert_eq!(claimed.status == StatusCode::SEE_OTHER, name == "elder", "{name}");
    }
    assert_eq!(house.reads.lock().unwrap().len(), 0, "claiming alone shows nothing");
}
