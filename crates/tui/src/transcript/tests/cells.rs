//! What each kind of entry looks like.

use retake_agent::view::RunningCall;
use retake_engine::session::entry::{
    Block, Body, CallId, Details, EndReason, Outcome, Part, StopReason, SummaryBy, Todo, TodoState, Usage,
};

use super::build::*;
use crate::transcript::Transcript;

fn conversation() -> retake_agent::view::View {
    let edit =
        r#"{"path":"src/lib.rs","old":"fn old() {\n    one();\n}","new":"fn new() {\n    one();\n    two();\n}"}"#;
    let mut edited = result("edit src/lib.rs", Outcome::Done, "Edited `src/lib.rs` at line 12.");
    if let Body::ToolResult { details, .. } = &mut edited {
        *details = Some(Details::Edited { lines: vec![12] });
    }
    let output: String = (1..=9).map(|n| format!("test number_{n} ... ok\n")).collect();
    let thought =
        Block::Reasoning { text: "**Looking**\nI should read the file first.".to_owned(), opaque: String::new() };
    view([
        Body::Instructions { source: "AGENTS.md".to_owned(), text: "a\nb\nc\n".to_owned() },
        prompt("Rename old to new, and add a call of two() to it, please.\nThen test."),
        reply(vec![thought, Block::Text { text: "I'll **look** at it.".to_owned() }]),
        calls("read_file", r#"{"path":"src/lib.rs"}"#),
        result("read src/lib.rs", Outcome::Done, "     1\tfn old() {\n     2\t}\n"),
        calls("grep", r#"{"pattern":"old"}"#),
        result("grep old", Outcome::Done, "src/lib.rs:1:fn old() {\n[1 matching line in 1 file.]"),
        calls("edit_file", edit),
        edited,
        calls("bash", r#"{"command":"cargo test"}"#),
        result("bash: cargo test", Outcome::Done, &format!("{output}[Exit code 0.]")),
        says("Done:\n\n- renamed\n- called"),
        ended(EndReason::Done),
    ])
}

#[test]
fn a_turn_at_eighty_columns() {
    let expected = "\
· AGENTS.md, 3 lines

> Rename old to new, and add a call of two() to it, please.
  Then test.

· thought: Looking · I should read the file first.

I'll look at it.

● read src/lib.rs  2 lines
● grep old  1 matching line in 1 file

● edit src/lib.rs  +2 −1
  12    − fn old() {
     12 + fn new() {
  13 13       one();
     14 +     two();
  14 15   }

● bash: cargo test
  … 3 more lines, Ctrl+O shows all
  test number_4 ... ok
  test number_5 ... ok
  test number_6 ... ok
  test number_7 ... ok
  test number_8 ... ok
  test number_9 ... ok

Done:

- renamed
- called";
    assert_eq!(drawn(&conversation(), 80), expected);
}

#[test]
fn a_turn_at_forty_columns() {
    let expected = "\
· AGENTS.md, 3 lines

> Rename old to new, and add a call of
  two() to it, please.
  Then test.

· thought: Looking · I should read the…

I'll look at it.

● read src/lib.rs  2 lines
● grep old  1 matching line in 1 file

● edit src/lib.rs  +2 −1
  12 − fn old() {
  12 + fn new() {
  13       one();
  14 +     two();
  15   }

● bash: cargo test
  … 3 more lines, Ctrl+O shows all
  test number_4 ... ok
  test number_5 ... ok
  test number_6 ... ok
  test number_7 ... ok
  test number_8 ... ok
  test number_9 ... ok

Done:

- renamed
- called";
    assert_eq!(drawn(&conversation(), 40), expected);
}

#[test]
fn everything_unfolded_at_a_hundred_and_twenty_columns() {
    let mut transcript = Transcript::new();
    transcript.toggle_all();
    assert_eq!(
        whole(&mut transcript, &conversation(), 120),
        "\
· AGENTS.md, 3 lines
  a
  b
  c

> Rename old to new, and add a call of two() to it, please.
  Then test.

· thought:
  Looking
  I should read the file first.

I'll look at it.

● read src/lib.rs  2 lines
       1    fn old() {
       2    }
● grep old  1 matching line in 1 file
  src/lib.rs:1:fn old() {
  [1 matching line in 1 file.]

● edit src/lib.rs  +2 −1
  12    − fn old() {
     12 + fn new() {
  13 13       one();
     14 +     two();
  14 15   }

● bash: cargo test
  test number_1 ... ok
  test number_2 ... ok
  test number_3 ... ok
  test number_4 ... ok
  test number_5 ... ok
  test number_6 ... ok
  test number_7 ... ok
  test number_8 ... ok
  test number_9 ... ok

Done:

- renamed
- called"
    );
}

#[test]
fn calls_that_did_not_go_well() {
    let view = view([
        calls("bash", r#"{"command":"cargo build"}"#),
        result("bash: cargo build", Outcome::Failed, "error: no\n[Exit code 101.]"),
        calls("edit_file", r#"{"path":"a.rs","old":"x","new":"y"}"#),
        result("edit a.rs", Outcome::Failed, "`old` was not found in `a.rs`. Nothing was changed."),
        calls("bash", r#"{"command":"rm -rf /\necho gone"}"#),
        result("bash: rm -rf / … (+1 line)", Outcome::Denied, "The user did not allow it."),
        calls("bash", r#"{"command":"sleep 100"}"#),
        result("bash: sleep 100", Outcome::Interrupted, "[No output. Interrupted by the user.]"),
        ended(EndReason::Interrupted),
        prompt("again"),
        ended(EndReason::Failed { message: "the key was refused; see `retake doctor`".to_owned() }),
        prompt("and again"),
        ended(EndReason::RoundLimit),
    ]);
    assert_eq!(
        drawn(&view, 60),
        "\
✗ bash: cargo build  failed: exit code 101
  error: no

✗ edit a.rs  failed
  `old` was not found in `a.rs`. Nothing was changed.

! bash: rm -rf / … (+1 line)  denied
  rm -rf /
  echo gone
  The user did not allow it.

○ bash: sleep 100  interrupted

· interrupted

> again

✗ failed: the key was refused; see `retake doctor`

> and again

! stopped: too many rounds without an end; say `go on` to
  continue"
    );
}

#[test]
fn todos_files_and_unknown_tools() {
    let todo = |text: &str, state| Todo { text: text.to_owned(), state };
    let mut todos = result("todo: 1/3 done", Outcome::Done, "…");
    if let Body::ToolResult { todos, .. } = &mut todos {
        *todos = Some(vec![
            todo("read it", TodoState::Done),
            todo("change what has to be changed in it", TodoState::Active),
            todo("test", TodoState::Pending),
        ]);
    }
    let content: String = (1..=30).map(|n| format!("line {n}\\n")).collect();
    let view = view([
        calls("todo", "{}"),
        todos,
        calls("write_file", &format!(r#"{{"path":"a.txt","content":"{content}"}}"#)),
        result("write a.txt", Outcome::Done, "Created `a.txt` with 30 lines."),
        calls("delete_file", "{}"),
        result("delete b.txt", Outcome::Done, "Deleted `b.txt`."),
        calls("weather", "{}"),
        result("home: weather", Outcome::Done, "sunny\nand warm"),
        result("of a call that nobody knows", Outcome::Done, "text"),
    ]);
    assert_eq!(
        drawn(&view, 40),
        "\
● todo: 1/3 done
  [x] read it
  [>] change what has to be changed in
      it
  [ ] test

● write a.txt  30 lines
   1 + line 1
   2 + line 2
   3 + line 3
   4 + line 4
   5 + line 5
   6 + line 6
   7 + line 7
   8 + line 8
   9 + line 9
  10 + line 10
  … 20 more lines, Ctrl+O shows all

● delete b.txt

● home: weather
  sunny
  and warm

● of a call that nobody knows
  text"
    );
}

#[test]
fn what_is_told_beside_the_conversation() {
    let view = view([
        prompt("first"),
        says("one"),
        Body::Summary {
            from: id(0),
            to: id(1),
            text: "# State\n\nAll is well.\n\n- a\n- b\n- c\n".to_owned(),
            by: SummaryBy::Compaction,
            usage: Usage::default(),
        },
        Body::Note { about: Vec::new(), text: "2 files went back.".to_owned() },
        Body::Approved { tool: "bash".to_owned(), prefix: Some("cargo test".to_owned()) },
        Body::Cleared,
        Body::Reply { blocks: vec![], model: String::new(), usage: Usage::default(), stop: StopReason::Length },
    ]);
    assert_eq!(
        drawn(&view, 50),
        "\
> first

one

┌ summary of 2 entries: the conversation became
│ too long, the model sees this instead
│ State
│
│ All is well.
└ … 4 more lines, Ctrl+O shows all

· told to the model: 2 files went back.

· allowed from now on: `bash: cargo test`

────────── the model sees nothing above ──────────

! the answer was cut off: it became too long"
    );
}

#[test]
fn a_summary_stands_after_the_last_entry_that_it_replaces() {
    let (mut transcript, done) = (Transcript::new(), || ended(EndReason::Done));
    let mut view = view([prompt("first"), says("one"), done(), prompt("second"), says("two"), done()]);
    let before = whole(&mut transcript, &view, 60);
    assert_eq!(before, "> first\n\none\n\n> second\n\ntwo");
    let by = SummaryBy::User;
    add(
        &mut view,
        Body::Summary { from: id(0), to: id(2), text: "All is well.".to_owned(), by, usage: Usage::default() },
    );
    let after = "\
> first

one

┌ summary of 3 entries: the model sees this instead
│ All is well.
└

> second

two";
    assert_eq!(whole(&mut transcript, &view, 60), after, "the cells of before are drawn anew");
    assert_eq!(drawn(&view, 60), after);
}

#[test]
fn blocks_of_a_prompt_are_named_and_unfold() {
    let parts = vec![
        Part::text("See "),
        Part::Paste { text: "one\ntwo\n".to_owned() },
        Part::text(" and\nthat "),
        Part::File { path: "src/x.rs".to_owned(), text: "fn x() {}\n".to_owned() },
        Part::Image { media_type: "image/png".to_owned(), data: String::new() },
    ];
    let view = view([Body::Prompt { parts }]);
    assert_eq!(drawn(&view, 40), "> See [pasted 2 lines] and\n  that [file src/x.rs][image png]");
    let mut transcript = Transcript::new();
    drop(whole(&mut transcript, &view, 40));
    assert!(transcript.click(0) && !transcript.click(150));
    let open = "> See [pasted 2 lines] and\n  that [file src/x.rs][image png]\n  [pasted 2 lines]\n  one\n  two\n  [file src/x.rs]\n  fn x() {}";
    assert_eq!(whole(&mut transcript, &view, 40), open);
}

#[test]
fn what_is_live() {
    let mut view = view([prompt("go")]);
    view.coming.thinking = "First one.\nThen two.\nThen three.\nThen four.\nThen five.".to_owned();
    assert_eq!(
        drawn(&view, 40),
        "\
> go

· thinking…
  Then two.
  Then three.
  Then four.
  Then five."
    );
    view.coming.text = "Here is\n```rust\nfn f".to_owned();
    assert_eq!(
        drawn(&view, 40),
        "\
> go

· thought: First one. · Then two.

Here is

  fn f"
    );
    view.coming = Default::default();
    let output = (1..=20).map(|n| format!("Compiling {n}\n")).collect();
    let call = |title: &str, output| RunningCall { call: CallId(String::new()), title: title.to_owned(), output };
    view.calls = vec![call("bash: cargo build", output), call("read a", String::new()), call("read b", String::new())];
    assert_eq!(
        drawn(&view, 40),
        "\
> go

○ bash: cargo build  running
  … 14 more lines, Ctrl+O shows all
  Compiling 15
  Compiling 16
  Compiling 17
  Compiling 18
  Compiling 19
  Compiling 20

○ read a  running
○ read b  running"
    );
}

#[test]
fn nothing_that_a_terminal_would_obey_is_drawn() {
    let evil = "a\x1b[2J\x07\u{202e}b\rc";
    let mut view = view([
        prompt(evil),
        says(evil),
        calls("bash", r#"{"command":"printf '\u001b[2J'\nx"}"#),
        result(evil, Outcome::Done, evil),
        calls("edit_file", r#"{"path":"\u001b","old":"\u001b","new":"\u0007"}"#),
        result(evil, Outcome::Done, evil),
        Body::Note { about: Vec::new(), text: evil.to_owned() },
        Body::Instructions { source: evil.to_owned(), text: evil.to_owned() },
        Body::Approved { tool: evil.to_owned(), prefix: Some(evil.to_owned()) },
        ended(EndReason::Failed { message: evil.to_owned() }),
    ]);
    view.coming.text = evil.to_owned();
    view.calls = vec![RunningCall { call: CallId(String::new()), title: evil.to_owned(), output: evil.to_owned() }];
    for width in [10, 40, 80] {
        let all = drawn(&view, width);
        assert!(!all.chars().any(|c| c.is_control() && c != '\n' || c == '\u{202e}'), "{all:?}");
    }
}
