//! Accepts requests that are for this server and come from its own page.
//!
//! Every page in the browser can send requests here, and its owner can make a name of theirs point here. So the `SessionOpener` of a request must be
//! an address of this server or `localhost`, and a request that reads or changes a session must come from the page that this server has
//! served, by `Origin` and `Sec-Fetch-Site`. Another port of this machine is another origin, though for cookies it is the same site.
//!
//! Reads headers only; it knows neither users nor sessions. A request that fails the check is rejected, streams included.

use std::net::{IpAddr, SocketAddr};

use hyper::header::{HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN};
use hyper::{Method, Uri};

/// Browsers tell in it where a request comes from, and no script can set it.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// Which names this server answers to.
#[derive(Clone, Debug)]
pub(crate) struct OriginCheck {
    address: SocketAddr,
}

/// Where a request comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    /// Our own page, the user, or no browser at all.
    Us,
    /// Another page.
    Elsewhere,
}

impl OriginCheck {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self { address }
    }

    /// The host that a request names, if that is this server.
    pub(crate) fn host<'a>(&self, uri: &Uri, headers: &'a HeaderMap) -> Option<&'a str> {
        let host = only(headers, &HOST)?;
        let is_same = |authority: &hyper::http::uri::Authority| authority.as_str().eq_ignore_ascii_case(host);
        (self.answers_to(host) && uri.authority().is_none_or(is_same)).then_some(host)
    }

    fn answers_to(&self, host: &str) -> bool {
        let port = self.address.port();
        let (name, named_port) = match host.rsplit_once(':') {
            // The colons of an address in brackets are its own.
            Some((name, digits)) if !digits.ends_with(']') => (name, digits),
            _ => (host, "80"),
        };
        if named_port.parse() != Ok(port) || named_port.starts_with(['+', '0']) {
            return false;
        }
        if name.eq_ignore_ascii_case("localhost") {
            return true;
        }
        let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        let Ok(named) = name.parse::<IpAddr>() else { return false };
        let own = self.address.ip();
        // Only a name can be made to point here; an address is what it is. On all addresses it listens on request only.
        named.is_loopback() || named == own || own.is_unspecified()
    }

    /// Where a request to read or change something comes from; `host` is the one that it named.
    pub(crate) fn from(method: &Method, host: &str, headers: &HeaderMap) -> From {
        let is_reading = matches!(*method, Method::GET | Method::HEAD);
        let site = match site(headers) {
            Site::Untold | Site::Ours => true,
            Site::User => is_reading,
            Site::Other => false,
        };
        let mut origins = headers.get_all(ORIGIN).iter();
        let is_own = |origin: &HeaderValue| {
            let named = origin.to_str().ok().and_then(|origin| origin.strip_prefix("http://"));
            named.is_some_and(|named| named.eq_ignore_ascii_case(host))
        };
        let origin = match (origins.next(), origins.next()) {
            // Browsers always name the origin of what changes something.
            (None, _) => is_reading,
            (Some(origin), None) => is_own(origin),
            (Some(_), Some(_)) => false,
        };
        if site && origin { From::Us } else { From::Elsewhere }
    }

    /// Where a request for a file of the page comes from. Whoever follows a link to the page may come from anywhere.
    pub(crate) fn from_for_page(headers: &HeaderMap) -> From {
        let is_navigation = headers.get(FETCH_MODE).is_some_and(|mode| mode == "navigate");
        match site(headers) {
            Site::Other if !is_navigation => From::Elsewhere,
            _ => From::Us,
        }
    }

    /// Whether somebody was led here by another page.
    pub(crate) fn is_led_here(headers: &HeaderMap) -> bool {
        site(headers) == Site::Other
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Site {
    Untold,
    Ours,
    /// Typed, or opened by another program.
    User,
    Other,
}

fn site(headers: &HeaderMap) -> Site {
    if !headers.contains_key(FETCH_SITE) {
        return Site::Untold;
    }
    match only(headers, &FETCH_SITE) {
        Some("same-origin") => Site::Ours,
        Some("none") => Site::User,
        _ => Site::Other,
    }
}

/// The value of a header that is there exactly once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may")]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    fn answers(address: &str, host: &str) -> bool {
        let origin_check = OriginCheck::new(address.parse().unwrap());
        origin_check.host(&"/".parse().unwrap(), &headers(&[("host", host)])).is_some()
    }

    #[test]
    fn it_answers_to_addresses_and_to_localhost_and_to_no_other_name() {
        for host in ["127.0.0.1:8000", "localhost:8000", "LocalHost:8000", "[::1]:8000"] {
            assert!(answers("127.0.0.1:8000", host), "{host}");
        }
        let unauthenticated = [
            "evil.example:8000",
            "127.0.0.1.evil.example:8000",
            "localhost.evil.example:8000",
            "localhost:8001",
            "localhost:08000",
            "localhost:+8000",
            "localhost",
            "127.0.0.1",
            "10.0.0.7:8000",
            "[::1]",
            ":8000",
            "",
            "user@localhost:8000",
        ];
        for host in unauthenticated {
            assert!(!answers("127.0.0.1:8000", host), "{host}");
        }
        assert!(answers("127.0.0.1:80", "localhost") && answers("[::1]:80", "[::1]"));
        assert!(answers("10.0.0.7:8000", "10.0.0.7:8000") && !answers("10.0.0.7:8000", "10.0.0.8:8000"));
        assert!(answers("0.0.0.0:8000", "10.0.0.8:8000") && !answers("0.0.0.0:8000", "evil.example:8000"));
    }

    #[test]
    fn a_host_that_is_named_twice_or_in_two_ways_is_none() {
        let origin_check = OriginCheck::new("127.0.0.1:8000".parse().unwrap());
        let twice = headers(&[("host", "localhost:8000"), ("host", "localhost:8000")]);
        assert_eq!(origin_check.host(&"/".parse().unwrap(), &twice), None);
        assert_eq!(origin_check.host(&"/".parse().unwrap(), &headers(&[])), None);
        let once = headers(&[("host", "localhost:8000")]);
        assert_eq!(origin_check.host(&"http://evil.example/".parse().unwrap(), &once), None);
        assert_eq!(origin_check.host(&"http://localhost:8000/".parse().unwrap(), &once), Some("localhost:8000"));
    }

    fn from(method: &Method, pairs: &[(&'static str, &str)]) -> From {
        OriginCheck::from(method, "localhost:8000", &headers(pairs))
    }

    #[test]
    fn only_our_own_page_and_the_user_may_read() {
        let get = Method::GET;
        let ours: [&[(&str, &str)]; 4] = [
            &[],
            &[("sec-fetch-site", "same-origin")],
            &[("sec-fetch-site", "none")],
            &[("origin", "http://localhost:8000")],
        ];
        ours.into_iter().for_each(|pairs| assert_eq!(from(&get, pairs), From::Us, "{pairs:?}"));
        let others: [&[(&str, &str)]; 8] = [
            &[("sec-fetch-site", "cross-site")],
            &[("sec-fetch-site", "same-site")],
            &[("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")],
            &[("origin", "http://localhost:8001")],
            &[("origin", "http://127.0.0.1:8000")],
            &[("origin", "https://localhost:8000")],
            &[("origin", "null")],
            &[("origin", "http://localhost:8000"), ("origin", "http://evil.example")],
        ];
        others.into_iter().for_each(|pairs| assert_eq!(from(&get, pairs), From::Elsewhere, "{pairs:?}"));
    }

    #[test]
    fn whoever_changes_something_names_its_origin() {
        let post = Method::POST;
        assert_eq!(from(&post, &[("origin", "http://localhost:8000")]), From::Us);
        assert_eq!(from(&post, &[]), From::Elsewhere);
        assert_eq!(from(&post, &[("origin", "http://localhost:8000"), ("sec-fetch-site", "none")]), From::Elsewhere);
        assert_eq!(from(&Method::OPTIONS, &[]), From::Elsewhere);
    }

    #[test]
    fn other_pages_may_link_to_the_page_and_take_nothing_of_it() {
        let cross = ("sec-fetch-site", "cross-site");
        assert_eq!(OriginCheck::from_for_page(&headers(&[cross, ("sec-fetch-mode", "navigate")])), From::Us);
        assert_eq!(OriginCheck::from_for_page(&headers(&[cross, ("sec-fetch-mode", "no-cors")])), From::Elsewhere);
        assert_eq!(OriginCheck::from_for_page(&headers(&[])), From::Us);
        assert!(OriginCheck::is_led_here(&headers(&[cross])));
    }
}
