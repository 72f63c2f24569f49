//! What `retake acp -- AGENT` costs beside the agent's own pipe: time a message, time a round trip, memory over many messages.
//!
//! The agent is this very program ([`flood`]), so that nothing is measured but pipes and the proxy. A turn is a thousand messages: words of
//! an answer, and now and then a tool call. The raw pipe goes first, then the proxy, with the same client.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::{machine, millis, report};
use crate::shell::root;

/// Messages of a turn.
const TURN: usize = 1_000;
/// After how many messages the memory is looked at.
const LOOKS: [usize; 4] = [1_000, 10_000, 50_000, 100_000];
/// Requests and answers, one after the other.
const ROUND_TRIPS: usize = 5_000;

/// What one way costs.
struct Measured {
    name: &'static str,
    /// Of all turns together.
    turns: Timing,
    /// Time that the process itself used for them, in seconds.
    cpu: f64,
    round_trip: [Duration; 3],
    resident: Vec<u64>,
}

/// How long it took to the first message, from there to the last one, and to the answer.
#[derive(Default)]
struct Timing {
    messages: usize,
    beginning: Duration,
    stream: Duration,
    end: Duration,
}

/// Measures both ways and, if `write` says so, puts the table into BENCHMARKS.md.
pub(super) fn run(write: bool) -> Result<()> {
    let scratch = env::temp_dir().join(format!("retake-bench-proxy-{}", std::process::id()));
    fs::create_dir_all(scratch.join("w")).context("cannot make a scratch directory")?;
    let measured = measure_both(&scratch);
    fs::remove_dir_all(&scratch).ok();
    let measured = measured?;
    let text = format!("Machine: {}.\n\n{}", machine(&env::temp_dir())?, table(&measured));
    println!("{text}");
    if write { report::write("proxy", &text) } else { Ok(()) }
}

fn measure_both(scratch: &Path) -> Result<Vec<Measured>> {
    let agent = env::current_exe().context("where is this program?")?;
    let retake = root().join("target/release/retake");
    if !retake.is_file() {
        bail!("build it first: `cargo build --release -p retake`");
    }
    let mut raw = Command::new(&agent);
    raw.args(["bench", "flood"]);
    let mut proxied = Command::new(&retake);
    proxied.args(["acp", "--"]).arg(&agent).args(["bench", "flood"]);
    proxied.env("RETAKE_DATA_DIR", scratch.join("data")).env("XDG_RUNTIME_DIR", scratch);
    Ok(vec![
        measure("the agent's own pipe", &mut raw, &scratch.join("w"))?,
        measure("`retake acp -- AGENT`", &mut proxied, &scratch.join("w"))?,
    ])
}

