//! Every route in one table, and what is done around each request: it is named, counted and traced, and its
//! refusal recorded. What a route does is in the folders beside: [`talk`] asks for a judgement, [`people`] is
//! about what persons decide, [`house`] about the house itself.
//!
//! **Invariant:** a connection ends with a request that came in pieces. Such a request may have said a length
//! as well, which the server below us drops unseen, as the standard has it; a proxy before us that believed
//! the length would take the rest for part of it, and we for the next request.

mod house;
mod people;
mod query;
mod talk;

pub use house::health::OPENAPI;

use self::house::{decisions, health, keys, ledger, models, tenants, usage};
use self::people::{appeals, consents, protocols, reviews, subjects, users, webhooks};
use self::talk::{agents, chat, completions, embeddings, messages, moderations, responses, verify};
use crate::admission::entrance::identify_caller;
use crate::admission::rates::tell_limits;
use crate::error::{ApiError, Envelope, RefusalCode};
use crate::observation::refusals::RequestRefusal;
use crate::state::Gateway;
use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::MethodRouter;
use conclave_engine::trace::{Trace, TraceContext, within};
use futures_util::FutureExt;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Anthropic's own name for it, which its SDKs show.
const ANTHROPIC_REQUEST_ID: HeaderName = HeaderName::from_static("request-id");
const REQUEST_ID_BYTES_MAX: usize = 128;
const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACE_STATE: HeaderName = HeaderName::from_static("tracestate");

/// A method and a path that exist, and who answers there.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// In lower case, as the description of the interface has it.
    pub method: &'static str,
    /// With its parameters in braces; `{path}` stands for the rest, slashes and all.
    pub path: &'static str,
    answer: fn() -> MethodRouter<Gateway>,
}

/// Makes [`ROUTES`]: a method, a path and its handler in each row, each said once.
macro_rules! routes {
    ($($method:ident $path:literal => $handler:path,)+) => {
        /// Every route there is. The router is made of it, and tests hold the OpenAPI page, the
        /// reference and the table of roles to it.
        pub const ROUTES: &[Route] = &[$(Route {
            method: stringify!($method),
            path: $path,
            answer: || axum::routing::$method($handler),
        }),+];
    };
}

routes! {
    post "/v1/chat/completions" => chat::complete_chat,
    post "/v1/messages" => messages::create_message,
    post "/v1/messages/count_tokens" => messages::estimate_tokens,
    post "/v1/responses" => responses::create_response,
    get "/v1/responses/{id}" => responses::show_response,
    delete "/v1/responses/{id}" => responses::delete_response,
    get "/v1/responses/{id}/input_items" => responses::list_input_items,
    post "/v1/moderations" => moderations::create_moderation,
    post "/v1/embeddings" => embeddings::create_embeddings,
    post "/v1/completions" => completions::complete_prompt,
    post "/v1/verify" => verify::verify_reply,
    get "/v1/agents" => agents::list_recipes,
    get "/v1/agents/{name}" => agents::show_recipe,
    post "/v1/agents/{name}/execute" => agents::run_recipe,
    get "/v1/agents/runs/{id}" => agents::show_run,
    get "/v1/models" => models::list_models,
    get "/v1/models/{model}" => models::show_model,
    get "/v1/decisions" => decisions::list_decisions,
    get "/v1/decisions/{id}" => decisions::show_decision,
    get "/v1/decisions/{id}/explanation" => decisions::explain_decision,
    get "/v1/decisions/{id}/receipt" => decisions::show_receipt,
    get "/v1/users/{id}/drift" => users::show_drift,
    get "/ledger/checkpoint" => ledger::show_checkpoint,
    get "/ledger/vkey" => ledger::show_vkeys,
    get "/ledger/tile/{path}" => ledger::show_tile,
    get "/ledger/tile/entries/{path}" => ledger::show_entries,
    get "/v1/ledger/entries" => ledger::list_own_entries,
    get "/ledger/proof/consistency" => ledger::prove_consistency,
    get "/v1/subjects/{id}" => subjects::export_subject,
    delete "/v1/subjects/{id}" => subjects::erase_subject,
    get "/v1/tenants" => tenants::list_tenants,
    post "/v1/tenants" => tenants::enter_tenant,
    patch "/v1/tenants/{id}" => tenants::change_tenant,
    get "/v1/tenants/{id}/policy" => tenants::show_policy,
    put "/v1/tenants/{id}/policy" => tenants::set_policy,
    get "/v1/usage" => usage::show_usage,
    post "/v1/consents" => consents::give_consent,
    get "/v1/consents" => consents::list_consents,
    get "/v1/consents/{id}" => consents::show_consent,
    delete "/v1/consents/{id}" => consents::withdraw_consent,
    get "/v1/protocols" => protocols::list_protocols,
    get "/v1/protocols/{community}" => protocols::show_protocol,
    put "/v1/protocols/{community}" => protocols::put_protocol,
    put "/v1/protocols/{community}/elders/{holder}" => protocols::name_elder,
    delete "/v1/protocols/{community}/elders/{holder}" => protocols::remove_elder,
    get "/v1/reviews" => reviews::list_reviews,
    get "/v1/reviews/{id}" => reviews::show_review,
    get "/v1/reviews/{id}/result" => reviews::show_result,
    post "/v1/reviews/{id}/claim" => reviews::claim_review,
    post "/v1/reviews/{id}/release" => reviews::release_review,
    post "/v1/reviews/{id}/decide" => reviews::decide_review,
    post "/v1/appeals" => appeals::file_appeal,
    get "/v1/appeals" => appeals::list_appeals,
    get "/v1/appeals/estimates" => appeals::show_estimates,
    get "/v1/appeals/{id}" => appeals::show_appeal,
    get "/v1/appeals/{id}/result" => appeals::show_result,
    post "/v1/webhooks" => webhooks::create_webhook,
    get "/v1/webhooks" => webhooks::list_webhooks,
    delete "/v1/webhooks/{id}" => webhooks::remove_webhook,
    post "/v1/webhooks/{id}/secret" => webhooks::replace_secret,
    get "/v1/webhooks/{id}/events" => webhooks::list_events,
    post "/v1/webhooks/{id}/events/{event}/resend" => webhooks::resend_event,
    post "/v1/keys" => keys::create_key,
    get "/v1/keys" => keys::list_keys,
    delete "/v1/keys/{id}" => keys::revoke_key,
    post "/v1/keys/{id}/rotate" => keys::rotate_key,
    post "/v1/tokens" => keys::create_token,
    get "/livez" => health::show_live,
    get "/readyz" => health::show_ready,
    get "/health" => health::show_health,
    get "/metrics" => health::show_metrics,
    get "/openapi.json" => health::show_openapi,
}

