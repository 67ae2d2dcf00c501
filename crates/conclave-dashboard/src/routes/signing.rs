//! `/login` and `/logout`.
//!
//! **Invariant:** a wrong name and a wrong password get the same answer.
//!
//! **Invariant:** signing in always opens a new session; a cookie planted beforehand opens nothing.

use crate::cookie::Cookie;
use crate::dashboard::Dashboard;
use crate::page::{Frame, Trouble, page};
use crate::same_site::is_same_origin;
use crate::visitor::{Guest, way_back};
use askama::Template;
use axum::extract::rejection::{FormRejection, QueryRejection};
use axum::extract::{ConnectInfo, Query, State};
use axum::response::{IntoResponse, Redirect, Response};
use axum::{Extension, Form};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Deserialize;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The longest name worth looking up.
const NAME_BYTES_MAX: usize = 256;
/// Where somebody comes from of whom nobody says it.
const NOWHERE: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
/// The name the first account has.
const FIRST_NAME: &str = "owner";

/// The page with the form.
#[derive(Template)]
#[template(path = "login.html")]
struct LoginPage<'a> {
    frame: Frame,
    token: String,
    name: &'a str,
    next: &'a str,
    trouble: Option<String>,
}

/// Where the visitor wanted to go.
#[derive(Default, Deserialize)]
pub(super) struct Wanted {
    #[serde(default)]
    next: String,
}

/// What the form sends.
#[derive(Deserialize)]
pub(super) struct Credentials {
    #[serde(default)]
    token: String,
    name: String,
    password: String,
    #[serde(default)]
    next: String,
}

/// `GET /login`.
pub(super) async fn form(
    State(dashboard): State<Dashboard>,
    wanted: Result<Query<Wanted>, QueryRejection>,
    visitor: Result<Guest, Response>,
    headers: HeaderMap,
) -> Response {
    let wanted = wanted.map(|Query(wanted)| wanted).unwrap_or_default();
    let next = way_back(&wanted.next);
    if visitor.is_ok() {
        return Redirect::to(next).into_response();
    }
    let asked = Asked { status: StatusCode::OK, name: FIRST_NAME, next, trouble: None };
    ask(&dashboard, &headers, asked)
}

/// `POST /login`.
pub(super) async fn sign_in(
    State(dashboard): State<Dashboard>,
    connected: Option<Extension<ConnectInfo<SocketAddr>>>,
    headers: HeaderMap,
    form: Result<Form<Credentials>, FormRejection>,
) -> Response {
    let Ok(Form(given)) = form else {
        return Trouble::Foreign.page(&dashboard, None);
    };
    if !is_same_origin(&headers) {
        return Trouble::Foreign.page(&dashboard, None);
    }
    let cookie = Cookie::Form.read(&headers, dashboard.https()).unwrap_or_default();
    if !dashboard.forms().fits(cookie, &given.token) {
        let trouble = "This page was open for too long. Please try again.";
        return refuse(&dashboard, &headers, &given, StatusCode::FORBIDDEN, trouble.into());
    }
    let from = connected.map_or(NOWHERE, |Extension(ConnectInfo(from))| from.ip());
    if let Err(rest_ms) = dashboard.lockouts().take_try(&given.name, from, dashboard.now_ms()) {
        return resting(&dashboard, &headers, &given, rest_ms);
    }
    if given.name.len() > NAME_BYTES_MAX {
        return wrong(&dashboard, &headers, &given);
    }
    match dashboard.ports().sign_in.sign_in(&given.name, &given.password).await {
        Some(account) if account.may_review() => {
            dashboard.lockouts().forgive(&given.name, from);
            let id = dashboard.new_id();
            dashboard.sessions().open(&id, account, dashboard.now_ms());
            enter(&dashboard, &headers, &id, way_back(&given.next))
        }
        Some(_) => {
            let trouble = "This account may not look at the dashboard.";
            refuse(&dashboard, &headers, &given, StatusCode::FORBIDDEN, trouble.into())
        }
        None => wrong(&dashboard, &headers, &given),
    }
}

/// `POST /logout`.
pub(super) async fn sign_out(
    State(dashboard): State<Dashboard>,
    Guest(visitor): Guest,
    headers: HeaderMap,
    form: Result<Form<Vec<(String, String)>>, FormRejection>,
) -> Response {
    let sent = form.map(|Form(fields)| fields).unwrap_or_default();
    let token = sent.iter().find(|(name, _)| name == "token").map_or("", |(_, token)| token);
    if !is_same_origin(&headers) || !dashboard.forms().fits(&visitor.session, token) {
        return Trouble::Foreign.page(&dashboard, Some(&visitor));
    }
    dashboard.sessions().close(&visitor.session);
    let mut response = Redirect::to("/login").into_response();
    let gone = Cookie::Session.unset(dashboard.https());
    response.headers_mut().append(header::SET_COOKIE, gone);
    response
}

/// What the form shows.
struct Asked<'a> {
    status: StatusCode,
    name: &'a str,
    next: &'a str,
    trouble: Option<String>,
}

/// Shows the form, with a cookie for its token.
fn ask(dashboard: &Dashboard, headers: &HeaderMap, asked: Asked<'_>) -> Response {
    let https = dashboard.https();
    // Two forms open side by side share the cookie, so that both can be sent.
    let known = Cookie::Form.read(headers, https).map(str::to_owned);
    let cookie = known.unwrap_or_else(|| dashboard.new_id());
    let shown = LoginPage {
        frame: Frame::outside("Sign in"),
        token: dashboard.forms().token(&cookie),
        name: asked.name,
        next: asked.next,
        trouble: asked.trouble,
    };
    let mut response = page(asked.status, &shown);
    response.headers_mut().append(header::SET_COOKIE, Cookie::Form.set(&cookie, https));
    response
}

fn refuse(
    dashboard: &Dashboard,
    headers: &HeaderMap,
    given: &Credentials,
    status: StatusCode,
    trouble: String,
) -> Response {
    let trouble = Some(trouble);
    let next = way_back(&given.next);
    ask(dashboard, headers, Asked { status, name: &given.name, next, trouble })
}

fn wrong(dashboard: &Dashboard, headers: &HeaderMap, given: &Credentials) -> Response {
    // The name stays out of the log: people type passwords into the wrong field.
    tracing::warn!("a sign-in to the dashboard failed");
    let trouble = "The name or the password is wrong.";
    refuse(dashboard, headers, given, StatusCode::FORBIDDEN, trouble.into())
}

fn resting(
    dashboard: &Dashboard,
    headers: &HeaderMap,
    given: &Credentials,
    rest_ms: u64,
) -> Response {
    let seconds = rest_ms.div_ceil(1_000);
    let trouble = format!("Too many wrong passwords. Please wait {seconds} seconds.");
    let status = StatusCode::TOO_MANY_REQUESTS;
    let mut response = refuse(dashboard, headers, given, status, trouble);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    response
}

/// Opens the door; whatever session came with the form ends.
fn enter(dashboard: &Dashboard, headers: &HeaderMap, id: &str, next: &str) -> Response {
    let https = dashboard.https();
    if let Some(old) = Cookie::Session.read(headers, https) {
        dashboard.sessions().close(old);
    }
    let mut response = Redirect::to(next).into_response();
    let cookies = response.headers_mut();
    cookies.append(header::SET_COOKIE, Cookie::Session.set(id, https));
    cookies.append(header::SET_COOKIE, Cookie::Form.unset(https));
    response
}
