//! Where connections come in: who gets a place, how long a client may take to send or to read, and
//! when the house stops taking new ones. Nothing here knows a route, a key or what a request says.

pub(crate) mod connections;
pub(crate) mod doors;
pub(crate) mod framing;
pub(crate) mod paced_body;
pub(crate) mod patient_stream;
pub(crate) mod serve;
