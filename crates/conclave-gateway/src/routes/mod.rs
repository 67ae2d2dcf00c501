//! Every route, in one table.

mod house;
mod people;
mod talk;

pub use house::health::OPENAPI;

use self::house::{decisions, health, keys, ledger, models, tenants, usage};
use self::people::{consents, protocols, reviews, subjects, users, webhooks};
use self::talk::{agents, chat, completions, embeddings, messages, moderations, responses, verify};
use crate::admission::pacing;
use crate::connection::framing;
use crate::error::{ApiError, Envelope, RefusedAs};
use crate::observation::refusals::Refusal;
use crate::observation::traced::trace_of;
use crate::state::Gateway;
use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use conclave_engine::trace::within;
use futures_util::FutureExt;
use http::{HeaderName, HeaderValue, Method, Uri};
use std::panic::AssertUnwindSafe;
use std::time::Instant;

/// The methods and paths that exist; a test holds the OpenAPI page to it.
pub const ROUTES: &[(&str, &str)] = &[
    ("post", "/v1/chat/completions"),
    ("post", "/v1/messages"),
    ("post", "/v1/messages/count_tokens"),
    ("post", "/v1/responses"),
    ("get", "/v1/responses/{id}"),
    ("post", "/v1/moderations"),
    ("post", "/v1/embeddings"),
    ("post", "/v1/completions"),
    ("post", "/v1/verify"),
    ("get", "/v1/agents"),
    ("get", "/v1/agents/{name}"),
    ("post", "/v1/agents/{name}/execute"),
    ("get", "/v1/agents/runs/{id}"),
    ("get", "/v1/models"),
    ("get", "/v1/models/{model}"),
    ("get", "/v1/decisions"),
    ("get", "/v1/decisions/{id}"),
    ("get", "/v1/decisions/{id}/explanation"),
    ("get", "/v1/decisions/{id}/receipt"),
    ("get", "/v1/users/{id}/drift"),
    ("get", "/ledger/checkpoint"),
    ("get", "/ledger/vkey"),
    ("get", "/ledger/tile/{path}"),
    ("get", "/ledger/tile/entries/{path}"),
    ("get", "/ledger/proof/consistency"),
    ("get", "/v1/subjects/{id}"),
    ("delete", "/v1/subjects/{id}"),
    ("get", "/v1/tenants"),
    ("post", "/v1/tenants"),
    ("get", "/v1/tenants/{id}/policy"),
    ("put", "/v1/tenants/{id}/policy"),
    ("get", "/v1/usage"),
    ("post", "/v1/consents"),
    ("get", "/v1/consents"),
    ("get", "/v1/consents/{id}"),
    ("delete", "/v1/consents/{id}"),
    ("get", "/v1/protocols"),
    ("get", "/v1/protocols/{community}"),
    ("put", "/v1/protocols/{community}"),
    ("put", "/v1/protocols/{community}/elders/{holder}"),
    ("delete", "/v1/protocols/{community}/elders/{holder}"),
    ("get", "/v1/reviews"),
    ("get", "/v1/reviews/{id}"),
    ("get", "/v1/reviews/{id}/result"),
    ("post", "/v1/reviews/{id}/claim"),
    ("post", "/v1/reviews/{id}/release"),
    ("post", "/v1/reviews/{id}/decide"),
    ("post", "/v1/webhooks"),
    ("get", "/v1/webhooks"),
    ("delete", "/v1/webhooks/{id}"),
    ("post", "/v1/webhooks/{id}/secret"),
    ("get", "/v1/webhooks/{id}/events"),
    ("post", "/v1/webhooks/{id}/events/{event}/resend"),
    ("post", "/v1/keys"),
    ("get", "/v1/keys"),
    ("delete", "/v1/keys/{id}"),
    ("post", "/v1/keys/{id}/rotate"),
    ("post", "/v1/tokens"),
    ("get", "/livez"),
    ("get", "/readyz"),
    ("get", "/health"),
    ("get", "/metrics"),
    ("get", "/openapi.json"),
];

/// The HTTP interface.
pub fn router(gateway: Gateway) -> Router {
    Router::new()
        .route("/v1/chat/completions", post(chat::complete))
        .route("/v1/messages", post(messages::create))
        .route("/v1/messages/count_tokens", post(messages::count_tokens))
        .route("/v1/responses", post(responses::create))
        .route("/v1/responses/{id}", get(responses::one))
        .route("/v1/moderations", post(moderations::create))
        .route("/v1/embeddings", post(embeddings::create))
        .route("/v1/completions", post(completions::create))
        .route("/v1/verify", post(verify::verify))
        .route("/v1/agents", get(agents::list))
        .route("/v1/agents/{name}", get(agents::one))
        .route("/v1/agents/{name}/execute", post(agents::execute))
        .route("/v1/agents/runs/{id}", get(agents::fetch))
        .route("/v1/models", get(models::list))
        .route("/v1/models/{model}", get(models::one))
        .route("/v1/decisions", get(decisions::list))
        .route("/v1/decisions/{id}", get(decisions::one))
        .route("/v1/decisions/{id}/explanation", get(decisions::explanation))
        .route("/v1/decisions/{id}/receipt", get(decisions::receipt))
        .route("/v1/users/{id}/drift", get(users::drift))
        .route("/ledger/checkpoint", get(ledger::checkpoint))
        .route("/ledger/vkey", get(ledger::vkey))
        .route("/ledger/tile/{*path}", get(ledger::tile))
        .route("/ledger/tile/entries/{*path}", get(ledger::entries))
        .route("/ledger/proof/consistency", get(ledger::consistency))
        .route("/v1/subjects/{id}", get(subjects::export).delete(subjects::erase))
        .route("/v1/tenants", get(tenants::list).post(tenants::enter))
        .route("/v1/tenants/{id}/policy", get(tenants::policy).put(tenants::set_policy))
        .route("/v1/usage", get(usage::usage))
        .merge(people_routes())
        .merge(keys::routes())
        .route("/livez", get(health::live))
        .route("/readyz", get(health::ready))
        .route("/health", get(health::health))
        .route("/metrics", get(health::metrics))
        .route("/openapi.json", get(health::openapi))
        .fallback(nothing_here)
        .method_not_allowed_fallback(async |uri: Uri| {
            ApiError::method_not_allowed().into_response_as(Envelope::at(uri.path()))
        })
        .layer(from_fn_with_state(gateway.clone(), observe))
        .with_state(gateway)
}

