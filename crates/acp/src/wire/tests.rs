//! What is a message and what is none.

#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use super::*;

/// Everything that is read of these bytes.
async fn read(bytes: &[u8], limit: usize) -> Vec<Incoming> {
    let mut reader = Reader::with_limit(bytes, limit);
    let mut all = Vec::new();
    while let Some(incoming) = reader.next().await.unwrap() {
        all.push(incoming);
    }
    all
}

#[tokio::test]
async fn ids_stay_as_they_came() {
    for id in [json!(1), json!("a"), Value::Null, json!(18_446_744_073_709_551_615_u64)] {
        let message = Message::request(id.clone(), "x", Value::Null);
        let line = message.clone().into_line();
        let [Incoming::Message { message: read, .. }] = &read(&line, 1000).await[..] else { panic!() };
        assert_eq!(*read, message);
    }
}

#[tokio::test]
async fn a_line_that_is_no_message_does_not_end_the_reading() {
    let text = b"hello\n\r\n[1]\n{\"jsonrpc\":\"2.0\",\"id\":7}\n{\"jsonrpc\":\"2.0\",\"method\":\"m\"}\r\n";
    let all = read(text, 1000).await;
    let answers: Vec<Value> = all
        .iter()
        .filter_map(|one| match one {
            Incoming::Garbage { error, .. } => Some(error.answer().into_value()),
            _ => None,
        })
        .collect();
    assert_eq!(answers.len(), 3);
    assert_eq!(answers[0]["error"]["code"], RpcError::PARSE);
    assert_eq!((&answers[1]["id"], &answers[1]["error"]["code"]), (&Value::Null, &json!(RpcError::INVALID_REQUEST)));
    assert_eq!(answers[2]["id"], 7);
    let Some(Incoming::Message { message, .. }) = all.last() else { panic!("{all:?}") };
    assert_eq!(*message, Message::notification("m", Value::Null));
}

#[tokio::test]
async fn a_line_that_is_too_long_is_skipped_and_told_of() {
    let mut text = vec![b'x'; 100_000];
    text.extend_from_slice(b"\n{\"jsonrpc\":\"2.0\",\"method\":\"m\"}\n");
    let all = read(&text, 60).await;
    assert!(matches!(all[..], [Incoming::TooLong { bytes: 100_000, .. }, Incoming::Message { .. }]), "{all:?}");
}

#[tokio::test]
async fn of_a_line_that_is_too_long_its_id_is_known() {
    let long = "x".repeat(50_000);
    let text = format!("{{\"id\":1,\"result\":\"{long}\"}}\n{{\"result\":\"{long}\",\"id\":2}}\n");
    let all = read(text.as_bytes(), 1_000).await;
    let ids: Vec<Value> = all
        .iter()
        .map(|one| match one {
            Incoming::TooLong { seen, .. } => seen.id.clone().unwrap_or_default(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(ids, [json!(1), json!(2)]);
}

#[tokio::test]
async fn a_half_written_last_line_is_told_apart_from_one_without_its_end() {
    let all = read(b"{\"jsonrpc\":\"2.0\",\"met", 1000).await;
    assert!(matches!(&all[..], [Incoming::Half { line }] if line.starts_with(b"{")), "{all:?}");
    let all = read(b"{\"jsonrpc\":\"2.0\",\"method\":\"m\"}", 1000).await;
    assert!(matches!(all[..], [Incoming::Message { .. }]), "{all:?}");
}

#[tokio::test]
async fn a_read_that_is_dropped_in_the_middle_of_a_line_loses_nothing() {
    let (mut to, from) = tokio::io::duplex(1000);
    let mut reader = Reader::new(from);
    to.write_all(b"{\"jsonrpc\":\"2.0\",").await.unwrap();
    tokio::select! {
        biased;
        _ = reader.next() => panic!("no line is there yet"),
        () = tokio::task::yield_now() => {}
    }
    to.write_all(b"\"method\":\"m\"}\n").await.unwrap();
    let read = reader.next().await.unwrap();
    assert!(matches!(read, Some(Incoming::Message { .. })), "{read:?}");
}

#[test]
fn an_error_of_any_shape_is_one() {
    let message = Message::parse(br#"{"jsonrpc":"2.0","id":1,"result":null,"error":"no"}"#).unwrap();
    let Message::Response { outcome: Err(error), .. } = message else { panic!() };
    assert_eq!(error.data, Some(json!("no")));
    let message = Message::parse(br#"{"jsonrpc":"2.0","id":1,"result":null,"error":null}"#).unwrap();
    assert!(matches!(message, Message::Response { outcome: Ok(Value::Null), .. }));
}
