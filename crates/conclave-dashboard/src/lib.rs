//! HTML and SVG for people: what the house decided, and why, in a browser.
//!
//! **Invariant:** nothing here decides or changes anything; the only thing a visitor can alter is
//! their own session.
//!
//! **Invariant:** what people and models said is hostile. It reaches a page only as
//! `Text`, as escaped text nodes with everything invisible made visible, and only for the
//! owner; for everybody else it is dropped before a page is made.
//!
//! **Invariant:** every page works without script, and no page refers to another host.

mod account;
mod assets;
mod board;
mod chart;
mod cookie;
mod dashboard;
mod decision;
mod figure;
mod headers;
mod label;
mod lockout;
mod page;
mod password;
mod reference;
mod routes;
mod rows;
mod same_site;
mod session;
mod text;
mod visitor;
mod why_texts;

pub use account::{Account, AccountBook, SignIn};
pub use dashboard::{Dashboard, Ports, TranscriptHook};
pub use password::{hash_password, verify_password};
pub use routes::router;
