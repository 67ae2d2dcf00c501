//! Files, and how the router stands beside others.

use crate::house::House;
use axum::Router;
use http::{Method, StatusCode};

#[tokio::test]
async fn files_are_kept_by_their_digest() {
    let house = House::new();
    let mut browser = house.browser();
    let page = browser.get("/login").await.body;
    let (_, link) = page.split_once("rel=\"stylesheet\" href=\"").unwrap();
    let link = link.split('"').next().unwrap();
    let style = browser.get(link).await;
    assert_eq!(style.status, StatusCode::OK);
    assert_eq!(style.header("content-type"), "text/css; charset=utf-8");
    assert!(style.header("cache-control").contains("immutable"));
    assert!(style.body.contains("prefers-color-scheme: dark"));
    let tag = style.header("etag").to_owned();
    let again = browser.send(Method::GET, link, &[("if-none-match", &tag)], String::new()).await;
    assert_eq!((again.status, again.body.len()), (StatusCode::NOT_MODIFIED, 0));
    let undated = browser.get("/assets/style.css?v=old").await;
    assert_eq!(undated.header("cache-control"), "no-cache");
    for (name, kind) in [
        ("live.js", "text/javascript; charset=utf-8"),
        ("receipt.js", "text/javascript; charset=utf-8"),
        ("icon.svg", "image/svg+xml"),
    ] {
        assert_eq!(browser.get(&format!("/assets/{name}")).await.header("content-type"), kind);
    }
    for name in ["none", "..%2fCargo.toml", "style.css%00"] {
        assert_eq!(browser.get(&format!("/assets/{name}")).await.status, StatusCode::NOT_FOUND);
    }
}

#[tokio::test]
async fn a_receipt_can_be_checked_by_anybody_and_is_sent_nowhere() {
    let house = House::new();
    let answer = house.browser().get("/receipt").await;
    assert_eq!(answer.status, StatusCode::OK);
    let page = answer.body;
    let (_, script) = page.split_once("<script src=\"").unwrap();
    assert!(script.starts_with("/assets/receipt.js?v="), "{page}");
    assert_eq!(page.matches("<script").count(), 1, "no script stands in the page itself");
    assert!(page.contains("<noscript>") && page.contains("ledger receipt --check"));
    assert!(!page.contains("<form"), "without the script a form would send what was pasted");
}

#[tokio::test]
async fn the_reference_is_for_anybody_and_needs_no_script() {
    let house = House::new();
    let answer = house.browser().get("/docs").await;
    assert_eq!(answer.status, StatusCode::OK);
    let page = answer.body;
    assert!(!page.contains("<script") && !page.contains("style=\""), "no script, no style");
    for shown in ["/v1/chat/completions", "id=\"createChatCompletion\"", "id=\"shape-Error\""] {
        assert!(page.contains(shown), "{shown}");
    }
    assert!(!page.contains("**"), "what matters is marked, not starred");
    let outside = page.matches("href=\"http").count() + page.matches("src=\"http").count();
    assert_eq!(outside, 0, "nothing leads outside");
}

#[tokio::test]
async fn it_can_be_merged_with_a_router_that_has_a_fallback() {
    let house = House::new();
    let api = Router::new().fallback(async || (StatusCode::NOT_FOUND, "the api answers"));
    let merged = House { router: api.merge(house.router.clone()), ..house };
    let mut browser = merged.browser();
    assert_eq!(browser.get("/v1/nothing").await.body, "the api answers");
    assert_eq!(browser.get("/").await.status, StatusCode::SEE_OTHER);
    assert_eq!(browser.post("/decisions", &[]).await.status, StatusCode::METHOD_NOT_ALLOWED);
}
