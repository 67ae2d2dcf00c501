//! The list of decisions.

use crate::fixture::scenes;
use crate::house::{House, NOW_MS, tenant_no};
use http::StatusCode;

fn listed(html: &str) -> Vec<String> {
    let links = html.split("<a href=\"/decisions/").skip(1);
    links.map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
}

fn older(html: &str) -> Option<String> {
    let (_, rest) = html.split_once("rel=\"next\" href=\"")?;
    Some(rest.split('"').next().unwrap().replace("&#38;", "&"))
}

#[tokio::test]
async fn pages_show_every_decision_once_newest_first() {
    let house = House::new();
    let told = scenes::ordinary();
    let mut ids: Vec<_> =
        (0..123).map(|at| house.archive.add(tenant_no(), NOW_MS + at, &told).to_string()).collect();
    ids.reverse();
    let mut browser = house.visited_by("owner").await;
    let (mut seen, mut next, mut pages) = (Vec::new(), Some("/decisions".to_owned()), 0);
    while let Some(address) = next {
        let page = browser.get(&address).await;
        assert_eq!(page.status, StatusCode::OK);
        assert_eq!(page.body.contains("Back to the newest"), pages > 0);
        seen.extend(listed(&page.body));
        next = older(&page.body);
        pages += 1;
    }
    assert_eq!((seen, pages), (ids, 3));
}

#[tokio::test]
async fn filters_narrow_and_stay_while_paging() {
    let house = House::new();
    for at in 0..60 {
        house.archive.add(tenant_no(), NOW_MS + at, &scenes::blocked());
        house.archive.add(tenant_no(), NOW_MS + at, &scenes::ordinary());
        house.archive.add(tenant_no(), NOW_MS + at, &scenes::crisis());
    }
    let mut browser = house.visited_by("owner").await;
    for (query, count, next) in [
        ("outcome=blocked", 60, "outcome=blocked&before="),
        ("outcome=delivered&action=flag", 60, "outcome=delivered&action=flag&before="),
        ("crisis=1", 60, "crisis=1&before="),
        ("outcome=blocked&crisis=1", 0, ""),
        ("action=hold", 0, ""),
        ("outcome=&action=&crisis=", 180, "before="),
    ] {
        let mut address = Some(format!("/decisions?{query}"));
        let mut found = 0;
        while let Some(path) = address {
            let page = browser.get(&path).await;
            found += listed(&page.body).len();
            address = older(&page.body);
            assert!(address.as_ref().is_none_or(|a| a.contains(next)), "{address:?}");
        }
        assert_eq!(found, count, "{query}");
    }
    let page = browser.get("/decisions?outcome=blocked&crisis=1").await.body;
    assert!(page.contains("No decision fits this filter."));
    assert!(
        page.contains("<option value=\"blocked\" selected>")
            && page.contains("value=\"1\" checked")
    );
}

#[tokio::test]
async fn people_in_crisis_are_found_far_back() {
    let house = House::new();
    let far = house.archive.add(tenant_no(), NOW_MS - 2_000, &scenes::crisis());
    for at in 0..1_500 {
        house.archive.add(tenant_no(), NOW_MS + at, &scenes::ordinary());
    }
    let mut browser = house.visited_by("owner").await;
    let first = browser.get("/decisions?crisis=1").await.body;
    assert_eq!(listed(&first).len(), 0);
    assert!(
        first.contains("No decision fits this filter so far.")
            && first.contains("Searched back to")
    );
    let second = browser.get(&older(&first).unwrap()).await.body;
    assert_eq!(listed(&second), [far.to_string()]);
    assert_eq!(older(&second), None);
}

#[tokio::test]
async fn a_filter_that_does_not_exist_is_refused() {
    let house = House::new();
    let mut browser = house.visited_by("owner").await;
    for query in
        ["outcome=lost", "action=%3Cscript%3E", "crisis=yes", "before=12", "outcome=a&outcome=b"]
    {
        let page = browser.get(&format!("/decisions?{query}")).await;
        assert_eq!(page.status, StatusCode::BAD_REQUEST, "{query}");
    }
    assert_eq!(browser.get("/decisions?unknown=1").await.status, StatusCode::OK);
}

#[tokio::test]
async fn other_tenants_are_not_listed() {
    let house = House::new();
    house.archive.add(tenant_no() + 1, NOW_MS, &scenes::ordinary());
    for who in ["owner", "admin", "auditor"] {
        let page = house.visited_by(who).await.get("/decisions").await.body;
        assert_eq!(listed(&page).len(), 0, "{who}");
    }
}
