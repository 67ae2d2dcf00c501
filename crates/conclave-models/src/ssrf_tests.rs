//! What may be connected to and what not.

use super::*;

fn refusal(url: &str, allow_private: bool) -> Option<AddressError> {
    BaseUrl::parse(url, allow_private).err()
}

#[test]
fn metadata_is_refused_however_it_is_written_and_whatever_is_allowed() {
    for url in [
        "http://169.254.169.254/latest",
        "http://2852039166/",
        "http://0xa9fea9fe/",
        "http://0251.0376.0251.0376/",
        "http://169.254.43518/",
        "http://[::ffff:169.254.169.254]/",
        "http://[::169.254.169.254]/",
        "http://[64:ff9b::a9fe:a9fe]/",
        "http://[2002:a9fe:a9fe::1]/",
        "http://[fe80::1]/",
        "http://[fd00:ec2::254]/",
        "http://100.100.100.200/",
        "http://168.63.129.16/",
        "http://0.0.0.0/",
        "http://[::]/",
        "http://255.255.255.255/",
        "http://224.0.0.1/",
        "http://[ff02::1]/",
    ] {
        for allow_private in [false, true] {
            let found = refusal(url, allow_private);
            assert!(matches!(found, Some(AddressError::Reserved(_))), "{url}: {found:?}");
        }
    }
}

#[test]
fn private_addresses_need_permission() {
    for url in [
        "http://10.0.0.1/v1",
        "http://172.16.9.9/v1",
        "http://192.168.1.2/v1",
        "http://100.64.0.1/v1",
        "http://198.18.0.1/v1",
        "http://[fd12::1]/v1",
        "http://[::ffff:10.0.0.1]/v1",
    ] {
        let found = refusal(url, false);
        assert!(matches!(found, Some(AddressError::Private(_))), "{url}: {found:?}");
        assert_eq!(refusal(url, true), None, "{url}");
    }
}

#[test]
fn loopback_is_permitted_only_where_it_is_meant() {
    for url in [
        "http://localhost:11434/v1",
        "http://LOCALHOST:11434/v1",
        "http://ollama.localhost/v1",
        "http://127.0.0.1:11434/v1",
        "http://[::1]:11434/v1",
        "http://[::ffff:127.0.0.1]/v1",
    ] {
        let base = BaseUrl::parse(url, false).unwrap();
        assert_eq!(base.policy(), AddressPolicy::Loopback, "{url}");
    }
    let named = BaseUrl::parse("https://api.example.com/v1", false).unwrap();
    assert_eq!(named.policy(), AddressPolicy::Public);
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    assert_eq!(named.policy().admit(loopback), Err(AddressError::Private(loopback)));
}

#[test]
fn a_loopback_name_reaches_nothing_else() {
    for address in ["10.0.0.1", "93.184.215.14", "2606:2800::1"] {
        let address = address.parse().unwrap();
        assert!(AddressPolicy::Loopback.admit(address).is_err(), "{address}");
    }
}

#[test]
fn public_addresses_pass() {
    for url in ["https://93.184.215.14/v1", "https://[2606:2800:21f::1]/v1"] {
        assert_eq!(refusal(url, false), None, "{url}");
    }
}

#[test]
fn only_a_plain_base_url_is_taken() {
    for (url, expected) in [
        ("", AddressError::NotAUrl),
        ("api.example.com", AddressError::NotAUrl),
        ("http://", AddressError::NotAUrl),
        ("ftp://example.com/", AddressError::Scheme),
        ("file:///etc/passwd", AddressError::Scheme),
        ("https://user:word@example.com/v1", AddressError::Extras),
        ("https://example.com/v1?key=1", AddressError::Extras),
        ("https://example.com/v1#x", AddressError::Extras),
    ] {
        assert_eq!(refusal(url, true), Some(expected), "{url}");
    }
}

#[test]
fn an_endpoint_is_below_the_base() {
    for base in ["https://example.com/v1", "https://example.com/v1/"] {
        let url = BaseUrl::parse(base, false).unwrap().endpoint("chat/completions");
        assert_eq!(url.as_str(), "https://example.com/v1/chat/completions");
    }
}

async fn resolve(policy: AddressPolicy, addresses: &[&str]) -> Result<Vec<SocketAddr>, String> {
    let addresses: Vec<SocketAddr> = addresses.iter().map(|text| text.parse().unwrap()).collect();
    let lookup: Lookup = Arc::new(move |_| {
        let addresses = addresses.clone();
        Box::pin(async move { Ok(addresses) })
    });
    let resolver = CheckedResolver::new(policy, lookup);
    let found = resolver.resolve("some.example".parse().unwrap()).await;
    found.map(Iterator::collect).map_err(|error| error.to_string())
}

