//! Where a request ends: nothing that follows an ambiguous one is believed.
//!
//! **Invariant:** a connection ends with a request that came in pieces. Such a request may have said a length as
//! well, which the server below us drops unseen, as the standard has it; a proxy before us that believed the
//! length would take the rest for part of it, and we for the next request.

use http::{HeaderMap, HeaderValue, header};

/// Whether the connection has to end with this request.
pub(crate) fn is_last(headers: &HeaderMap) -> bool {
    headers.contains_key(header::TRANSFER_ENCODING)
}

/// Says so.
pub(crate) fn close(headers: &mut HeaderMap) {
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
}
