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
use axum::routing::MethodRouter;
use conclave_engine::trace::within;
use futures_util::FutureExt;
use http::{HeaderName, HeaderValue, Method, Uri};
use std::panic::AssertUnwindSafe;
use std::time::Instant;

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
    post "/v1/chat/completions" => chat::complete,
    post "/v1/messages" => messages::create,
    post "/v1/messages/count_tokens" => messages::count_tokens,
    post "/v1/responses" => responses::create,
    get "/v1/responses/{id}" => responses::one,
    post "/v1/moderations" => moderations::create,
    post "/v1/embeddings" => embeddings::create,
    post "/v1/completions" => completions::create,
    post "/v1/verify" => verify::verify,
    get "/v1/agents" => agents::list,
    get "/v1/agents/{name}" => agents::one,
    post "/v1/agents/{name}/execute" => agents::execute,
    get "/v1/agents/runs/{id}" => agents::fetch,
    get "/v1/models" => models::list,
    get "/v1/models/{model}" => models::one,
    get "/v1/decisions" => decisions::list,
    get "/v1/decisions/{id}" => decisions::one,
    get "/v1/decisions/{id}/explanation" => decisions::explanation,
    get "/v1/decisions/{id}/receipt" => decisions::receipt,
    get "/v1/users/{id}/drift" => users::drift,
    get "/ledger/checkpoint" => ledger::checkpoint,
    get "/ledger/vkey" => ledger::vkey,
    get "/ledger/tile/{path}" => ledger::tile,
    get "/ledger/tile/entries/{path}" => ledger::entries,
    get "/ledger/proof/consistency" => ledger::consistency,
    get "/v1/subjects/{id}" => subjects::export,
    delete "/v1/subjects/{id}" => subjects::erase,
    get "/v1/tenants" => tenants::list,
    post "/v1/tenants" => tenants::enter,
    get "/v1/tenants/{id}/policy" => tenants::policy,
    put "/v1/tenants/{id}/policy" => tenants::set_policy,
    get "/v1/usage" => usage::usage,
    post "/v1/consents" => consents::give,
    get "/v1/consents" => consents::list,
    get "/v1/consents/{id}" => consents::one,
    delete "/v1/consents/{id}" => consents::withdraw,
    get "/v1/protocols" => protocols::list,
    get "/v1/protocols/{community}" => protocols::one,
    put "/v1/protocols/{community}" => protocols::put,
    put "/v1/protocols/{community}/elders/{holder}" => protocols::name_elder,
    delete "/v1/protocols/{community}/elders/{holder}" => protocols::remove_elder,
    get "/v1/reviews" => reviews::list,
    get "/v1/reviews/{id}" => reviews::one,
    get "/v1/reviews/{id}/result" => reviews::result,
    post "/v1/reviews/{id}/claim" => reviews::claim,
    post "/v1/reviews/{id}/release" => reviews::release,
    post "/v1/reviews/{id}/decide" => reviews::decide,
    post "/v1/webhooks" => webhooks::create,
    get "/v1/webhooks" => webhooks::list,
    delete "/v1/webhooks/{id}" => webhooks::remove,
    post "/v1/webhooks/{id}/secret" => webhooks::secret,
    get "/v1/webhooks/{id}/events" => webhooks::events,
    post "/v1/webhooks/{id}/events/{event}/resend" => webhooks::resend,
    post "/v1/keys" => keys::create,
    get "/v1/keys" => keys::list,
    delete "/v1/keys/{id}" => keys::revoke,
    post "/v1/keys/{id}/rotate" => keys::rotate,
    post "/v1/tokens" => keys::mint,
    get "/livez" => health::live,
    get "/readyz" => health::ready,
    get "/health" => health::health,
    get "/metrics" => health::metrics,
    get "/openapi.json" => health::openapi,
}

/// The HTTP interface.
pub fn router(gateway: Gateway) -> Router {
    let served = ROUTES.iter().fold(Router::new(), |served, route| {
        // A wildcard has a spelling of its own in the router; OpenAPI knows none.
        served.route(&route.path.replace("{path}", "{*path}"), (route.answer)())
    });
    served
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