/// The HTTP interface.
pub fn router(gateway: Gateway) -> Router {
    ROUTES
        .iter()
        .fold(Router::new(), add_route)
        .fallback(answer_unknown_path)
        .method_not_allowed_fallback(async |uri: Uri| {
            ApiError::method_not_allowed().into_response_as(Envelope::at_path(uri.path()))
        })
        .layer(from_fn_with_state(gateway.clone(), observe))
        .with_state(gateway)
}

fn add_route(router: Router<Gateway>, route: &Route) -> Router<Gateway> {
    // A wildcard has a spelling of its own in the router; OpenAPI knows none.
    router.route(&route.path.replace("{path}", "{*path}"), (route.answer)())
}

async fn answer_unknown_path(uri: Uri) -> Response {
    let error = ApiError::not_found("There is nothing at this path; see /openapi.json.");
    error.into_response_as(Envelope::at_path(uri.path()))
}

/// Counts every request, names it, and records those refused before any decision.
async fn observe(State(gateway): State<Gateway>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let route = matched.as_ref().map_or("(none)", MatchedPath::as_str);
    let is_post = request.method() == Method::POST;
    let came_in_pieces = request.headers().contains_key(header::TRANSFER_ENCODING);
    let request_id = request_id(&gateway, request.headers());
    let envelope = Envelope::at_path(request.uri().path());
    let shown_keys = shown_keys(request.headers());
    gateway.metrics().request_began();
    // Only what is posted is decided, and only decisions have a story to tell.
    let trace = if is_post { trace_of(&gateway, request.headers()) } else { None };
    // A bug in one request must not take its connection, or the answer, with it.
    let answering = AssertUnwindSafe(within(trace, next.run(request))).catch_unwind();
    let mut response = tell_limits(answering.map(|answered| {
        answered.unwrap_or_else(|_panic| ApiError::internal().into_response_as(envelope))
    }))
    .await;
    gateway.metrics().request_ended();
    let status = response.status();
    gateway.metrics().count_request(route, status.as_u16(), started.elapsed());
    if let Some(RefusalCode(code)) = response.extensions().get().copied() {
        gateway.metrics().count_refusal(code);
        // What was asked to be judged leaves a trace even if nothing was, and so does every closed door. Other
        // refusals, such as a page that is not there, say nothing worth keeping.
        if is_post || matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            let caller = identify_caller(&gateway, &shown_keys);
            let refusal = RequestRefusal {
                status: status.as_u16(),
                code,
                route: route.to_owned(),
                tenant: caller.map(|caller| caller.key.tenant.as_str().to_owned()),
            };
            gateway.refusals().note(&gateway.engine(), refusal);
        }
    }
    let headers = response.headers_mut();
    if came_in_pieces {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    if envelope == Envelope::Anthropic {
        headers.insert(ANTHROPIC_REQUEST_ID, request_id.clone());
    }
    headers.insert(REQUEST_ID, request_id);
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// The headers that say who calls, kept so that their tenant is looked up only for a refusal.
fn shown_keys(headers: &HeaderMap) -> HeaderMap {
    let mut shown = HeaderMap::new();
    for name in [header::AUTHORIZATION, API_KEY] {
        if let Some(value) = headers.get(&name) {
            shown.insert(name, value.clone());
        }
    }
    shown
}

/// The client's own request id if it is printable, else a new one.
fn request_id(gateway: &Gateway, headers: &HeaderMap) -> HeaderValue {
    let given = headers.get(REQUEST_ID);
    if let Some(given) = given.filter(|id| id.len() <= REQUEST_ID_BYTES_MAX && id.to_str().is_ok())
    {
        return given.clone();
    }
    let mut random = [0; 12];
    gateway.engine().entropy.fill(&mut random);
    HeaderValue::try_from(format!("req_{}", hex::encode(random)))
        .unwrap_or_else(|_| HeaderValue::from_static("req_unknown"))
}

/// The trace of a request: the caller's, a new one where spans are collected, or none. What nobody
/// collects is handed on.
fn trace_of(gateway: &Gateway, headers: &HeaderMap) -> Option<Arc<Trace>> {
    let given = given_trace(headers);
    match gateway.span_sink() {
        Some(sink) => {
            let engine = gateway.engine();
            let mut random = [0; 24];
            engine.entropy.fill(&mut random);
            Some(Trace::begin(given, sink, engine.clock.now_ms(), random))
        }
        None => given.map(Trace::handed_on),
    }
}

/// What the caller says; a header that stands twice says nothing.
fn given_trace(headers: &HeaderMap) -> Option<TraceContext> {
    let mut parents = headers.get_all(TRACE_PARENT).iter();
    let parent = parents.next().filter(|_| parents.next().is_none())?.to_str().ok()?;
    let state: Vec<_> =
        headers.get_all(TRACE_STATE).iter().filter_map(|value| value.to_str().ok()).collect();
    TraceContext::read(parent, Some(state.join(",").as_str()).filter(|state| !state.is_empty()))
}

/// Turns a handler's result into a response.
fn respond(result: Result<Response, ApiError>) -> Response {
    result.unwrap_or_else(IntoResponse::into_response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_that_stands_twice_says_nothing_and_states_are_joined() {
        let mut headers = HeaderMap::new();
        assert_eq!(given_trace(&headers), None);
        let parent =
            HeaderValue::from_static("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
        headers.append(TRACE_PARENT, parent.clone());
        headers.append(TRACE_STATE, HeaderValue::from_static("a=1"));
        headers.append(TRACE_STATE, HeaderValue::from_static("b=2"));
        assert_eq!(given_trace(&headers).and_then(|given| given.state).as_deref(), Some("a=1,b=2"));
        headers.append(TRACE_PARENT, parent);
        assert_eq!(given_trace(&headers), None);
    }

    #[test]
    fn no_route_stands_twice_and_none_hides_another() {
        let mut seen = std::collections::BTreeSet::new();
        for route in ROUTES {
            assert!(seen.insert((route.method, route.path)), "{} {}", route.method, route.path);
            assert!(
                ["get", "post", "put", "patch", "delete"].contains(&route.method),
                "{}",
                route.method
            );
        }
        // Panics where two paths could match the same request.
        let _served: Router<Gateway> = ROUTES.iter().fold(Router::new(), add_route);
    }

    #[test]
    fn only_what_says_who_calls_is_kept_of_the_headers() {
        let headers = HeaderMap::from_iter([
            (header::AUTHORIZATION, HeaderValue::from_static("Bearer ck_1")),
            (header::COOKIE, HeaderValue::from_static("secret")),
            (API_KEY, HeaderValue::from_static("ck_2")),
        ]);
        let shown = shown_keys(&headers);
        assert_eq!(shown.len(), 2);
        assert!(!shown.contains_key(header::COOKIE));
    }
}
