//! The stylesheet, the script and the icon: ours, compiled in.
//!
//! **Invariant:** an address that carries a digest always gives the same bytes.

use axum::extract::{Path, RawQuery};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

/// One file.
struct Asset {
    name: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

const ASSETS: [Asset; 4] = [
    Asset {
        name: "style.css",
        kind: "text/css; charset=utf-8",
        bytes: include_bytes!("../assets/style.css"),
    },
    Asset {
        name: "live.js",
        kind: "text/javascript; charset=utf-8",
        bytes: include_bytes!("../assets/live.js"),
    },
    Asset {
        name: "receipt.js",
        kind: "text/javascript; charset=utf-8",
        bytes: include_bytes!("../assets/receipt.js"),
    },
    Asset { name: "icon.svg", kind: "image/svg+xml", bytes: include_bytes!("../assets/icon.svg") },
];

/// Where pages find the files.
pub(crate) struct Links {
    /// The stylesheet.
    pub(crate) style: String,
    /// The script of the overview.
    pub(crate) live: String,
    /// The script that checks receipts.
    pub(crate) receipt: String,
    /// The icon.
    pub(crate) icon: String,
}

/// The addresses, each with the digest of what stands there.
pub(crate) static LINKS: LazyLock<Links> = LazyLock::new(|| {
    let [style, live, receipt, icon] =
        ASSETS.map(|asset| format!("/assets/{}?v={}", asset.name, digest(&asset)));
    Links { style, live, receipt, icon }
});

fn digest(asset: &Asset) -> String {
    hex::encode(&Sha256::digest(asset.bytes)[..8])
}

/// `GET /assets/{name}`.
pub(crate) async fn serve(
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let Some(asset) = ASSETS.iter().find(|asset| asset.name == name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let digest = digest(asset);
    let tag = format!("\"{digest}\"");
    let known = headers.get(header::IF_NONE_MATCH).is_some_and(|seen| *seen == tag);
    let mut response = if known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(header::CONTENT_TYPE, asset.kind)], asset.bytes).into_response()
    };
    let named = query.is_some_and(|query| query == format!("v={digest}"));
    let caching = if named { "public, max-age=31536000, immutable" } else { "no-cache" };
    let answered = response.headers_mut();
    answered.insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
    if let Ok(tag) = HeaderValue::try_from(tag) {
        answered.insert(header::ETAG, tag);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_file_reaches_out() {
        for asset in &ASSETS {
            let text = std::str::from_utf8(asset.bytes).unwrap();
            let own = text.replace("http://www.w3.org/2000/svg", "");
            for outside in ["http:", "https:", "//cdn", "@import", "url(", "innerHTML", "eval"] {
                assert!(!own.contains(outside), "{} holds {outside}", asset.name);
            }
        }
    }

    #[test]
    fn addresses_carry_digests() {
        let links = [&LINKS.style, &LINKS.live, &LINKS.receipt, &LINKS.icon];
        for link in links {
            let (_, digest) = link.split_once("?v=").unwrap();
            assert_eq!(digest.len(), 16, "{link}");
        }
    }
}