async fn nothing_here(uri: Uri) -> Response {
    let error = ApiError::not_found("There is nothing at this path; see /openapi.json.");
    error.into_response_as(Envelope::at(uri.path()))
}

/// What people agree to, lay down and decide, and who is told of it.
fn people_routes() -> Router<Gateway> {
    Router::new()
        .route("/v1/consents", post(consents::give).get(consents::list))
        .route("/v1/consents/{id}", get(consents::one).delete(consents::withdraw))
        .route("/v1/protocols", get(protocols::list))
        .route("/v1/protocols/{community}", get(protocols::one).put(protocols::put))
        .route(
            "/v1/protocols/{community}/elders/{holder}",
            put(protocols::name_elder).delete(protocols::remove_elder),
        )
        .route("/v1/reviews", get(reviews::list))
        .route("/v1/reviews/{id}", get(reviews::one))
        .route("/v1/reviews/{id}/result", get(reviews::result))
        .route("/v1/reviews/{id}/claim", post(reviews::claim))
        .route("/v1/reviews/{id}/release", post(reviews::release))
        .route("/v1/reviews/{id}/decide", post(reviews::decide))
        .route("/v1/webhooks", post(webhooks::create).get(webhooks::list))
        .route("/v1/webhooks/{id}", axum::routing::delete(webhooks::remove))
        .route("/v1/webhooks/{id}/secret", post(webhooks::secret))
        .route("/v1/webhooks/{id}/events", get(webhooks::events))
        .route("/v1/webhooks/{id}/events/{event}/resend", post(webhooks::resend))
}

/// Counts every request, names it, and records those refused before any decision.
async fn observe(State(gateway): State<Gateway>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let route = matched.as_ref().map_or("(none)", MatchedPath::as_str);
    let is_post = request.method() == Method::POST;
    let request_id = request_id(&gateway, &request);
    let envelope = Envelope::at(request.uri().path());
    let tenant = KnownTenant::of(&gateway, &request);
    let is_last = framing::is_last(request.headers());
    gateway.metrics().entered();
    // A bug in one request must not take its connection, or the answer, with it.
    let traced = is_post.then(|| trace_of(&gateway, request.headers())).flatten();
    let running = AssertUnwindSafe(within(traced, next.run(request))).catch_unwind();
    let (answered, standing) = pacing::watched(running).await;
    let mut response = answered.unwrap_or_else(|_| ApiError::internal().into_response_as(envelope));
    gateway.metrics().left();
    let status = response.status().as_u16();
    gateway.metrics().request(route, status, started.elapsed());
    let refused = response.extensions().get::<RefusedAs>().copied();
    if let Some(RefusedAs(code)) = refused {
        gateway.metrics().refusal(code);
    }
    if let Some(RefusedAs(code)) = refused
        && (is_post || matches!(status, 401 | 403))
    {
        let tenant = tenant.name();
        let refusal = Refusal { status, code, route: route.to_owned(), tenant };
        gateway.refusals().note(&gateway.engine(), refusal);
    }
    let headers = response.headers_mut();
    pacing::tell(standing, headers);
    if is_last {
        framing::close(headers);
    }
    if envelope == Envelope::Anthropic {
        // Anthropic's own name for it, which its SDKs show.
        headers.insert(HeaderName::from_static("request-id"), request_id.clone());
    }
    headers.insert(HeaderName::from_static("x-request-id"), request_id);
    headers.insert(http::header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// The caller's headers, kept so that their tenant is looked up only for a refusal.
struct KnownTenant {
    gateway: Gateway,
    headers: http::HeaderMap,
}

impl KnownTenant {
    fn of(gateway: &Gateway, request: &Request) -> Self {
        let mut headers = http::HeaderMap::new();
        for name in [http::header::AUTHORIZATION, HeaderName::from_static("x-api-key")] {
            if let Some(value) = request.headers().get(&name) {
                headers.insert(name, value.clone());
            }
        }
        Self { gateway: gateway.clone(), headers }
    }

    fn name(&self) -> Option<String> {
        let record = crate::admission::auth::identify(&self.gateway, &self.headers)?;
        Some(record.key.tenant.as_str().to_owned())
    }
}

/// The client's own request id if it is printable, else a new one.
fn request_id(gateway: &Gateway, request: &Request) -> HeaderValue {
    const LONGEST: usize = 128;
    let given = request.headers().get("x-request-id");
    if let Some(given) = given.filter(|id| id.len() <= LONGEST && id.to_str().is_ok()) {
        return given.clone();
    }
    let mut random = [0; 12];
    gateway.engine().entropy.fill(&mut random);
    HeaderValue::try_from(format!("req_{}", hex::encode(random)))
        .unwrap_or_else(|_| HeaderValue::from_static("req_unknown"))
}

/// Turns a handler's result into a response.
fn respond(result: Result<Response, ApiError>) -> Response {
    result.unwrap_or_else(IntoResponse::into_response)
}
