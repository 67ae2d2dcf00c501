//! Signing in and out.

use crate::house::{Browser, HOUR_MS, House, PASSWORD};
use http::{Method, StatusCode};
use std::sync::atomic::Ordering;

#[tokio::test]
async fn without_a_session_every_page_leads_to_the_form() {
    let house = House::new();
    let mut browser = house.browser();
    for (path, to) in [
        ("/", "/login"),
        ("/decisions", "/login?next=/decisions"),
        (
            "/decisions?outcome=blocked&crisis=1",
            "/login?next=/decisions%3Foutcome=blocked%26crisis=1",
        ),
        ("/decisions/0190", "/login?next=/decisions/0190"),
        ("/decisions/%2e%2e%2fevil", "/login"),
    ] {
        let answer = browser.get(path).await;
        assert_eq!(
            (answer.status, answer.header("location")),
            (StatusCode::SEE_OTHER, to),
            "{path}"
        );
    }
    assert_eq!(browser.get("/live").await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(house.archive.asked.load(Ordering::Relaxed), 0, "nothing was read");
}

/// What each route answers: to nobody, to those who only decide reviews, and to those who may look.
const DOORS: [(&str, &str, [u16; 3]); 15] = [
    ("GET", "/", [303, 303, 200]),
    ("GET", "/login", [200, 303, 303]),
    // Without the token of the form nothing is looked at.
    ("POST", "/login", [403, 403, 403]),
    ("POST", "/logout", [303, 403, 403]),
    ("GET", "/decisions", [303, 303, 200]),
    ("GET", "/decisions/0190", [303, 303, 404]),
    ("GET", "/reviews", [303, 200, 200]),
    ("GET", "/reviews/rev_0", [303, 404, 404]),
    ("POST", "/reviews/rev_0/claim", [303, 403, 403]),
    ("POST", "/reviews/rev_0/release", [303, 403, 403]),
    ("POST", "/reviews/rev_0/decide", [303, 403, 403]),
    ("GET", "/live", [401, 401, 200]),
    ("GET", "/receipt", [200, 200, 200]),
    ("GET", "/docs", [200, 200, 200]),
    ("GET", "/assets/none", [404, 404, 404]),
];

#[tokio::test]
async fn i11_every_page_is_open_to_its_roles_and_closed_to_all_others() {
    let house = House::new();
    let visitors =
        [("", 0), ("reviewer", 1), ("elder", 1), ("auditor", 2), ("admin", 2), ("owner", 2)];
    for (name, column) in visitors {
        for (method, path, expected) in DOORS {
            let mut browser = match name {
                "" => house.browser(),
                name => house.visited_by(name).await,
            };
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            let fields = "name=owner&password=x&token=";
            let origin = [("origin", "http://127.0.0.1:8420")];
            let body = if method == Method::POST { fields.to_owned() } else { String::new() };
            let answer = browser.send(method.clone(), path, &origin, body).await;
            assert_eq!(answer.status, expected[column], "{method} {path} for {name:?}");
        }
    }
    assert!(house.reads.lock().unwrap().is_empty(), "nobody's words were shown");
}

#[tokio::test]
async fn the_right_password_opens_and_leads_back() {
    let house = House::new();
    let mut browser = house.browser();
    let form = browser.get("/login?next=/decisions%3Foutcome=blocked").await;
    assert_eq!(form.field("next"), "/decisions?outcome=blocked");
    let token = form.field("token");
    let fields = [
        ("token", token.as_str()),
        ("name", "owner"),
        ("password", PASSWORD),
        ("next", "/decisions?outcome=blocked"),
    ];
    let answer = browser.post("/login", &fields).await;
    assert_eq!(
        (answer.status, answer.header("location")),
        (StatusCode::SEE_OTHER, "/decisions?outcome=blocked")
    );
    let cookies = answer.cookies();
    assert!(cookies[0].starts_with("conclave_session="), "{cookies:?}");
    assert!(cookies[0].ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{cookies:?}");
    assert_eq!(browser.jar["conclave_session"].len(), 64);
    assert!(!browser.jar.contains_key("conclave_form"), "the form's cookie is gone");
    assert_eq!(browser.get("/").await.status, StatusCode::OK);
    assert_eq!(browser.get("/login").await.header("location"), "/", "already signed in");
}

#[tokio::test]
async fn over_https_cookies_are_bound_to_the_host() {
    let house = House::served(true);
    let mut browser = house.visited_by("owner").await;
    assert!(browser.jar.contains_key("__Host-conclave_session"), "{:?}", browser.jar);
    assert_eq!(browser.get("/").await.status, StatusCode::OK);
    let mut plain = house.browser();
    plain.jar.insert("conclave_session".into(), browser.jar["__Host-conclave_session"].clone());
    assert_eq!(plain.get("/").await.status, StatusCode::SEE_OTHER, "a plain cookie opens nothing");
    let secure = browser.sign_in("owner", PASSWORD).await;
    assert!(secure.cookies().iter().all(|cookie| cookie.contains("; Secure")));
}

#[tokio::test]
async fn a_wrong_name_and_a_wrong_password_look_the_same() {
    let house = House::new();
    let mut pages = Vec::new();
    for (name, password) in [("owner", "wrong"), ("nobody", PASSWORD)] {
        let mut browser = house.browser();
        let answer = browser.sign_in(name, password).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN);
        assert!(!browser.jar.contains_key("conclave_session"));
        let token = answer.field("token");
        pages.push(answer.body.replace(&token, "").replace(&format!("value=\"{name}\""), ""));
    }
    assert!(pages[0].contains("The name or the password is wrong."));
    assert_eq!(pages[0], pages[1]);
    assert_eq!(house.people.asked.load(Ordering::Relaxed), 2, "an unknown name is checked too");
}

#[tokio::test]
async fn what_was_typed_comes_back_as_text() {
    let mut browser = House::new().browser();
    let answer = browser.sign_in("\"><script>alert(1)</script>", "x").await;
    assert!(!answer.body.contains("<script>alert"), "{}", answer.body);
    assert!(answer.body.contains("&#34;&#62;&#60;script&#62;"));
    assert!(!answer.body.contains("value=\"x\""), "a password never comes back");
}

#[tokio::test]
async fn a_role_without_business_here_stays_outside() {
    let house = House::new();
    let mut browser = house.browser();
    let answer = browser.sign_in("app", PASSWORD).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    assert!(answer.body.contains("may not look at the dashboard"));
    assert_eq!(browser.get("/").await.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn a_form_without_its_token_opens_nothing() {
    let house = House::new();
    let mut other = house.browser();
    let foreign = other.get("/login").await.field("token");
    let wrong = [String::new(), "zz".into(), "00".repeat(32), foreign];
    for token in wrong {
        let mut browser = house.browser();
        browser.get("/login").await;
        let fields = [("token", token.as_str()), ("name", "owner"), ("password", PASSWORD)];
        let answer = browser.post("/login", &fields).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{token}");
        assert!(!browser.jar.contains_key("conclave_session"));
    }
    assert_eq!(house.people.asked.load(Ordering::Relaxed), 0, "no password was looked at");
}

#[tokio::test]
async fn a_form_from_elsewhere_opens_nothing() {
    let house = House::new();
    for headers in [
        vec![],
        vec![("origin", "null")],
        vec![("origin", "http://evil.example")],
        vec![("origin", "http://127.0.0.1:8420"), ("sec-fetch-site", "cross-site")],
    ] {
        let mut browser = house.browser();
        let token = browser.get("/login").await.field("token");
        let body = format!("token={token}&name=owner&password=open+sesame");
        let answer = browser.send(Method::POST, "/login", &headers, body).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{headers:?}");
        assert!(answer.body.contains("not sent from a page of this dashboard"));
    }
    let mut browser = house.browser();
    let token = browser.get("/login").await.field("token");
    let body = format!("token={token}&name=owner&password=open+sesame");
    let own = [("origin", "null"), ("sec-fetch-site", "same-origin")];
    let answer = browser.send(Method::POST, "/login", &own, body).await;
    assert_eq!(
        answer.status,
        StatusCode::SEE_OTHER,
        "a browser that hides its origin but vouches for it"
    );
}

#[tokio::test]
async fn forms_of_any_form_are_refused_calmly() {
    let house = House::new();
    let origin = [("origin", "http://127.0.0.1:8420")];
    for body in ["", "name=owner", "%%%", "token=a&name=b&password=c&name=d", &"x=".repeat(50_000)]
    {
        let mut browser = house.browser();
        let answer = browser.send(Method::POST, "/login", &origin, body.into()).await;
        assert!(answer.status.is_client_error(), "{} for {:.20}", answer.status, body);
    }
}

async fn fail(browser: &mut Browser, name: &str) -> StatusCode {
    browser.sign_in(name, "wrong").await.status
}

#[tokio::test]
async fn five_wrong_passwords_lock_the_name_for_a_minute() {
    let house = House::new();
    let mut browser = house.browser();
    for name in ["owner", "nobody"] {
        for _ in 0..5 {
            assert_eq!(fail(&mut browser, name).await, StatusCode::FORBIDDEN);
        }
        let locked = browser.sign_in(name, PASSWORD).await;
        assert_eq!(locked.status, StatusCode::TOO_MANY_REQUESTS, "{name}");
        assert_eq!(locked.header("retry-after"), "60");
        assert!(locked.body.contains("Please wait 60 seconds."));
    }
    assert_eq!(house.people.asked.load(Ordering::Relaxed), 10, "a locked name is not looked at");
    assert_eq!(house.browser().sign_in("admin", PASSWORD).await.status, StatusCode::SEE_OTHER);
    house.clock.forward(59_999);
    assert_eq!(fail(&mut browser, "owner").await, StatusCode::TOO_MANY_REQUESTS);
    house.clock.forward(1);
    assert_eq!(browser.sign_in("owner", PASSWORD).await.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn a_session_ends_when_it_is_idle() {
    let house = House::new();
    let mut browser = house.visited_by("owner").await;
    house.clock.forward(11 * HOUR_MS);
    assert_eq!(browser.get("/").await.status, StatusCode::OK);
    house.clock.forward(11 * HOUR_MS);
    assert_eq!(browser.get("/live").await.status, StatusCode::OK);
    house.clock.forward(HOUR_MS);
    assert_eq!(browser.get("/live").await.status, StatusCode::UNAUTHORIZED, "polling is not use");
    assert_eq!(browser.get("/").await.header("location"), "/login");
}

#[tokio::test]
async fn signing_out_ends_the_session_itself() {
    let house = House::new();
    let mut browser = house.visited_by("owner").await;
    let mut stolen = browser.clone();
    let token = browser.get("/").await.field("token");
    for wrong in ["", "00"] {
        let answer = browser.post("/logout", &[("token", wrong)]).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN);
    }
    let body = format!("token={token}");
    let foreign =
        browser.send(Method::POST, "/logout", &[("origin", "http://evil.example")], body).await;
    assert_eq!(foreign.status, StatusCode::FORBIDDEN);
    assert_eq!(browser.get("/").await.status, StatusCode::OK, "still signed in");
    let answer = browser.post("/logout", &[("token", &token)]).await;
    assert_eq!(answer.header("location"), "/login");
    assert!(!browser.jar.contains_key("conclave_session"));
    assert_eq!(
        stolen.get("/").await.status,
        StatusCode::SEE_OTHER,
        "the id opens nothing any more"
    );
}

#[tokio::test]
async fn a_planted_session_id_is_not_taken_over() {
    let house = House::new();
    let mut browser = house.browser();
    browser.jar.insert("conclave_session".into(), "planted".into());
    browser.sign_in("owner", PASSWORD).await;
    assert_ne!(browser.jar["conclave_session"], "planted");
    let mut attacker = house.browser();
    attacker.jar.insert("conclave_session".into(), "planted".into());
    assert_eq!(attacker.get("/").await.status, StatusCode::SEE_OTHER);
}
