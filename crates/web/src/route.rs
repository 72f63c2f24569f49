//! Which request is what, and what every answer has in common.
//!
//! The order of checks: is it for this server; does it come from our page; is there such a thing; does the client have a cookie. What is
//! in the body is looked at last.

use std::convert::Infallible;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{
    ACCEPT_ENCODING, ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderMap,
    HeaderName, HeaderValue, IF_NONE_MATCH, LOCATION, REFERRER_POLICY, RETRY_AFTER, SET_COOKIE, VARY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::{Method, Request, StatusCode};

use crate::api;
use crate::host::Problem;
use crate::login::LoginOutcome;
use crate::origin_check::{From, OriginCheck};
use crate::page;
use crate::response::{self, Answer};
use crate::server::Shared;

/// Nothing but what this server serves, and nothing inline.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      base-uri 'none'; frame-ancestors 'none'; form-action 'none'";
/// A page elsewhere cannot send it without being asked about first, which is refused.
const OUR_HEADER: HeaderName = HeaderName::from_static("x-retake");
/// Browsers tell in it that nobody may ever look at the answer.
const PURPOSE: HeaderName = HeaderName::from_static("sec-purpose");

/// What a path of the API is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Endpoint<'a> {
    Sessions,
    Session(&'a str),
    Events(&'a str),
    Commands(&'a str),
}

impl<'a> Endpoint<'a> {
    fn find(path: &'a str) -> Option<Self> {
        let mut parts = path.strip_prefix("/api/sessions")?.split('/');
        if parts.next() != Some("") {
            return None;
        }
        // As it is sent: whatever is written in another way names nothing.
        let is_id = |text: &str| (4..=20).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        match (parts.next(), parts.next(), parts.next()) {
            (None, ..) => Some(Self::Sessions),
            (Some(id), None, _) if is_id(id) => Some(Self::Session(id)),
            (Some(id), Some("events"), None) if is_id(id) => Some(Self::Events(id)),
            (Some(id), Some("commands"), None) if is_id(id) => Some(Self::Commands(id)),
            _ => None,
        }
    }

    fn methods(self) -> &'static [Method] {
        match self {
            Self::Sessions => &[Method::GET, Method::POST],
            Self::Session(_) => &[Method::DELETE],
            Self::Events(_) => &[Method::GET],
            Self::Commands(_) => &[Method::POST],
        }
    }
}

/// Answers a request.
pub(crate) async fn handle(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Answer, Infallible> {
    let mut answer = match is_api(request.uri().path()) {
        true => answer_api(&shared, request).await.unwrap_or_else(|problem| response::problem(&problem)),
        false => answer_page(&shared, &request),
    };
    let headers = answer.headers_mut();
    let mut set = |name: HeaderName, value: &'static str| drop(headers.insert(name, HeaderValue::from_static(value)));
    set(CONTENT_SECURITY_POLICY, POLICY);
    set(X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(X_FRAME_OPTIONS, "DENY");
    set(REFERRER_POLICY, "no-referrer");
    set(HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
    set(HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    Ok(answer)
}

fn is_api(path: &str) -> bool {
    path == "/api" || path.starts_with("/api/")
}

async fn answer_api(shared: &Shared, request: Request<Incoming>) -> Result<Answer, Problem> {
    let (uri, headers, method) = (request.uri(), request.headers(), request.method());
    let host =
        shared.origin_check.host(uri, headers).ok_or_else(|| Problem::new(421, "this server has another name"))?;
    if OriginCheck::from(method, host, headers) == From::Elsewhere {
        return Err(Problem::new(403, "this comes from another page, or does not say where from"));
    }
    let path = uri.path().to_owned();
    let endpoint = Endpoint::find(&path).ok_or_else(|| Problem::new(404, "there is nothing here"))?;
    let methods = endpoint.methods();
    if !methods.contains(method) {
        return Ok(wrong_method(methods, response::problem(&Problem::new(405, "this cannot be done here"))));
    }
    if !shared.login.is_known(headers) {
        return Err(Problem::new(401, "you are not signed in").hint(HOW_TO_COME_IN));
    }
    if *method != Method::GET {
        check_form(&request)?;
    }
    match (endpoint, method) {
        (Endpoint::Sessions, &Method::GET) => {
            let search = uri.query().and_then(|query| parameter(query, "search"));
            api::list(shared, search.filter(|query| !query.trim().is_empty())).await
        }
        (Endpoint::Sessions, _) => api::open_new(shared).await,
        (Endpoint::Session(id), _) => api::delete(shared, id).await,
        (Endpoint::Events(id), _) => {
            let from = uri.query().and_then(|query| parameter(query, "from"));
            api::events(shared, id, &request, from.as_deref()).await
        }
        (Endpoint::Commands(id), _) => api::command(shared, id, request).await,
    }
}

/// Whether a request that changes something is one that no form on another page could send.
fn check_form(request: &Request<Incoming>) -> Result<(), Problem> {
    if request.headers().get(OUR_HEADER).is_none_or(|value| value != "1") {
        return Err(Problem::new(403, "the header `X-Retake: 1` is missing"));
    }
    let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let is_json = kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"));
    if *request.method() == Method::POST && !is_json {
        return Err(Problem::new(415, "the header `Content-Type: application/json` is missing"));
    }
    Ok(())
}

/// What to do without a cookie.
const HOW_TO_COME_IN: &str = "open the address that `retake serve` prints; press Enter in its terminal for a new one. If you came here \
                              by `/web` in Retake's terminal, type that again";

fn answer_page(shared: &Shared, request: &Request<Incoming>) -> Answer {
    let (uri, headers, method) = (request.uri(), request.headers(), request.method());
    if shared.origin_check.host(uri, headers).is_none() {
        return response::words(StatusCode::MISDIRECTED_REQUEST, "This is not the server you asked for", &[]);
    }
    let methods = &[Method::GET, Method::HEAD];
    if !methods.contains(method) {
        let words = response::words(StatusCode::METHOD_NOT_ALLOWED, "This cannot be done here", &[]);
        return wrong_method(methods, words);
    }
    if OriginCheck::from_for_page(headers) == From::Elsewhere {
        return response::words(StatusCode::FORBIDDEN, "This is for Retake's own page only", &[]);
    }
    let token = uri.query().filter(|_| uri.path() == "/").and_then(|query| parameter(query, "token"));
    let is_known = shared.login.is_known(headers);
    match token.as_deref() {
        Some(token) if is_known => {
            // Nobody else may use it later: it stays in histories and on command lines.
            shared.login.spend(token);
            to_page()
        }
        Some(token) => sign_in(shared, request, token),
        None if !is_known && uri.path() != response::WORDS_STYLE => {
            response::words(StatusCode::UNAUTHORIZED, "You are not signed in", &[&instructions()])
        }
        None => file(request),
    }
}

fn sign_in(shared: &Shared, request: &Request<Incoming>, token: &str) -> Answer {
    let (headers, method) = (request.headers(), request.method());
    // Nobody has asked for it who could use the cookie, and the token can be used once only.
    if *method != Method::GET || headers.contains_key(PURPOSE) || OriginCheck::is_led_here(headers) {
        let lines = ["Copy the address into the address bar instead of following a link to it.", &instructions()];
        return response::words(StatusCode::FORBIDDEN, "You are not signed in", &lines);
    }
    match &shared.login.exchange(token) {
        LoginOutcome::Cookie(cookie) => {
            let mut answer = to_page();
            if let Ok(cookie) = HeaderValue::from_str(cookie) {
                answer.headers_mut().insert(SET_COOKIE, cookie);
            }
            answer
        }
        LoginOutcome::Wrong => {
            let lines = ["This address has been used, or is not one of this server: each works once.", &instructions()];
            response::words(StatusCode::FORBIDDEN, "You are not signed in", &lines)
        }
        LoginOutcome::TooMany => {
            let lines = ["There were too many wrong addresses. Wait for a minute, then try again."];
            let mut answer = response::words(StatusCode::TOO_MANY_REQUESTS, "You are not signed in", &lines);
            answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("60"));
            answer
        }
    }
}

fn instructions() -> String {
    let marked =
        HOW_TO_COME_IN.replace("`retake serve`", "<code>retake serve</code>").replace("`/web`", "<code>/web</code>");
    format!("{}.", marked.replacen("open", "Open", 1))
}

/// Sends the browser to the page, without the token in its address.
fn to_page() -> Answer {
    let mut answer = response::empty(StatusCode::SEE_OTHER);
    answer.headers_mut().insert(LOCATION, HeaderValue::from_static("/"));
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

fn file(request: &Request<Incoming>) -> Answer {
    let Some(file) = page::find(request.uri().path()) else {
        return response::words(StatusCode::NOT_FOUND, "There is nothing here", &[]);
    };
    let is_known =
        |tags: &HeaderValue| tags.to_str().is_ok_and(|tags| tags.split(',').any(|tag| tag.trim() == file.tag));
    let zipped = file.zipped.as_ref().filter(|_| takes_zipped(request.headers()));
    let mut answer = match request.headers().get(IF_NONE_MATCH).is_some_and(is_known) {
        true => response::empty(StatusCode::NOT_MODIFIED),
        false => response::of_kind(StatusCode::OK, file.kind, zipped.unwrap_or(&file.content).clone()),
    };
    if zipped.is_some() && answer.status() == StatusCode::OK {
        answer.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    answer.headers_mut().insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    let caching = if file.is_immutable { "private, max-age=31536000, immutable" } else { "no-cache" };
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static(caching));
    if let Ok(tag) = HeaderValue::from_str(&file.tag) {
        answer.headers_mut().insert(ETAG, tag);
    }
    answer
}

/// Whether a client says that it can unzip. Browsers name what they take; one that weighs it is given what nobody can misread.
fn takes_zipped(headers: &HeaderMap) -> bool {
    let named = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    named.flat_map(|value| value.split(',')).any(|one| one.trim().eq_ignore_ascii_case("gzip"))
}

fn wrong_method(methods: &[Method], mut answer: Answer) -> Answer {
    let methods: Vec<&str> = methods.iter().map(Method::as_str).collect();
    if let Ok(methods) = HeaderValue::from_str(&methods.join(", ")) {
        answer.headers_mut().insert(ALLOW, methods);
    }
    answer
}

/// A parameter of the query. What is no UTF-8 is replaced.
fn parameter(query: &str, name: &str) -> Option<String> {
    form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded_whatever_is_in_them() {
        for (coded, text) in
            [("a+b%20c", "a b c"), ("%C3%A9", "é"), ("%", "%"), ("%4", "%4"), ("%zz%ff", "%zz\u{fffd}"), ("%+1", "% 1")]
        {
            let query = format!("other=1&search={coded}&search=second");
            assert_eq!(parameter(&query, "search").as_deref(), Some(text), "{coded}");
        }
    }

    #[test]
    fn paths_are_taken_as_they_are_written() {
        let id = "0123456789abcdef0123";
        let find = Endpoint::find;
        assert_eq!(find("/api/sessions"), Some(Endpoint::Sessions));
        assert_eq!(find("/api/sessions/0123"), Some(Endpoint::Session("0123")));
        let events = format!("/api/sessions/{id}/events");
        assert_eq!(find(&events), Some(Endpoint::Events(id)));
        let commands = format!("/api/sessions/{id}/commands");
        assert_eq!(find(&commands), Some(Endpoint::Commands(id)));
        let nothing = [
            "/api/sessionsx",
            "/api/sessions/",
            "/api/sessions/..",
            "/api/sessions/%2e%2e/events",
            "/api/sessions/0123/",
            "/api/sessions/0123/events/",
            "/api/sessions/0123/events/x",
            "/api//sessions",
            "/api/sessions/0123456789abcdef01234",
            "/api/sessions/über",
        ];
        nothing.into_iter().for_each(|path| assert_eq!(find(path), None, "{path}"));
    }
}
