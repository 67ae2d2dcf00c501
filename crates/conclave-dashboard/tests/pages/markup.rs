//! Checks that hold for every page.

use crate::fixture::scenes::every_kind;
use crate::house::{Answer, House, NOW_MS, tenant_no};
use std::collections::BTreeSet;

const VOID: [&str; 4] = ["meta", "link", "input", "br"];

/// Fails unless the page is well formed, keeps to its own policy and can be read by machines.
pub fn check(page: &Answer) {
    let html = &page.body;
    let mut open = Vec::new();
    let mut ids = BTreeSet::new();
    for tag in tags(html) {
        let name = tag.trim_start_matches('/').split([' ', '\n', '>', '/']).next().unwrap();
        if tag.starts_with('!') || VOID.contains(&name) || tag.ends_with('/') {
            continue;
        }
        if tag.starts_with('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "closes what is not open, in\n{html}");
            continue;
        }
        open.push(name.to_owned());
        if let Some(id) = attribute(tag, "id") {
            assert!(ids.insert(id.to_owned()), "the id {id} stands twice");
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
    for forbidden in [" style=", " onclick", " onerror", " onload", "javascript:", "http-equiv"] {
        assert!(!in_tags(html, forbidden), "{forbidden} in a tag");
    }
    assert_eq!(html.matches("<h1").count(), 1);
    for (what, times) in
        [("<html lang=\"en\">", 1), ("<main ", 1), ("<title>", 1), ("class=\"skip\"", 1)]
    {
        let found = html.matches(what).count();
        assert!(found >= times, "{what} is missing");
    }
    let hidden = |c: char| {
        (c.is_control() && c != '\n' && c != '\t') || "\u{202e}\u{2066}\u{200b}\u{feff}".contains(c)
    };
    assert_eq!(html.chars().find(|c| hidden(*c)), None, "something invisible is in the page");
}

fn tags(html: &str) -> impl Iterator<Item = &str> {
    html.split('<').skip(1).map(|rest| rest.split('>').next().unwrap())
}

fn in_tags(html: &str, text: &str) -> bool {
    tags(html).any(|tag| tag.contains(text))
}

fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
    rest.split('"').next()
}

#[tokio::test]
async fn every_page_is_well_formed() {
    let house = House::new();
    check(&house.browser().get("/login").await);
    check(&house.browser().get("/receipt").await);
    check(&house.browser().get("/docs").await);
    let mut empty = house.visited_by("owner").await;
    for path in ["/", "/decisions", "/decisions/nothing", "/decisions?outcome=nothing"] {
        check(&empty.get(path).await);
    }
    let scenes = every_kind();
    let ids: Vec<_> = scenes
        .iter()
        .zip(0..)
        .map(|(told, at)| house.archive.add(tenant_no(), NOW_MS - at, told))
        .collect();
    for who in ["owner", "auditor"] {
        let mut browser = house.visited_by(who).await;
        for path in ["/", "/decisions", "/decisions?crisis=1", "/decisions?outcome=blocked"] {
            check(&browser.get(path).await);
        }
        for id in &ids {
            let page = browser.get(&format!("/decisions/{id}")).await;
            assert_eq!(page.status, 200);
            check(&page);
        }
    }
}

#[tokio::test]
async fn every_answer_carries_the_headers() {
    let house = House::new();
    let mut outside = house.browser();
    let mut inside = house.visited_by("owner").await;
    let style = "/assets/style.css";
    let answers = [
        outside.get("/").await,
        outside.get("/login").await,
        outside.get("/receipt").await,
        outside.get("/docs").await,
        outside.get("/live").await,
        outside.post("/login", &[]).await,
        outside.post("/logout", &[]).await,
        outside.get(style).await,
        outside.get("/assets/none").await,
        inside.get("/").await,
        inside.get("/live").await,
        inside.get("/decisions").await,
        inside.get("/decisions/none").await,
    ];
    for answer in &answers {
        let policy = answer.header("content-security-policy");
        for rule in [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src 'self'",
            "connect-src 'self'",
            "frame-ancestors 'none'",
            "form-action 'self'",
            "base-uri 'none'",
            "require-trusted-types-for 'script'",
        ] {
            assert!(policy.split(';').any(|part| part.trim() == rule), "{rule}: {policy}");
        }
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert_eq!(answer.header("referrer-policy"), "no-referrer");
        assert_eq!(answer.header("access-control-allow-origin"), "");
    }
    let cached: Vec<_> = answers.iter().map(|a| a.header("cache-control") != "no-store").collect();
    assert_eq!(
        cached.iter().filter(|cached| **cached).count(),
        2,
        "the stylesheet and the reference are kept"
    );
}
