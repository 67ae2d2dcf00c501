//! Sending to addresses that tenants name.

use futures_util::future::BoxFuture;

/// Sends one request to a place that somebody named, under guard.
pub trait Post: Send + Sync {
    /// Whether an address may be used at all, by everything its name resolves to now; the sentence says why not.
    ///
    /// # Errors
    /// When it may not.
    fn check<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<(), String>>;
    /// Posts a body; the status of the answer, or why there was none. Follows no redirect.
    fn post<'a>(
        &'a self,
        url: &'a str,
        headers: Vec<(&'static str, String)>,
        body: String,
    ) -> BoxFuture<'a, Result<u16, String>>;
}
