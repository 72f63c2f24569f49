//! R81: whoever should not come in does not, and the session goes on.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use retake_web::Limits;
use serde_json::json;

use crate::browser::Browser;
use crate::stage::Stage;
use crate::watcher::Watcher;

/// A stage with a session that somebody watches.
fn scene() -> (Stage, Browser, String, Watcher) {
    let stage = Stage::new();
    let browser = Browser::signed_in(&stage);
    let session = browser.begin();
    let watcher = Watcher::of(&browser, &session);
    (stage, browser, session, watcher)
}

#[test]
fn a_server_that_is_asked_for_by_another_name_says_nothing() {
    let (stage, browser, session, _watcher) = scene();
    let port = stage.address().port();
    let events = format!("/api/sessions/{session}/events");
    for host in [
        format!("evil.example:{port}"),
        "evil.example".to_owned(),
        "localhost".to_owned(),
        format!("127.0.0.1:{}", port ^ 1),
    ] {
        for path in ["/", "/api/sessions", &events, "/index.html"] {
            let answer = browser.ask("GET", path, &["Host"], &[("Host", &host)]);
            assert_eq!(answer.status, 421, "{host} {path}");
        }
        let answer = browser.ask("POST", "/api/sessions", &["Host"], &[("Host", &host)]);
        assert_eq!(answer.status, 421, "{host}");
    }
    let twice = browser.ask("GET", "/", &[], &[("Host", "evil.example")]);
    assert_eq!(twice.status, 421);
    let absolute = browser.ask("GET", "http://evil.example/api/sessions", &[], &[]);
    assert_eq!(absolute.status, 421);
    let none = browser.send(b"GET /api/sessions HTTP/1.1\r\n\r\n");
    assert!([400, 421].contains(&none.status), "{none:?}");
    let localhost = format!("localhost:{port}");
    assert_eq!(browser.ask("GET", "/api/sessions", &["Host"], &[("Host", &localhost)]).status, 200);
    browser.works(&session);
}

#[test]
fn other_pages_can_neither_read_nor_write() {
    let (stage, browser, session, _watcher) = scene();
    let port = stage.address().port();
    let (events, commands) = (format!("/api/sessions/{session}/events"), format!("/api/sessions/{session}/commands"));
    let neighbour = format!("http://127.0.0.1:{}", port ^ 1);
    let renamed = format!("http://localhost:{port}");
    for origin in ["http://evil.example", "null", &neighbour, &renamed, "https://127.0.0.1", ""] {
        for (method, path) in [
            ("GET", "/api/sessions"),
            ("GET", &events),
            ("POST", "/api/sessions"),
            ("POST", &commands),
            ("OPTIONS", &commands),
        ] {
            let answer = browser.ask(method, path, &["Origin", "Sec-Fetch-Site"], &[("Origin", origin)]);
            assert_eq!(answer.status, 403, "{origin} {method} {path}");
            assert!(!answer.headers.iter().any(|(name, _)| name.starts_with("access-control")), "{answer:?}");
        }
        let answer = browser.ask("DELETE", &format!("/api/sessions/{session}"), &["Origin"], &[("Origin", origin)]);
        assert_eq!(answer.status, 403, "{origin}");
    }
    for site in ["cross-site", "same-site"] {
        for path in ["/api/sessions", &events] {
            let answer = browser.ask("GET", path, &["Sec-Fetch-Site"], &[("Sec-Fetch-Site", site)]);
            assert_eq!(answer.status, 403, "{site} {path}");
        }
        let answer =
            browser.ask("GET", "/", &["Sec-Fetch-Site"], &[("Sec-Fetch-Site", site), ("Sec-Fetch-Mode", "no-cors")]);
        assert_eq!(answer.status, 403, "{site}: the page is no script of theirs");
    }
    for missing in ["Origin", "X-Retake", "Content-Type"] {
        let answer = browser.ask("POST", &commands, &[missing], &[]);
        assert_eq!(answer.status, if missing == "Content-Type" { 415 } else { 403 }, "{missing}");
    }
    let form = browser.ask("POST", &commands, &["Content-Type"], &[("Content-Type", "text/plain")]);
    assert_eq!(form.status, 415);
    browser.works(&session);
}

#[test]
fn whoever_has_no_cookie_is_told_how_to_get_one_and_nothing_else() {
    let (stage, browser, session, _watcher) = scene();
    let stranger = Browser::stranger(&stage);
    for (method, path) in [
        ("GET", "/api/sessions".to_owned()),
        ("POST", "/api/sessions".to_owned()),
        ("DELETE", format!("/api/sessions/{session}")),
        ("GET", format!("/api/sessions/{session}/events")),
        ("POST", format!("/api/sessions/{session}/commands")),
    ] {
        let answer = stranger.ask(method, &path, &[], &[]);
        assert_eq!(answer.error(), "401 you are not signed in", "{method} {path}");
        assert!(answer.json()["error"]["hint"].as_str().unwrap().contains("`retake serve`"));
    }
    let page = stranger.get("/");
    assert_eq!(page.status, 401);
    assert!(page.body.contains("<code>retake serve</code>") && !page.body.contains("script"), "{}", page.body);
    assert_eq!(stranger.get("/index.html").status, 401);
    assert_eq!(stranger.get("/api/nothing").error(), "404 there is nothing here");
    let cookie = browser.cookie.unwrap();
    for bad in [cookie.replace('.', ":"), format!("{}0", &cookie[..cookie.len() - 1]), "retake_1=x".to_owned()] {
        if bad != cookie {
            let forger = Browser { cookie: Some(bad), ..stranger.clone() };
            assert_eq!(forger.get("/api/sessions").status, 401);
        }
    }
}

