//! The page for the person: what a link that opens nothing shows, in the language of the browser.

use crate::house::House;
use crate::markup::check;
use http::{Method, StatusCode};

#[tokio::test]
async fn a_link_that_opens_nothing_says_so_in_the_browsers_language() {
    let mut browser = House::new().browser();
    for path in ["/why/nothing", "/why/%3Cscript%3E"] {
        let page = browser.get(path).await;
        check(&page);
        assert_eq!(page.status, StatusCode::NOT_FOUND, "{path}");
        assert!(page.header("content-security-policy").contains("default-src 'none'"));
        assert_eq!(page.header("x-robots-tag"), "noindex, nofollow");
        assert_eq!(page.header("referrer-policy"), "no-referrer");
        let asked = [("accept-language", "fr, ja;q=0.9, en;q=0.8")];
        let page = browser.send(Method::GET, path, &asked, String::new()).await;
        assert!(page.body.contains("<html lang=\"ja\">") && page.body.contains("使えません"));
    }
    let huge = format!("concern=other&words={}", "x".repeat(1 << 20));
    let sent = browser.send(Method::POST, "/why/nothing", &[], huge).await;
    assert_eq!(sent.status, StatusCode::NOT_FOUND, "whatever is sent there");
}
