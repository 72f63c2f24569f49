//! Settings as people write them.

use super::*;

fn parse(model: &str, base_url: Option<&str>) -> Result<ModelSettings, SettingsError> {
    ModelSettings::parse(model, base_url, |_| Some("sk-secret".to_owned()))
}

fn endpoint(model: &str, base_url: &str) -> String {
    parse(model, Some(base_url)).expect("it is good").endpoint().to_string()
}

#[test]
fn a_model_is_named_by_its_api_and_its_name() {
    let claude = parse("anthropic/claude-sonnet-4-5", None).expect("it is good");
    assert_eq!((claude.api, claude.name.as_str()), (Api::Anthropic, "claude-sonnet-4-5"));
    assert_eq!(claude.place(), "https://api.anthropic.com");
    let routed = parse("openai/deepseek/deepseek-chat", Some("https://openrouter.ai/api/v1/")).expect("it is good");
    assert_eq!((routed.api, routed.name.as_str()), (Api::OpenAi, "deepseek/deepseek-chat"));
    assert_eq!(routed.full_name(), "openai/deepseek/deepseek-chat");
    assert!(routed.is_at("openrouter.ai") && !routed.is_at("router.ai"));
}

#[test]
fn an_unknown_provider_is_told_the_two_forms() {
    for given in ["gpt-5", "gemini/pro", "openai/", "/x", ""] {
        let error = parse(given, None).expect_err("it is bad").to_string();
        assert!(error.contains("`anthropic/NAME` or `openai/NAME`"), "{error}");
    }
}

#[test]
fn a_missing_key_is_an_error_that_names_the_variable_unless_the_server_is_local() {
    let parse = |model: &str, url| ModelSettings::parse(model, url, |_| None);
    let error = parse("anthropic/claude", None).expect_err("it is bad");
    assert_eq!(error.to_string(), "no key for `anthropic/claude`: set ANTHROPIC_API_KEY");
    let error = parse("openai/x", Some("https://api.deepseek.com")).expect_err("it is bad");
    assert!(matches!(error, SettingsError::NoKey { variable: "OPENAI_API_KEY", .. }));
    for local in ["http://localhost:11434/v1", "http://127.0.0.1:1", "http://[::1]:8080/v1", "http://llm.localhost"] {
        assert!(parse("openai/x", Some(local)).expect("it is good").is_local(), "{local}");
    }
    assert!(parse("openai/x", Some("http://localhost.example.com")).is_err());
}

#[test]
fn base_urls_work_however_they_are_pasted() {
    for base in
        ["https://h.com", "https://h.com/", "https://h.com/v1", "https://h.com/v1/", "https://h.com/v1/messages"]
    {
        assert_eq!(endpoint("anthropic/x", base), "https://h.com/v1/messages", "{base}");
    }
    assert_eq!(endpoint("anthropic/x", "https://h.com/anthropic"), "https://h.com/anthropic/v1/messages");
    for base in ["https://h.com", "https://h.com/v1/", "https://h.com/v1/chat/completions"] {
        assert_eq!(endpoint("openai/x", base), "https://h.com/v1/chat/completions", "{base}");
    }
    assert_eq!(endpoint("openai/x", "https://h.com/api/v3"), "https://h.com/api/v3/chat/completions");
    assert!(parse("openai/x", Some("localhost:8080")).is_err());
    assert!(parse("openai/x", Some("nowhere")).is_err());
}

#[test]
fn a_key_never_shows_itself() {
    let settings = parse("openai/x", Some("http://me:hush@h.com/v1")).expect("it is good");
    let key = settings.key.clone().expect("it is good");
    assert_eq!(key.secret(), "sk-secret");
    for shown in [format!("{key}"), format!("{key:?}"), format!("{settings:?}")] {
        assert!(!shown.contains("sk-secret"), "{shown}");
    }
    assert_eq!(settings.place(), "http://h.com/v1");
    assert_eq!(key.remove_from("bad key sk-secret!"), "bad key [key]!");
    assert_eq!(Key::new(" \n"), None);
}

#[test]
fn cached_tokens_have_their_own_price() {
    let prices = Prices { input: 3.0, output: 15.0, cache_read: 0.3, cache_write: 3.75 };
    let usage = Usage { input: 1_000_000, output: 100_000, cache_read: 600_000, cache_write: 200_000, cost: None };
    assert!((prices.cost(&usage) - (0.6 + 1.5 + 0.18 + 0.75)).abs() < 1e-9);
}

#[test]
fn efforts_are_read_as_they_are_written() {
    assert_eq!(Effort::parse(Effort::XHigh.as_str()), Some(Effort::XHigh));
    assert_eq!(Effort::parse("enormous"), None);
}

#[test]
fn nothing_of_a_base_url_that_may_be_a_key_is_shown() {
    let settings =
        ModelSettings::parse("openai/m", Some("http://u:URL%20PASS@localhost:1/v1?key=Q-K%2BEY123&v=1#x"), |_| None);
    let settings = settings.expect("it is a model");
    assert_eq!(settings.place(), "http://localhost:1/v1");
    assert_eq!(settings.endpoint().query(), Some("key=Q-K%2BEY123&v=1"), "the server gets it");
    let said = settings.without_secrets("no such key Q-K+EY123 (key=Q-K%2BEY123), 1 try, URL%20PASS");
    assert_eq!(said, "no such key [key] (key=[key]), 1 try, [key]");
    for given in
        ["ftp://u:URLPASS@host/?key=QUERYKEY", "u:URLPASS@host?key=QUERYKEY", "http://u:URLPASS@:bad?key=QUERYKEY"]
    {
        let refused =
            ModelSettings::parse("openai/m", Some(given), |_| None).expect_err("it is no base URL").to_string();
        assert!(!refused.contains("URLPASS") && !refused.contains("QUERYKEY"), "{refused}");
    }
}
