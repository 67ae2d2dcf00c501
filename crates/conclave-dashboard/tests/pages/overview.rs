//! The overview and its live figures.

use crate::fixture::scenes;
use crate::house::{HOUR_MS, House, NOW_MS, tenant_no};
use http::{Method, StatusCode};
use serde_json::Value as Json;
use std::sync::atomic::Ordering;

#[tokio::test]
async fn a_new_house_says_what_to_do() {
    let house = House::new();
    let page = house.visited_by("owner").await.get("/").await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(page.body.contains("Nothing has been decided yet"));
    assert!(page.body.contains("curl http://127.0.0.1:8420/v1/chat/completions"));
    assert!(!page.body.contains("<table class=\"list\""), "no empty table");
    let list = house.visited_by("owner").await.get("/decisions").await.body;
    assert!(list.contains("Nothing has been decided yet"));
}

#[tokio::test]
async fn the_figures_count_the_day() {
    let house = House::new();
    let add = |hours_ago: u64, told: &_| {
        house.archive.add(tenant_no(), NOW_MS - hours_ago * HOUR_MS, told)
    };
    add(40, &scenes::crisis());
    add(20, &scenes::ordinary());
    add(3, &scenes::written_again());
    add(2, &scenes::blocked());
    add(1, &scenes::safe_completion());
    house.archive.add(tenant_no() + 1, NOW_MS, &scenes::crisis());
    let mut browser = house.visited_by("owner").await;
    let figures = browser.get("/live").await;
    assert_eq!(figures.header("content-type"), "application/json");
    let figures: Json = serde_json::from_str(&figures.body).unwrap();
    for (name, value) in [
        ("decisions", "4"),
        ("delivered", "2"),
        ("delivered_share", "50.0%"),
        ("withheld", "2"),
        ("regenerated", "2"),
        ("regenerated_of", "50.0% of decisions"),
        ("crisis", "1"),
        ("entries", "12"),
        ("clock", "11:31:02"),
    ] {
        assert_eq!(figures[name], value, "{name}");
    }
    let page = browser.get("/").await.body;
    for hour in ["10:00: 0 delivered, 1 withheld", "08:00: 1 delivered, 0 withheld"] {
        assert!(page.contains(&format!("<title>{hour}</title>")), "{hour}");
    }
    assert!(page.contains("/decisions?outcome=safe_completion"));
}

#[tokio::test]
async fn every_place_for_a_figure_gets_one() {
    let house = House::new();
    house.archive.add(tenant_no(), NOW_MS, &scenes::ordinary());
    let mut browser = house.visited_by("owner").await;
    let figures: Json = serde_json::from_str(&browser.get("/live").await.body).unwrap();
    let page = browser.get("/").await.body;
    let places: Vec<_> =
        page.split("data-figure=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert!(places.len() >= 8, "{places:?}");
    for place in places {
        let value = figures[place].as_str().unwrap_or_else(|| panic!("no figure {place}"));
        assert!(page.contains(&format!("data-figure=\"{place}\">{value}<")), "{place}");
    }
    assert!(page.contains(&format!("data-newest=\"{}\"", figures["newest"].as_str().unwrap())));
}

#[tokio::test]
async fn beyond_a_thousand_decisions_it_says_what_was_counted() {
    let house = House::new();
    let told = scenes::written_again();
    for at in 0..1_200 {
        house.archive.add(tenant_no(), NOW_MS - at, &told);
    }
    let figures = house.visited_by("owner").await.get("/live").await;
    let figures: Json = serde_json::from_str(&figures.body).unwrap();
    assert_eq!(figures["decisions"], "1,200");
    assert_eq!(figures["regenerated"], "1,000");
    assert_eq!(figures["regenerated_of"], "among the latest 1,000");
}

#[tokio::test]
async fn each_page_asks_the_archive_as_little_as_it_can() {
    let house = House::new();
    let id = house.archive.add(tenant_no(), NOW_MS, &scenes::ordinary());
    let mut browser = house.visited_by("owner").await;
    let decision = format!("/decisions/{id}");
    for (path, questions) in
        [("/", 2), ("/live", 2), ("/decisions", 1), (&decision, 1), ("/login", 0)]
    {
        house.archive.asked.store(0, Ordering::Relaxed);
        browser.get(path).await;
        assert_eq!(house.archive.asked.load(Ordering::Relaxed), questions, "{path}");
    }
}

#[tokio::test]
async fn an_archive_that_does_not_answer_is_said_plainly() {
    let house = House::new();
    let id = house.archive.add(tenant_no(), NOW_MS, &scenes::ordinary());
    let mut browser = house.visited_by("owner").await;
    house.archive.broken.store(true, Ordering::Relaxed);
    for path in ["/", "/decisions", &format!("/decisions/{id}")] {
        let page = browser.get(path).await;
        assert_eq!(page.status, StatusCode::SERVICE_UNAVAILABLE, "{path}");
        assert!(page.body.contains("The archive does not answer"));
        assert!(
            !page.body.contains("the disk is gone"),
            "the cause stands in the log, not on the page"
        );
    }
    assert_eq!(browser.get("/live").await.status, StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn head_requests_are_answered() {
    let house = House::new();
    let mut browser = house.visited_by("owner").await;
    let head = browser.send(Method::HEAD, "/", &[], String::new()).await;
    assert_eq!((head.status, head.body.len()), (StatusCode::OK, 0));
}