#[tokio::test]
async fn only_permitted_addresses_are_handed_out() {
    let mixed = ["127.0.0.1:0", "93.184.215.14:0", "169.254.169.254:0"];
    let found = resolve(AddressPolicy::Public, &mixed).await.unwrap();
    assert_eq!(found, ["93.184.215.14:0".parse().unwrap()]);
    let none = resolve(AddressPolicy::Public, &["127.0.0.1:0"]).await;
    assert_eq!(none, Err(AddressError::NoneLeft.to_string()));
}

#[test]
fn nobody_is_made_to_fetch_from_inside() {
    for inside in [
        "http://169.254.169.254/latest/meta-data/",
        "http://2852039166/",
        "http://0xa9fea9fe/",
        "http://0251.0376.0251.0376/",
        "http://0xa9.254.0251.254/",
        "http://169.254.43518/",
        "http://[::ffff:169.254.169.254]/",
        "http://[::ffff:a9fe:a9fe]/",
        "http://[fe80::1]/",
        "http://[fd00:ec2::254]/",
        "http://[64:ff9b::a9fe:a9fe]/",
        "http://[2002:a9fe:a9fe::]/",
        "http://127.0.0.1:8420/",
        "http://127.1/",
        "http://0/",
        "http://[::1]/",
        "http://[::]/",
        "http://10.0.0.1/",
        "http://172.16.0.1/",
        "http://192.168.1.1/",
        "http://100.64.0.1/",
        "http://100.100.100.200/",
        "http://\u{ff11}\u{ff10}.0.0.1/",
        "http://\u{2460}0.0.0.1/",
        "http://localhost/",
        "http://LOCALHOST./",
        "http://a.localhost/",
        "http://metadata.google.internal/",
        "http://metadata/",
        "http://printer.local/",
        "http://db.default.svc/",
        "http://127.0.0.1.nip.io/",
        "http://localtest.me/",
        "https://user@example.com/",
        "http://example.com\\@169.254.169.254/",
        "http://exam\tple.com/",
        " http://example.com/",
        "file:///etc/passwd",
        "gopher://example.com/",
        "//example.com/a.png",
        "example.com/a.png",
        "",
    ] {
        assert!(check_fetched_url(inside).is_err(), "{inside:?}");
    }
    for public in [
        "https://example.com/a.png?width=3&x=http://10.0.0.1/#top",
        "http://example.com:8080/a",
        "https://8.8.8.8/a.png",
        "https://[2606:4700::1111]/a.png",
        "https://b\u{fc}cher.example.com/",
        "https://internal.example.com/",
        "https://notlocalhost.com/",
    ] {
        assert_eq!(check_fetched_url(public), Ok(()), "{public}");
    }
}

async fn checked(url: &str, allow_private: bool, addresses: &[&str]) -> Result<(), AddressError> {
    let addresses: Vec<SocketAddr> = addresses.iter().map(|one| one.parse().unwrap()).collect();
    let lookup: Lookup = Arc::new(move |_| {
        let addresses = addresses.clone();
        Box::pin(async move { Ok(addresses) })
    });
    BaseUrl::parse(url, allow_private)?.check_addresses(&lookup).await
}

#[tokio::test]
async fn a_name_is_refused_for_any_address_that_leads_inward() {
    let (public, inner) = ("93.184.215.14:0", "127.0.0.1:0");
    for (url, addresses, refused) in [
        ("https://hooks.example/x", vec![public], false),
        ("https://127.0.0.1.nip.io/x", vec![inner], true),
        ("https://localtest.me/x", vec![inner, "[::1]:0"], true),
        ("https://both.example/x", vec![public, inner], true),
        ("https://mapped.example/x", vec!["[::ffff:10.0.0.1]:0"], true),
        ("https://metadata.google.internal/x", vec![public], true),
        ("https://metadata.google.internal./x", vec![public], true),
        ("https://printer.local/x", vec![public], true),
        ("https://intranet/x", vec![public], true),
        ("https://nowhere.example/x", vec![], true),
        ("https://notlocal.example/x", vec![public], false),
    ] {
        assert_eq!(checked(url, false, &addresses).await.is_err(), refused, "{url}");
    }
    assert_eq!(checked("http://printer.local/x", true, &["10.0.0.1:0"]).await, Ok(()));
    assert!(checked("http://metadata.google.internal/x", true, &["10.0.0.1:0"]).await.is_err());
    assert!(checked("http://x.example/x", true, &["169.254.169.254:0"]).await.is_err(), "never");
}