#[test]
fn a_token_is_good_once_and_guesses_are_few() {
    let stage = Stage::with(Limits { wrong_tokens: 3, ..Limits::default() });
    let mut browser = Browser::stranger(&stage);
    let url = stage.url();
    let path = &url[url.find("/?").unwrap()..];
    // Neither a look ahead, nor a link on another page, nor somebody who only wants to know uses it up.
    assert_eq!(browser.ask("GET", path, &[], &[("Sec-Purpose", "prefetch")]).status, 403);
    assert_eq!(
        browser
            .ask("GET", path, &["Sec-Fetch-Site"], &[("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate")])
            .status,
        403
    );
    assert_eq!(browser.get(&format!("{path}x")).status, 403);
    let signed_in = browser.get(path);
    let cookie = signed_in.header("set-cookie").unwrap();
    for part in ["; HttpOnly", "; SameSite=Strict", "; Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let replayed = browser.get(path);
    assert_eq!((replayed.status, replayed.header("set-cookie")), (403, None));
    assert!(replayed.body.contains("each works once") && replayed.body.contains("<code>retake serve</code>"));
    browser.cookie = Some(cookie.split(';').next().unwrap().to_owned());
    let known = browser.get(path);
    assert_eq!((known.status, known.header("location")), (303, Some("/")), "whoever is in stays in");
    let stranger = Browser::stranger(&stage);
    let url = stage.url();
    let path = &url[url.find("/?").unwrap()..];
    assert_eq!(browser.get(path).status, 303);
    assert_eq!(stranger.get(path).status, 403, "one that somebody who is in has used is used up too");
    let limited = stranger.get("/?token=guess");
    assert_eq!((limited.status, limited.header("retry-after")), (429, Some("60")));
    assert_eq!(browser.get("/api/sessions").status, 200, "whoever is in is not kept out");
    let url = stage.url();
    assert_eq!(stranger.get(&url[url.find("/?").unwrap()..]).status, 303, "nor is whoever has the right one");
    let key = fs::metadata(stage.dir.path().join("data/web.key")).unwrap();
    assert_eq!((key.permissions().mode() & 0o777, key.len()), (0o600, 32));
}

#[test]
fn no_path_leads_to_a_file_that_is_not_the_page() {
    let (stage, browser, session, _watcher) = scene();
    stage.write("secret.txt", "a secret");
    let paths = [
        "/../../../../etc/passwd",
        "/assets/../../../../etc/passwd",
        "/assets/..%2f..%2f..%2fetc%2fpasswd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/assets/%2e%2e%5c%2e%2e%5cetc%5cpasswd",
        "/assets//etc/passwd",
        "//etc/passwd",
        "/etc/passwd",
        "/secret.txt",
        "/w/secret.txt",
        "/data/web.key",
        "/assets/",
        "/assets",
        "/assets/%00",
        "/index.html%00.js",
        "/.git/config",
        "/Cargo.toml",
    ];
    for path in paths {
        let answer = browser.get(path);
        assert_eq!(answer.status, 404, "{path}: {answer:?}");
        assert!(!answer.body.contains("root:") && !answer.body.contains("secret"), "{path}: {answer:?}");
    }
    for id in ["..", "%2e%2e", "..%2f..", "....", "%00%00%00%00", "0123/../0123"] {
        for path in [format!("/api/sessions/{id}/events"), format!("/api/{id}")] {
            assert_eq!(browser.get(&path).error(), "404 there is nothing here", "{path}");
        }
    }
    browser.works(&session);
}

#[test]
fn every_answer_forbids_what_the_page_does_not_need() {
    let (_stage, browser, session, _watcher) = scene();
    let page = browser.get("/");
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                  base-uri 'none'; frame-ancestors 'none'; form-action 'none'";
    for answer in [&page, &browser.get("/api/sessions"), &browser.get("/nothing"), &browser.get("/api/nothing")] {
        assert_eq!(answer.header("content-security-policy"), Some(policy));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(answer.header("cross-origin-resource-policy"), Some("same-origin"));
    }
    let tag = page.header("etag").unwrap();
    let again = browser.ask("GET", "/", &[], &[("If-None-Match", tag)]);
    assert_eq!((again.status, again.body.as_str()), (304, ""));
    assert_eq!(page.header("cache-control"), Some("no-cache"));
    let wrong = browser.ask("DELETE", "/api/sessions", &[], &[]);
    assert_eq!((wrong.status, wrong.header("allow")), (405, Some("GET, POST")));
    let wrong = browser.ask("POST", &format!("/api/sessions/{session}/events"), &[], &[]);
    assert_eq!((wrong.status, wrong.header("allow")), (405, Some("GET")));
    let wrong = browser.ask("POST", "/", &[], &[]);
    assert_eq!((wrong.status, wrong.header("allow")), (405, Some("GET, HEAD")));
    let answer = browser.command(&session, "1", &json!({"type": "answer", "call": "x", "answer": {"type": "allow"}}));
    assert!(answer["refused"].is_object());
}