fn measure(name: &'static str, command: &mut Command, workspace: &Path) -> Result<Measured> {
    let mut editor = Editor::start(command)?;
    editor.ask("initialize", r#"{"protocolVersion":1,"clientCapabilities":{}}"#)?;
    editor.ask("session/new", &format!(r#"{{"cwd":"{}","mcpServers":[]}}"#, workspace.display()))?;
    let (mut turns, mut resident, idle) = (Timing::default(), Vec::new(), cpu_seconds(&editor.child)?);
    for turn in 1..=LOOKS[LOOKS.len() - 1] / TURN {
        let prompt = r#"{"sessionId":"s","prompt":[{"type":"text","text":"flood"}]}"#;
        let timing = editor.ask("session/prompt", prompt)?;
        if timing.messages < TURN {
            bail!("{name}: {} messages came of a turn", timing.messages);
        }
        turns.add(&timing);
        if LOOKS.contains(&(turn * TURN)) {
            resident.push(resident_kib(&editor.child)?);
        }
    }
    let cpu = cpu_seconds(&editor.child)? - idle;
    let mut trips = Vec::with_capacity(ROUND_TRIPS);
    for _ in 0..ROUND_TRIPS {
        let began = Instant::now();
        editor.ask("_bench/echo", r#"{"sessionId":"s"}"#)?;
        trips.push(began.elapsed());
    }
    trips.sort();
    let at = |part: f64| trips[(part * (ROUND_TRIPS - 1) as f64) as usize];
    Ok(Measured { name, turns, cpu, round_trip: [at(0.5), at(0.99), at(1.0)], resident })
}

impl Timing {
    fn add(&mut self, more: &Self) {
        self.messages += more.messages;
        self.beginning += more.beginning;
        self.stream += more.stream;
        self.end += more.end;
    }
}

fn table(measured: &[Measured]) -> String {
    let looks: Vec<String> = LOOKS.iter().map(|look| format!("{look} messages")).collect();
    let mut text = String::from(
        "| | a message in a turn, µs | of a processor, µs | from prompt to first message, ms | from last message to answer, ms | round trip: median, µs | 99 %, µs | most, µs |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for Measured { name, turns, cpu, round_trip, .. } in measured {
        let a_turn = |time: Duration| millis(time) * TURN as f64 / turns.messages as f64;
        let message = turns.stream.as_secs_f64() * 1e6 / turns.messages as f64;
        let cpu = cpu * 1e6 / turns.messages as f64;
        let trips = round_trip.map(|trip| trip.as_micros().to_string()).join(" | ");
        let (beginning, end) = (a_turn(turns.beginning), a_turn(turns.end));
        text += &format!("| {name} | {message:.1} | {cpu:.1} | {beginning:.1} | {end:.1} | {trips} |\n");
    }
    text += &format!("\n| resident, MB, after | {} |\n|---|{}\n", looks.join(" | "), "--:|".repeat(LOOKS.len()));
    for Measured { name, resident, .. } in measured {
        let resident: Vec<String> = resident.iter().map(|kib| format!("{:.1}", *kib as f64 / 1024.0)).collect();
        text += &format!("| {name} | {} |\n", resident.join(" | "));
    }
    text
}

/// An editor, as far as an agent can tell.
struct Editor {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    next: u64,
}

impl Editor {
    fn start(command: &mut Command) -> Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("cannot start it")?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else { bail!("it has no pipes") };
        Ok(Self { child, stdin, stdout: BufReader::new(stdout), next: 0 })
    }

    /// Asks something and reads to the answer.
    fn ask(&mut self, method: &str, params: &str) -> Result<Timing> {
        self.next += 1;
        let id = self.next;
        let asked = Instant::now();
        writeln!(self.stdin, r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)?;
        let answer = format!(r#""id":{id},"#);
        let (mut line, mut messages, mut first, mut last) = (String::new(), 0, None, asked);
        loop {
            line.clear();
            if self.stdout.read_line(&mut line)? == 0 {
                bail!("it ended before it answered `{method}`");
            }
            let now = Instant::now();
            if line.contains(&answer) && line.contains(r#""result":"#) {
                let first = first.unwrap_or(now);
                let (beginning, stream) = (first - asked, last.saturating_duration_since(first));
                return Ok(Timing { messages, beginning, stream, end: now - last });
            }
            (messages, last) = (messages + 1, now);
            first.get_or_insert(now);
        }
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn resident_kib(child: &Child) -> Result<u64> {
    let status = fs::read_to_string(PathBuf::from("/proc").join(child.id().to_string()).join("status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("there is no VmRSS")?;
    line.trim().trim_end_matches(" kB").parse().context("VmRSS is no number")
}

/// What a process has used of processors, of all its threads.
fn cpu_seconds(child: &Child) -> Result<f64> {
    /// The kernel counts in hundredths of a second, whatever its own clock is.
    const TICKS: f64 = 100.0;
    let stat = fs::read_to_string(PathBuf::from("/proc").join(child.id().to_string()).join("stat"))?;
    let (_, fields) = stat.rsplit_once(") ").context("there is no name in it")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).context("it is too short");
    Ok((ticks(11)? + ticks(12)?) / TICKS)
}

/// The agent: a turn is [`TURN`] messages as fast as they are taken, everything else is answered at once.
pub(super) fn flood() -> Result<()> {
    let mut out = std::io::stdout().lock();
    let mut turn = 0;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let Some(id) = line.split_once(r#""id":"#).and_then(|(_, rest)| rest.split([',', '}']).next()) else {
            continue;
        };
        let result = if line.contains(r#""method":"initialize""#) {
            r#"{"protocolVersion":1,"agentCapabilities":{},"authMethods":[]}"#
        } else if line.contains(r#""method":"session/new""#) {
            r#"{"sessionId":"s"}"#
        } else if line.contains(r#""method":"session/prompt""#) {
            turn += 1;
            write_turn(&mut out, turn)?;
            r#"{"stopReason":"end_turn"}"#
        } else {
            "{}"
        };
        writeln!(out, r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)?;
        out.flush()?;
    }
    Ok(())
}

fn write_turn(out: &mut impl Write, turn: usize) -> Result<()> {
    let mut update = |body: &str| {
        let params = format!(r#"{{"sessionId":"s","update":{body}}}"#);
        writeln!(out, r#"{{"jsonrpc":"2.0","method":"session/update","params":{params}}}"#)
    };
    // A message of a hundred pieces, then a tool, ten times.
    for part in 0..10 {
        for word in 0..98 {
            let content = format!(r#"{{"type":"text","text":"word {word} of a long answer, "}}"#);
            let id = format!("m{turn}-{part}");
            update(&format!(r#"{{"sessionUpdate":"agent_message_chunk","messageId":"{id}","content":{content}}}"#))?;
        }
        let id = format!("t{turn}-{part}");
        update(&format!(
            r#"{{"sessionUpdate":"tool_call","toolCallId":"{id}","title":"read a file","kind":"read","status":"in_progress"}}"#
        ))?;
        update(&format!(r#"{{"sessionUpdate":"tool_call_update","toolCallId":"{id}","status":"completed"}}"#))?;
    }
    Ok(())
}
