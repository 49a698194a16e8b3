//! Where a request may go: hosts by name, and addresses that are refused whatever their name.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use fimble_toolkit::{ErrorKind, ToolError};
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// One entry of a list of hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Host {
    /// Without the star and the brackets of an IPv6 address.
    name: String,
    /// The names below `name`, not `name` itself.
    below: bool,
    port: Option<u16>,
}

impl Host {
    /// # Errors
    /// What is wrong with the entry.
    pub(crate) fn parse(text: &str) -> Result<Self, ToolError> {
        let wrong = || {
            ToolError::invalid_argument(format!("`{text}` is no host for the HTTP toolkit"))
                .with_hint("write a name or an address, such as `api.example.com`, `*.example.com` or `10.0.0.1:8080`")
        };
        let (below, rest) = text.strip_prefix("*.").map_or((false, text), |rest| (true, rest));
        // A bare IPv6 address has colons of its own.
        let rest = if rest.parse::<Ipv6Addr>().is_ok() { format!("[{rest}]") } else { rest.to_owned() };
        let port = rest.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).filter(|_| !rest.ends_with(']'));
        let url = Url::parse(&format!("http://{rest}/")).map_err(|_| wrong())?;
        let is_plain =
            url.path() == "/" && url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
        let name =
            url.host_str().map(|host| host.trim_matches(['[', ']', '.']).to_owned()).filter(|name| !name.is_empty());
        match name {
            Some(name) if is_plain && !name.contains('*') && !rest.contains('/') => Ok(Self { name, below, port }),
            _ => Err(wrong()),
        }
    }

    pub(crate) fn means(&self, url: &Url) -> bool {
        let host = host_of(url);
        let named = if self.below {
            host.strip_suffix(&self.name).is_some_and(|rest| rest.ends_with('.'))
        } else {
            host == self.name
        };
        named && self.port.is_none_or(|port| url.port_or_known_default() == Some(port))
    }
}

fn host_of(url: &Url) -> &str {
    url.host_str().unwrap_or_default().trim_matches(['[', ']']).trim_end_matches('.')
}

/// Refuses what no request may go to. A name's addresses are looked at when it is resolved.
pub(crate) fn check(url: &Url, hosts: &[Host]) -> Result<(), ToolError> {
    let shown = host_of(url);
    if !matches!(url.scheme(), "http" | "https") {
        return Err(ToolError::invalid_argument(format!("`{}` is no scheme of HTTP", url.scheme()))
            .with_hint("the URL begins with http:// or https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(ToolError::invalid_argument("a URL cannot have a user and a password in it")
            .with_hint("name a secret in a header, as in {\"Authorization\": \"Bearer ${NAME}\"}"));
    }
    if shown.parse().is_ok_and(is_refused) {
        return Err(refused(shown));
    }
    if !hosts.is_empty() && !hosts.iter().any(|host| host.means(url)) {
        return Err(ToolError::new(ErrorKind::Denied, format!("requests to `{shown}` are not allowed"))
            .with_hint("`toolkits.http.hosts` names the hosts; tell the user if this one is needed"));
    }
    Ok(())
}

fn refused(host: &str) -> ToolError {
    ToolError::new(ErrorKind::Denied, format!("`{host}` is a link-local or metadata address; no request may go there"))
}

/// True for addresses that hand out credentials to whoever is on the machine, and for those that are nobody's.
pub(crate) fn is_refused(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            // The last one is a cloud's metadata service within a range that is private otherwise.
            address.is_link_local()
                || address.is_multicast()
                || address.is_broadcast()
                || address == Ipv4Addr::new(100, 100, 100, 200)
        }
        IpAddr::V6(address) => {
            const METADATA: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);
            address.is_unicast_link_local()
                || address.is_multicast()
                || address == METADATA
                || within(address).is_some_and(|inner| is_refused(IpAddr::V4(inner)))
        }
    }
}

/// The IPv4 address that an IPv6 address leads to: mapped, compatible, NAT64, 6to4.
fn within(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let joined = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Some(Ipv4Addr::new(a, b, c, d))
    };
    match [a, b, c, d, e, f] {
        [0, 0, 0, 0, 0, 0 | 0xffff] | [0x64, 0xff9b, 0, 0, 0, 0] | [0, 0, 0, 0, 0xffff, 0] => joined(g, h),
        [0x2002, high, low, ..] => joined(high, low),
        _ => None,
    }
}

/// Looks names up and leaves out the addresses that are refused.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lookup;

/// A name that has none but refused addresses.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` leads to a link-local or metadata address; no request may go there")]
pub(crate) struct RefusedName(String);

impl Resolve for Lookup {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            Ok(kept(name.as_str(), found)?)
        })
    }
}

