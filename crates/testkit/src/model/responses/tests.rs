//! What is streamed, what is read back of it, and that the check takes it.

use super::super::check::check;
use super::super::http::Incoming;
use super::super::received::Received;
use super::super::serve::Issued;
use super::*;

fn events(answer: &Answer) -> Vec<Value> {
    let data = |step: StreamStep| match step {
        StreamStep::Event(event) => serde_json::from_str(event.split_once("data: ").expect("an event has data").1).ok(),
        StreamStep::Wait(_) => None,
    };
    steps(answer, "m").into_iter().filter_map(data).collect()
}

fn kinds(events: &[Value]) -> Vec<&str> {
    let mut kinds: Vec<&str> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    kinds.dedup();
    kinds
}

#[test]
fn an_answer_is_streamed_item_by_item() {
    let events = events(&Answer::default().thinks("a thought").says("some words").calls("bash", json!({"cmd": "ls"})));
    let wanted = [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_text.delta",
        "response.reasoning_summary_text.done",
        "response.reasoning_summary_part.done",
        "response.output_item.done",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.output_item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.completed",
    ];
    assert_eq!(kinds(&events), wanted);
    let indexes: Vec<_> = events
        .iter()
        .filter(|event| event["type"] == "response.output_item.done")
        .map(|event| event["output_index"].clone())
        .collect();
    assert_eq!(indexes, [0, 1, 2]);
    assert!(events.iter().enumerate().all(|(at, event)| event["sequence_number"] == at));
    let last = &events.last().expect("there are events")["response"];
    assert_eq!((&last["status"], last["usage"]["total_tokens"].as_u64()), (&json!("completed"), Some(120)));
}

#[test]
fn what_was_answered_can_be_sent_back_and_read() {
    let events = events(&Answer::default().thinks("hm").says("I look").calls("bash", json!({"cmd": "ls"})));
    let mut input = vec![json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]})];
    let output = &events.last().expect("there are events")["response"]["output"];
    input.extend(output.as_array().expect("a list of items").iter().cloned());
    let id = input.last().expect("the call")["call_id"].clone();
    input.push(json!({"type": "function_call_output", "call_id": id, "output": "a.txt"}));
    let body = json!({"model": "m", "stream": true, "input": input}).to_string().into_bytes();
    let received = Received::new(Incoming { path: "/v1/responses".to_owned(), headers: Vec::new(), body });
    assert_eq!(check(&received, &Issued::default()).err().map(|refusal| refusal.why), None);
    assert_eq!(received.messages().len(), 5);
    let transcript = "user: hi\nassistant: [thought hm] I look [call bash {\"cmd\":\"ls\"}]\ntool: a.txt";
    assert_eq!(received.transcript(), transcript);
}

#[test]
fn an_answer_that_breaks_off_says_so() {
    let last = |answer: Answer| events(&answer).pop().expect("there are events");
    let short = last(Answer::default().says("x").stops(Stop::Length));
    assert_eq!(short["type"], "response.incomplete");
    assert_eq!(short["response"]["incomplete_details"]["reason"], "max_output_tokens");
    let failed = last(Answer::default().says("x").breaks_with("server_error", "sorry"));
    assert_eq!(
        (&failed["type"], &failed["response"]["error"]["code"]),
        (&json!("response.failed"), &json!("server_error"))
    );
}
