//! Where connections come in: who gets a place, how long a client may take to read, and when no new ones
//! are taken. Nothing here knows a route, a key or what a request says; how fast a body must come is laid
//! down in [`admission::body`](crate::admission::body).

pub(crate) mod serve;
pub(crate) mod tls;
mod validity;
