//! Which addresses a provider may live at.
//!
//! **Invariant:** addresses that answer with credentials (cloud metadata, link-local) are refused
//! whatever the configuration says.
//!
//! **Invariant:** a name is judged by the addresses it resolves to at the moment of connecting, and
//! the connection goes to one of the addresses that were judged: a name cannot be re-bound in
//! between.

use futures_util::future::BoxFuture;
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use thiserror::Error;

/// Why a base URL or an address is not used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AddressError {
    /// No URL at all.
    #[error("the base URL is no URL")]
    NotAUrl,
    /// Neither `http` nor `https`.
    #[error("the base URL must begin with http:// or https://")]
    Scheme,
    /// Carries a user, a password, a query or a fragment.
    #[error("the base URL must have a host and a path and nothing else")]
    Extras,
    /// An address nobody may use.
    #[error("{0} is a link-local, metadata or otherwise reserved address")]
    Reserved(IpAddr),
    /// A private address without permission.
    #[error("{0} is a private address; set allow_private for this provider if that is meant")]
    Private(IpAddr),
    /// A name that means this machine or its network wherever it is asked for.
    #[error("{0} is a name of this machine or its network")]
    Inside(String),
    /// A name that has no address at all.
    #[error("{0} has no address; is it spelt right?")]
    Unresolved(String),
    /// A name that has no address we may use.
    #[error("the host has no permitted address")]
    NoneLeft,
}

/// Which addresses are permitted for one provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressPolicy {
    /// Only public ones.
    Public,
    /// Only this machine: what a base URL means that names it literally.
    Loopback,
    /// Private ones too, because the configuration says so.
    Private,
}

impl AddressPolicy {
    /// Whether a connection may go to this address.
    ///
    /// # Errors
    /// Which rule it breaks.
    pub fn admit(self, address: IpAddr) -> Result<(), AddressError> {
        match (classify(address), self) {
            (Reach::Reserved, _) => Err(AddressError::Reserved(address)),
            (Reach::Public, Self::Public | Self::Private)
            | (Reach::Loopback, Self::Loopback | Self::Private)
            | (Reach::Private, Self::Private) => Ok(()),
            (Reach::Public | Reach::Loopback | Reach::Private, _) => {
                Err(AddressError::Private(address))
            }
        }
    }

    fn for_host(host: &str, allow_private: bool) -> Self {
        if allow_private {
            Self::Private
        } else if is_literal_loopback(host) {
            Self::Loopback
        } else {
            Self::Public
        }
    }
}

/// A provider's base URL that passed the check, and what its host may resolve to.
#[derive(Clone, PartialEq, Eq)]
pub struct BaseUrl {
    url: Url,
    policy: AddressPolicy,
}

impl fmt::Debug for BaseUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "BaseUrl({}, {:?})", self.url, self.policy)
    }
}

impl BaseUrl {
    /// Checks a base URL from the configuration. Loopback is permitted where the URL names it
    /// literally; other private addresses only with `allow_private`.
    ///
    /// # Errors
    /// What is wrong with it; the URL itself is not repeated, as it may hold a password.
    pub fn parse(text: &str, allow_private: bool) -> Result<Self, AddressError> {
        let url = Url::parse(text.trim()).map_err(|_| AddressError::NotAUrl)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(AddressError::Scheme);
        }
        let host = url.host_str().ok_or(AddressError::NotAUrl)?;
        let has_user = !url.username().is_empty() || url.password().is_some();
        if has_user || url.query().is_some() || url.fragment().is_some() {
            return Err(AddressError::Extras);
        }
        let policy = AddressPolicy::for_host(host, allow_private);
        if let Some(address) = literal_address(host) {
            policy.admit(address)?;
        }
        Ok(Self { url, policy })
    }

    /// The URL of an endpoint below this one.
    pub(crate) fn endpoint(&self, path: &str) -> Url {
        let mut url = self.url.clone();
        let base = url.path().trim_end_matches('/');
        url.set_path(&format!("{base}/{path}"));
        url
    }

    /// The URL itself.
    pub(crate) fn itself(&self) -> Url {
        self.url.clone()
    }

    /// Holds every address that its host has now to the policy: one that leads inward is too many. A connection
    /// is held to it once more, when it is made.
    ///
    /// # Errors
    /// Which address or name may not be used, or that there is none.
    pub async fn check_addresses(&self, lookup: &Lookup) -> Result<(), AddressError> {
        let host = self.url.host_str().ok_or(AddressError::NotAUrl)?;
        if literal_address(host).is_some() {
            // Checked when the URL was.
            return Ok(());
        }
        let name = host.trim_end_matches('.');
        let is_inside = self.policy == AddressPolicy::Public && is_name_inside(name);
        if is_inside || METADATA_NAMES.contains(&name) {
            return Err(AddressError::Inside(name.to_owned()));
        }
        let unresolved = || AddressError::Unresolved(name.to_owned());
        let found = lookup(name.to_owned()).await.map_err(|_| unresolved())?;
        if found.is_empty() {
            return Err(unresolved());
        }
        found.iter().try_for_each(|address| self.policy.admit(address.ip()))
    }

    /// What its host may resolve to.
    #[must_use]
    pub const fn policy(&self) -> AddressPolicy {
        self.policy
    }

    /// Whether the connection is encrypted.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.url.scheme() == "https"
    }
}

