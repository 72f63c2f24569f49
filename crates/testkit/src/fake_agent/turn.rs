//! A turn of the fake agent: its prompt is its script.

use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{FakeAgent, Turn, odd};

/// How long it waits for an answer.
const PATIENCE: Duration = Duration::from_secs(20);

impl FakeAgent {
    pub(super) fn prompt(&mut self, id: &Value, params: &Value) {
        let session = params["sessionId"].as_str().unwrap_or_default().to_owned();
        let Some(mut turns) = self.sessions.turns(&session) else { return self.refuse(id, -32002, "no such session") };
        let blocks = params["prompt"].as_array().cloned().unwrap_or_default();
        let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
        let user = texts.join("\n");
        self.tell_model(&turns, &user);
        let (user_id, answer_id) = (self.sessions.id("u"), self.sessions.id("m"));
        if self.version == 2 {
            let content = json!(blocks);
            let told = json!({ "sessionUpdate": "user_message", "messageId": user_id, "content": content });
            if self.has("user_first") {
                self.update(&session, told);
                self.answer(id, json!({ "messageId": user_id }));
            } else {
                self.answer(id, json!({ "messageId": user_id }));
                self.update(&session, told);
            }
            self.update(&session, json!({ "sessionUpdate": "state_update", "state": "running" }));
        } else if self.has("echo") {
            self.chunk(&session, "user_message_chunk", &user_id, &user);
            if self.has("twice") {
                self.chunk(&session, "user_message_chunk", &user_id, "");
            }
        }
        let script = texts.last().copied().unwrap_or_default().to_owned();
        let mut answer = String::new();
        let (mut stop, mut is_answered) = ("end_turn", false);
        for (number, line) in script.lines().enumerate() {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            let call = format!("call-{}-{number}", turns.len());
            match word {
                "write" => self.write(&session, &call, rest),
                "shell" => self.shell(&session, &call, rest),
                "edit" => self.announce(&session, &call, "edit", rest),
                "think" => self.chunk(&session, "agent_thought_chunk", &answer_id, rest),
                "sleep" => std::thread::sleep(Duration::from_millis(rest.parse().unwrap_or(0))),
                "put" => {
                    let (path, text) = rest.split_once(' ').unwrap_or((rest, ""));
                    std::fs::write(path, format!("{text}\n")).expect("it is writable");
                }
                "remove" => std::fs::remove_dir_all(rest).expect("it is there"),
                "wait" => self.wait_for_file(rest),
                "call" | "update" => {
                    let mut update: Value = serde_json::from_str(rest).expect("the script is right");
                    let kind = if word == "call" && self.version == 1 { "tool_call" } else { "tool_call_update" };
                    update["sessionUpdate"] = kind.into();
                    self.update(&session, update);
                }
                "permit" if !self.may(&session, rest) => break,
                "permit" => {}
                "ask" => stop = self.ask(&session, &call, rest),
                "fail" => return self.refuse(id, -32603, "it did not work"),
                "hang" => stop = self.wait_for_cancel(id),
                "crash" => {
                    self.raw(b"{\"jsonrpc\":\"2.0\",\"method\":\"session/upd");
                    std::process::exit(7);
                }
                "read" => {
                    let (text, was_cancelled) = self.read(&session, rest);
                    answer.push_str(&text);
                    self.chunk(&session, "agent_message_chunk", &answer_id, &text);
                    if was_cancelled {
                        stop = "cancelled";
                    }
                }
                "raw" => self.raw(format!("{}\n", rest.replace("$S", &session).replace("$ODD", &odd())).as_bytes()),
                "answer" => {
                    let rest = rest.replace("$ODD", &odd());
                    self.raw(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{rest}}}\n").as_bytes());
                    is_answered = true;
                }
                "huge" => {
                    let bytes = rest.parse().unwrap_or(0);
                    self.answer(id, json!({ "stopReason": "end_turn", "_meta": { "x": "h".repeat(bytes) } }));
                    is_answered = true;
                }
                "flood" => {
                    for number in 0..rest.parse().unwrap_or(0) {
                        self.chunk(
                            &session,
                            "agent_message_chunk",
                            &answer_id,
                            &format!("{number} {}", "x".repeat(200)),
                        );
                    }
                }
                "orphan" => {
                    let started = std::process::Command::new("sleep").arg("600").spawn();
                    let started = started.expect("it is there").id().to_string();
                    std::fs::write(self.sessions.directory().join("orphan"), started)
                        .expect("the directory is writable");
                    std::process::exit(7);
                }
                "tools" => {
                    let said = self.tools.describe(&session);
                    self.chunk(&session, "agent_message_chunk", &answer_id, &said);
                    answer.push_str(&said);
                }
                "garbage" => self.raw(b"Warning: something\n[1,2\n"),
                _ => {
                    let said = if word == "say" { rest.to_owned() } else { format!("done {line}") };
                    self.chunk(&session, "agent_message_chunk", &answer_id, &said);
                    answer.push_str(&said);
                }
            }
        }
        if answer.is_empty() {
            answer = format!("did {}", turns.len() + 1);
            self.chunk(&session, "agent_message_chunk", &answer_id, &answer);
        }
        turns.push(Turn { user, user_id, answer, answer_id: answer_id.clone() });
        self.sessions.store(&session, &turns);
        match self.version {
            2 => self.update(&session, json!({ "sessionUpdate": "state_update", "state": "idle", "stopReason": stop })),
            _ if is_answered => {}
            _ => self.answer(id, json!({ "stopReason": stop })),
        }
        if self.has("late_updates") {
            self.chunk(&session, "agent_message_chunk", &answer_id, " and one thing more");
        }
    }

    /// Notes what a model would have been sent.
    fn tell_model(&self, turns: &[Turn], prompt: &str) {
        let told = turns.iter().flat_map(|turn| [format!("user: {}", turn.user), format!("agent: {}", turn.answer)]);
        let all: Vec<String> = told.chain([format!("user: {prompt}")]).collect();
        let path = self.sessions.directory().join("model.jsonl");
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        let line = format!("{}\n", json!(all));
        file.and_then(|mut file| file.write_all(line.as_bytes())).expect("the directory is writable");
    }

    fn announce(&self, session: &str, call: &str, kind: &str, title: &str) {
        self.announce_at(session, call, kind, title, &json!([]));
    }

    fn announce_at(&self, session: &str, call: &str, kind: &str, title: &str, locations: &Value) {
        let name = if self.version == 2 { "tool_call_update" } else { "tool_call" };
        let update = json!({
            "sessionUpdate": name, "toolCallId": call, "title": title, "kind": kind, "status": "in_progress", "locations": locations,
        });
        self.update(session, update);
    }

    fn finish(&self, session: &str, call: &str, status: &str, text: &str) {
        let content = json!([{ "type": "content", "content": { "type": "text", "text": text } }]);
        let update =
            json!({ "sessionUpdate": "tool_call_update", "toolCallId": call, "status": status, "content": content });
        self.update(session, update);
    }

    /// Writes straight to disk, as most agents do.
    fn write(&self, session: &str, call: &str, rest: &str) {
        let (path, text) = rest.split_once(' ').unwrap_or((rest, ""));
        if !self.has("silent") {
            let place = std::path::absolute(path).unwrap_or_else(|_| path.into());
            let locations = if self.has("placeless") { json!([]) } else { json!([{ "path": place }]) };
            self.announce_at(session, call, "edit", &format!("write {path}"), &locations);
        }
        let written = std::fs::write(path, format!("{text}\n"));
        if !self.has("silent") {
            let status = if written.is_ok() { "completed" } else { "failed" };
            self.finish(session, call, status, "written");
        }
    }

    fn shell(&self, session: &str, call: &str, command: &str) {
        self.announce(session, call, "execute", command);
        let output = std::process::Command::new("sh").args(["-c", command]).output().expect("there is a shell");
        self.finish(session, call, "completed", &String::from_utf8_lossy(&output.stdout));
    }

    /// Waits for somebody to put a file beside its sessions.
    pub(super) fn wait_for_file(&self, name: &str) {
        let (path, end) = (self.sessions.directory().join(name), Instant::now() + PATIENCE);
        while !path.exists() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Asks whether a tool may run.
    fn may(&mut self, session: &str, call: &str) -> bool {
        self.next_request += 1;
        let id = json!(self.next_request);
        let options = json!([
            { "optionId": "yes", "name": "Yes", "kind": "allow_once" },
            { "optionId": "no", "name": "No", "kind": "reject_once" },
        ]);
        let params = match self.version {
            1 => json!({ "sessionId": session, "toolCall": { "toolCallId": call }, "options": options }),
            _ => {
                let subject = json!({ "type": "tool_call", "toolCall": { "toolCallId": call } });
                json!({ "sessionId": session, "title": "May it?", "subject": subject, "options": options })
            }
        };
        self.send(&json!({
            "jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": params,
        }));
        let answer = self.wait_for(|message| message["id"] == id && message["method"].is_null());
        answer.is_some_and(|answer| answer["result"]["outcome"]["optionId"] == "yes")
    }

    /// Asks for permission; the stop reason if that was cancelled.
    fn ask(&mut self, session: &str, call: &str, title: &str) -> &'static str {
        self.next_request += 1;
        let id = json!(self.next_request);
        let options = json!([{ "optionId": "yes", "name": "Yes", "kind": "allow_once" }]);
        let params = json!({
            "sessionId": session,
            "toolCall": { "toolCallId": call, "title": title },
            "options": options,
        });
        self.send(&json!({
            "jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": params,
        }));
        if self.has("takes_back") {
            let params = json!({ "requestId": id });
            self.send(&json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": params }));
        }
        let answer = self.wait_for(|message| message["id"] == id && message["method"].is_null());
        let outcome = answer.map(|answer| answer["result"]["outcome"]["outcome"].clone());
        if outcome == Some(json!("cancelled")) { "cancelled" } else { "end_turn" }
    }

    /// Reads a file through the client; what came of it, and whether it was told to stop meanwhile.
    pub(super) fn read(&mut self, session: &str, path: &str) -> (String, bool) {
        self.next_request += 1;
        let id = json!(self.next_request);
        let params = json!({ "sessionId": session, "path": path });
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "fs/read_text_file", "params": params }));
        let answer = self.wait_for(|message| message["id"] == id && message["method"].is_null()).unwrap_or_default();
        let waiting = self.waiting.len();
        self.waiting.retain(|message| message["method"] != "session/cancel");
        let text = answer["result"]["content"].as_str().map(str::to_owned);
        (text.unwrap_or_else(|| format!("error {}", answer["error"]["code"])), self.waiting.len() < waiting)
    }

    /// Waits until the turn, or the request that began it, is cancelled; the stop reason.
    fn wait_for_cancel(&mut self, request: &Value) -> &'static str {
        let is_cancel = |message: &Value| match message["method"].as_str() {
            Some("session/cancel") => true,
            Some("$/cancel_request") => message["params"]["requestId"] == *request,
            _ => false,
        };
        if self.wait_for(is_cancel).is_some() { "cancelled" } else { "end_turn" }
    }

    /// Waits for a message; others wait until the turn has ended.
    fn wait_for(&mut self, is_it: impl Fn(&Value) -> bool) -> Option<Value> {
        let end = Instant::now() + PATIENCE;
        loop {
            let message = self.incoming.recv_timeout(end.saturating_duration_since(Instant::now())).ok()?;
            if is_it(&message) {
                return Some(message);
            }
            self.waiting.push(message);
        }
    }
}
