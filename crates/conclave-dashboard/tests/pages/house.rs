//! A dashboard with every port in memory, and a browser without a screen.

use crate::fixture::archive::MemoryArchive;
use axum::Router;
use axum::body::Body;
use conclave_core::{AuditId, TenantId};
use conclave_dashboard::{Account, Dashboard, Ports, SignIn, router};
use conclave_engine::{Clock, Entropy, KeyRole, KeyedSubjects, RecordsInMemory};
use conclave_ledger::tenant_number;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::BodyExt;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tower::ServiceExt;

pub const NOW_MS: u64 = 1_794_742_262_123;
pub const HOUR_MS: u64 = 3_600_000;
pub const PASSWORD: &str = "open sesame";
const HOST: &str = "127.0.0.1:8420";

pub struct FakeClock(AtomicU64);

impl FakeClock {
    pub fn forward(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::Relaxed);
    }
}

impl Clock for FakeClock {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Default)]
struct Counting(AtomicU64);

impl Entropy for Counting {
    fn fill(&self, bytes: &mut [u8]) {
        let next = self.0.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        bytes.iter_mut().zip(next.iter().cycle()).for_each(|(byte, next)| *byte = *next);
    }
}

/// Everybody has the same password, and the role their name says.
#[derive(Default)]
pub struct People {
    pub asked: AtomicUsize,
}

impl SignIn for People {
    fn sign_in(&self, name: &str, password: &str) -> BoxFuture<'_, Option<Account>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let role = match name {
            "owner" => Some(KeyRole::Owner),
            "admin" => Some(KeyRole::Admin),
            "auditor" => Some(KeyRole::Auditor),
            "app" => Some(KeyRole::App),
            "reviewer" => Some(KeyRole::Reviewer),
            "elder" => Some(KeyRole::Elder),
            _ => None,
        };
        let role = role.filter(|_| password == PASSWORD);
        ready(role.map(|role| Account { name: name.into(), tenant: tenant(), role })).boxed()
    }
}

fn tenant() -> TenantId {
    TenantId::new("default").unwrap()
}

pub fn tenant_no() -> u64 {
    tenant_number(tenant().as_str())
}

pub struct House {
    pub router: Router,
    pub archive: Arc<MemoryArchive>,
    pub clock: Arc<FakeClock>,
    pub people: Arc<People>,
    pub reads: Arc<Mutex<Vec<(String, AuditId)>>>,
    /// What waits for people.
    pub office: Arc<conclave_people::People>,
}

impl House {
    pub fn new() -> Self {
        Self::served(false)
    }

    pub fn served(https: bool) -> Self {
        let archive = Arc::new(MemoryArchive::default());
        let clock = Arc::new(FakeClock(AtomicU64::new(NOW_MS)));
        let people = Arc::new(People::default());
        let reads = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&reads);
        let office = Arc::new(conclave_people::People::new(
            Arc::new(RecordsInMemory::default()),
            Arc::new(KeyedSubjects([9; 32])),
            clock.clone(),
            Arc::new(Counting::default()),
            [9; 32],
        ));
        let dashboard = Dashboard::new(Ports {
            sign_in: people.clone(),
            archive: archive.clone(),
            clock: clock.clone(),
            entropy: Arc::new(Counting::default()),
            on_transcript_read: Arc::new(move |account, id| {
                noted.lock().unwrap().push((account.name.clone(), id));
            }),
            people: Some(office.clone()),
            appeals: None,
            https,
        });
        Self { router: router(dashboard), archive, clock, people, reads, office }
    }

    pub fn browser(&self) -> Browser {
        Browser { router: self.router.clone(), jar: BTreeMap::new() }
    }

    /// A browser in which this person is signed in.
    pub async fn visited_by(&self, name: &str) -> Browser {
        let mut browser = self.browser();
        let answer = browser.sign_in(name, PASSWORD).await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.body);
        browser
    }
}

pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: String,
}

impl Answer {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The value of a hidden field.
    pub fn field(&self, name: &str) -> String {
        let start = format!("name=\"{name}\" value=\"");
        let (_, rest) = self.body.split_once(&start).unwrap_or(("", "\""));
        rest.split('"').next().unwrap().to_owned()
    }

    pub fn cookies(&self) -> Vec<&str> {
        let all = self.headers.get_all(header::SET_COOKIE).iter();
        all.map(|value| value.to_str().unwrap()).collect()
    }
}

/// Keeps cookies and names its origin, as browsers do.
#[derive(Clone)]
pub struct Browser {
    router: Router,
    pub jar: BTreeMap<String, String>,
}

impl Browser {
    pub async fn get(&mut self, path: &str) -> Answer {
        self.send(Method::GET, path, &[], String::new()).await
    }

    /// Sends a form from one of our own pages.
    pub async fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let origin = format!("http://{HOST}");
        self.send(Method::POST, path, &[("origin", &origin)], form(fields)).await
    }

    pub async fn send(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: String,
    ) -> Answer {
        let cookies: Vec<_> =
            self.jar.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut request = Request::builder().method(method).uri(path).header(header::HOST, HOST);
        request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        if !cookies.is_empty() {
            request = request.header(header::COOKIE, cookies.join("; "));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self.router.clone().oneshot(request.body(Body::from(body)).unwrap());
        let (parts, body) = response.await.unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let answer = Answer {
            status: parts.status,
            headers: parts.headers,
            body: String::from_utf8(body.to_vec()).unwrap(),
        };
        self.keep(&answer);
        answer
    }

    pub async fn sign_in(&mut self, name: &str, password: &str) -> Answer {
        let token = self.get("/login").await.field("token");
        self.post("/login", &[("token", &token), ("name", name), ("password", password)]).await
    }

    fn keep(&mut self, answer: &Answer) {
        for cookie in answer.cookies() {
            let (name, value) = cookie.split(';').next().unwrap().split_once('=').unwrap();
            if value.is_empty() {
                self.jar.remove(name);
            } else {
                self.jar.insert(name.to_owned(), value.to_owned());
            }
        }
    }
}

fn form(fields: &[(&str, &str)]) -> String {
    let escape = |text: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric();
        let each =
            |byte: u8| if plain(byte) { char::from(byte).into() } else { format!("%{byte:02X}") };
        text.bytes().map(each).collect::<String>()
    };
    let pairs: Vec<_> =
        fields.iter().map(|(name, value)| format!("{name}={}", escape(value))).collect();
    pairs.join("&")
}