/// How names end that mean something inside a house, a cluster or a cloud, or that resolve to whatever address
/// stands in them.
const INSIDE: [&str; 18] = [
    "localhost",
    "local",
    "internal",
    "intranet",
    "lan",
    "home",
    "corp",
    "private",
    "home.arpa",
    "localdomain",
    "svc",
    "test",
    "invalid",
    "nip.io",
    "sslip.io",
    "xip.io",
    "localtest.me",
    "lvh.me",
];

/// Whether somebody else may be made to fetch from this URL, such as a provider that stands in our network. Names
/// are not looked up: what is fetched later may have another address by then.
///
/// # Errors
/// Which rule it breaks.
pub fn check_fetched_url(text: &str) -> Result<(), AddressError> {
    // Readers do not agree on what these mean, so that what was checked may not be what is fetched.
    let is_odd = |one: char| one == '\\' || one.is_whitespace() || one.is_control();
    if text.contains(is_odd) {
        return Err(AddressError::NotAUrl);
    }
    let url = Url::parse(text).map_err(|_| AddressError::NotAUrl)?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(AddressError::Scheme);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(AddressError::Extras);
    }
    let host = url.host_str().ok_or(AddressError::NotAUrl)?.trim_end_matches('.');
    if let Some(address) = literal_address(host) {
        return AddressPolicy::Public.admit(address);
    }
    if is_name_inside(host) {
        return Err(AddressError::Inside(host.to_owned()));
    }
    Ok(())
}

/// The URL parser has already turned decimal, octal and hexadecimal forms into dotted ones.
fn literal_address(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// Names of services that hand out credentials.
const METADATA_NAMES: [&str; 3] = ["metadata.google.internal", "metadata.goog", "metadata"];

/// Whether a name means something within a network: it has no dot, or an end that says so.
fn is_name_inside(name: &str) -> bool {
    let is_below = |end: &&str| {
        name.strip_suffix(*end).is_some_and(|start| start.is_empty() || start.ends_with('.'))
    };
    !name.contains('.') || INSIDE.iter().any(is_below)
}

fn is_literal_loopback(host: &str) -> bool {
    let named = host == "localhost" || host.ends_with(".localhost");
    named || literal_address(host).is_some_and(|address| classify(address) == Reach::Loopback)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    Public,
    Private,
    Loopback,
    Reserved,
}

fn classify(address: IpAddr) -> Reach {
    match address {
        IpAddr::V4(address) => classify_v4(address),
        IpAddr::V6(address) => classify_v6(address),
    }
}

/// Metadata services that stand outside the link-local range.
const METADATA_V4: [Ipv4Addr; 3] = [
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(192, 0, 0, 192),
];

fn classify_v4(address: Ipv4Addr) -> Reach {
    let [first, second, third, _] = address.octets();
    let is_reserved =
        address.is_link_local() || METADATA_V4.contains(&address) || first == 0 || first >= 224;
    let is_shared = first == 100 && second & 0xc0 == 64;
    let is_benchmark = first == 198 && second & 0xfe == 18;
    let is_protocol = (first, second, third) == (192, 0, 0);
    if is_reserved {
        Reach::Reserved
    } else if address.is_loopback() {
        Reach::Loopback
    } else if address.is_private() || is_shared || is_benchmark || is_protocol {
        Reach::Private
    } else {
        Reach::Public
    }
}

/// Metadata services with an IPv6 address of their own.
const METADATA_V6: [Ipv6Addr; 2] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
];

fn classify_v6(address: Ipv6Addr) -> Reach {
    if address.is_loopback() {
        return Reach::Loopback;
    }
    if let Some(inner) = embedded_v4(address) {
        return classify_v4(inner);
    }
    let first = address.segments()[0];
    let is_link_local = first & 0xffc0 == 0xfe80;
    let is_unique_local = first & 0xfe00 == 0xfc00;
    let is_site_local = first & 0xffc0 == 0xfec0;
    let is_metadata = METADATA_V6.contains(&address);
    if is_link_local || is_metadata || address.is_unspecified() || address.is_multicast() {
        Reach::Reserved
    } else if is_unique_local || is_site_local {
        Reach::Private
    } else {
        Reach::Public
    }
}

/// The IPv4 address inside a mapped, compatible, NAT64, 6to4 or Teredo address: what the packet
/// reaches in the end.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let join = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => None,
        [0, 0, 0, 0, 0, 0xffff | 0, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => Some(join(high, low)),
        [0x2001, 0, .., high, low] => Some(join(!high, !low)),
        _ => None,
    }
}

/// Finds the addresses of a name.
pub type Lookup =
    Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> + Send + Sync>;

/// Asks the operating system.
#[must_use]
pub fn system_lookup() -> Lookup {
    Arc::new(|name| {
        Box::pin(async move { Ok(tokio::net::lookup_host((name, 0)).await?.collect()) })
    })
}

/// A resolver that only ever hands out addresses the policy admits.
pub(crate) struct CheckedResolver {
    policy: AddressPolicy,
    lookup: Lookup,
}

impl CheckedResolver {
    pub(crate) fn new(policy: AddressPolicy, lookup: Lookup) -> Self {
        Self { policy, lookup }
    }
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let policy = self.policy;
        let found = (self.lookup)(name.as_str().to_owned());
        Box::pin(async move {
            let mut permitted = found.await?;
            permitted.retain(|address| policy.admit(address.ip()).is_ok());
            if permitted.is_empty() {
                return Err(AddressError::NoneLeft.into());
            }
            Ok(Box::new(permitted.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
#[path = "ssrf_tests.rs"]
mod tests;