fn kept(name: &str, found: impl Iterator<Item = SocketAddr>) -> Result<Addrs, RefusedName> {
    let (refused, kept): (Vec<_>, Vec<_>) = found.partition(|address| is_refused(address.ip()));
    if kept.is_empty() && !refused.is_empty() {
        return Err(RefusedName(name.to_owned()));
    }
    Ok(Box::new(kept.into_iter()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn metadata_is_refused_however_it_is_written() {
        for host in [
            "169.254.169.254",
            "169.254.0.1",
            "0xa9fea9fe",
            "2852039166",
            "0251.0376.0251.0376",
            "169.254.43518",
            "[::ffff:169.254.169.254]",
            "[::169.254.169.254]",
            "[64:ff9b::a9fe:a9fe]",
            "[2002:a9fe:a9fe::1]",
            "[fe80::1]",
            "[fd00:ec2::254]",
            "100.100.100.200",
            "224.0.0.1",
            "[ff02::1]",
            "255.255.255.255",
        ] {
            let error = check(&url(&format!("http://{host}/latest/meta-data/")), &[]).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Denied, "{host}");
            let listed: Vec<Host> = Host::parse(host).into_iter().collect();
            assert!(check(&url(&format!("http://{host}/")), &listed).is_err(), "{host} is refused if it is listed too");
        }
        for host in
            ["127.0.0.1", "localhost", "10.1.2.3", "192.168.0.1", "[::1]", "[fd00::1]", "1.1.1.1", "example.com"]
        {
            check(&url(&format!("https://{host}/")), &[]).unwrap();
        }
        for odd in ["ftp://a/", "file:///etc/passwd", "http://user@a/", "http://:password@a/"] {
            assert_eq!(check(&url(odd), &[]).unwrap_err().kind, ErrorKind::InvalidArgument, "{odd}");
        }
    }

    #[test]
    fn names_that_lead_to_metadata_are_refused() {
        let address = |text: &str| -> SocketAddr { text.parse().unwrap() };
        let (bad, good) = (address("169.254.169.254:0"), address("10.0.0.1:0"));
        assert_eq!(
            kept("evil.test", [bad].into_iter()).err().unwrap().to_string(),
            "`evil.test` leads to a link-local or metadata address; no request may go there"
        );
        assert_eq!(kept("half.test", [bad, good].into_iter()).unwrap().collect::<Vec<_>>(), [good]);
        assert_eq!(kept("none.test", [].into_iter()).unwrap().count(), 0);
    }

    #[test]
    fn a_list_of_hosts_lets_only_its_own_through() {
        let allowed = |list: &[&str], text: &str| {
            let hosts: Vec<Host> = list.iter().map(|host| Host::parse(host).unwrap()).collect();
            check(&url(text), &hosts).is_ok()
        };
        for (list, text, expected) in [
            (&["example.com"][..], "https://example.com/x", true),
            (&["Example.COM"], "https://EXAMPLE.com./x", true),
            (&["example.com"], "https://www.example.com/", false),
            (&["example.com"], "https://example.com.evil.test/", false),
            (&["*.example.com"], "https://a.b.example.com/", true),
            (&["*.example.com"], "https://example.com/", false),
            (&["*.example.com"], "https://badexample.com/", false),
            (&["example.com:8443"], "https://example.com:8443/", true),
            (&["example.com:443"], "https://example.com/", true),
            (&["example.com:80"], "http://example.com/", true),
            (&["example.com:8443"], "https://example.com/", false),
            (&["a.test", "10.0.0.1"], "http://10.0.0.1:9/", true),
            (&["::1"], "http://[::1]:9/", true),
            (&["[::1]:9"], "http://[::1]:8/", false),
            (&["127.0.0.1"], "http://localhost/", false),
        ] {
            assert_eq!(allowed(list, text), expected, "{list:?} {text}");
        }
        for wrong in ["", "*", "*.", "a b", "http://a", "a/b", "u@a", "a?b", "a:b", "*.*.a"] {
            assert!(Host::parse(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn any_entry_and_any_url_can_be_asked(entry in "\\PC{0,20}", text in "[a-z0-9.:\\[\\]@/*x]{0,24}") {
            if let (Ok(host), Ok(url)) = (Host::parse(&entry), Url::parse(&format!("http://{text}"))) {
                let _ = (host.means(&url), check(&url, &[host]));
            }
        }

        #[test]
        fn an_address_is_refused_in_every_form_or_in_none(bits in any::<u32>()) {
            let inner = Ipv4Addr::from(bits);
            let refused = is_refused(IpAddr::V4(inner));
            prop_assert_eq!(is_refused(IpAddr::V6(inner.to_ipv6_mapped())), refused);
            let [a, b, c, d] = inner.octets();
            prop_assert_eq!(Url::parse(&format!("http://{a}.{b}.{c}.{d}/")).is_ok_and(|url| check(&url, &[]).is_err()), refused);
            prop_assert_eq!(Url::parse(&format!("http://{bits:#x}/")).is_ok_and(|url| check(&url, &[]).is_err()), refused);
        }
    }
}
