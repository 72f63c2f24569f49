//! Failures as the different servers tell them.

use super::*;

fn read(status: u16, body: &str) -> ModelError {
    let settings =
        ModelSettings::parse("openai/some-model", None, |_| Some("sk-secret".to_owned())).expect("it is good");
    ErrorResponse { status, retry_after: Some(Duration::from_secs(3)), body }.read(&settings)
}

fn message(error: &ModelError) -> &str {
    match error {
        ModelError::Unauthorized { message, .. }
        | ModelError::OutOfCredit { message, .. }
        | ModelError::UnknownModel { message, .. }
        | ModelError::RateLimited { message, .. }
        | ModelError::Overloaded { message, .. }
        | ModelError::Server { message, .. }
        | ModelError::ContextTooLong { message }
        | ModelError::Refused { message, .. } => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_message_is_found_in_the_error_bodies_of_all_servers() {
    for (server, body) in [
        ("OpenAI", r#"{"error":{"message":"bad thing","type":"invalid_request_error","param":null,"code":null}}"#),
        ("Anthropic", r#"{"type":"error","error":{"type":"invalid_request_error","message":"bad thing"}}"#),
        ("Ollama", r#"{"error":"bad thing"}"#),
        ("vLLM", r#"{"object":"error","message":"bad thing","type":"BadRequestError","code":400}"#),
        ("FastAPI", r#"{"detail":"bad thing"}"#),
        ("Gemini", r#"[{"error":{"code":400,"message":"bad thing","status":"INVALID_ARGUMENT"}}]"#),
        ("OpenRouter", r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"bad thing"}}}"#),
        ("a proxy", "bad thing\n"),
    ] {
        let error = read(400, body);
        assert!(matches!(error, ModelError::Refused { status: 400, .. }), "{server}: {error:?}");
        assert_eq!(message(&error), "bad thing", "{server}");
    }
}

#[test]
fn what_a_failure_means_is_told_by_its_status_and_its_words() {
    type Is = fn(&ModelError) -> bool;
    let cases: [(u16, &str, Is); 16] = [
        (401, "{}", |e| matches!(e, ModelError::Unauthorized { variable: "OPENAI_API_KEY", .. })),
        (403, "", |e| matches!(e, ModelError::Unauthorized { .. })),
        (402, r#"{"error":{"message":"Insufficient Balance"}}"#, |e| matches!(e, ModelError::OutOfCredit { .. })),
        (429, r#"{"error":{"code":"insufficient_quota"}}"#, |e| matches!(e, ModelError::OutOfCredit { .. })),
        (404, "404 page not found", |e| matches!(e, ModelError::UnknownModel { .. })),
        (400, r#"{"error":{"message":"Model Not Exist"}}"#, |e| matches!(e, ModelError::UnknownModel { .. })),
        (429, "{}", |e| matches!(e, ModelError::RateLimited { retry_after: Some(_), .. })),
        (429, "tokens per minute, context window", |e| matches!(e, ModelError::RateLimited { .. })),
        (529, r#"{"error":{"type":"overloaded_error"}}"#, |e| matches!(e, ModelError::Overloaded { .. })),
        (503, r#"{"error":{"message":"Loading model","code":503}}"#, |e| matches!(e, ModelError::Overloaded { .. })),
        (500, "{}", |e| matches!(e, ModelError::Server { status: 500, .. })),
        (413, "", |e| matches!(e, ModelError::ContextTooLong { .. })),
        (400, r#"{"error":{"code":"context_length_exceeded"}}"#, |e| matches!(e, ModelError::ContextTooLong { .. })),
        (400, r#"{"error":{"message":"prompt is too long: 2 > 1"}}"#, |e| {
            matches!(e, ModelError::ContextTooLong { .. })
        }),
        (200, r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#, |e| {
            matches!(e, ModelError::Overloaded { .. })
        }),
        (200, r#"{"error":{"code":429,"message":"slow down"}}"#, |e| matches!(e, ModelError::RateLimited { .. })),
    ];
    for (status, body, is) in cases {
        let error = read(status, body);
        assert!(is(&error), "{status} {body}: {error:?}");
        assert!(!error.advice().is_empty());
    }
}

#[test]
fn a_key_that_the_server_repeats_is_taken_out_and_long_messages_are_cut() {
    let error = read(401, r#"{"error":{"message":"Incorrect API key provided: sk-secret."}}"#);
    assert_eq!(message(&error), "Incorrect API key provided: [key].");
    assert!(!format!("{error:?} {error}").contains("sk-secret"));
    assert_eq!(message(&read(400, &"ä".repeat(5000))).chars().count(), MAX_MESSAGE + 1);
}
