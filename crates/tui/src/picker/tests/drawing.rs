//! What the screen looks like, letter by letter.

use super::*;

/// A plan in which everything there is to say is said.
pub fn everything() -> RewindDocument {
    let ledger = |kind: &str, what: &str, remedy: Option<&str>| LedgerItem {
        kind: kind.to_owned(),
        what: what.to_owned(),
        remedy: remedy.map(str::to_owned),
    };
    let gaps = json!({"gaps": [{"path": "big.iso", "kind": "too_large", "text": "too large"}], "gaps_total": 1});
    let stays = json!([{"path": "build", "change": "new", "why": "holds_others", "text": "holds ignored files"}]);
    RewindDocument {
        ledger: vec![ledger("command", "npm install", None), ledger("git", "HEAD moved", Some("git reset --soft abc"))],
        gaps: serde_json::from_value(gaps).unwrap(),
        not_restored: serde_json::from_value(stays).unwrap(),
        foreign: 1,
        undoes: vec!["bash: npm install".to_owned()],
        still_open: vec![path("app.log")],
        ..with_branch(with_conflicts(2))
    }
}

pub fn menu() -> Scene {
    let mut scene = Scene::ready();
    scene.press(KeyCode::Enter);
    scene
}

pub fn deciding() -> Scene {
    let mut scene = Scene::ready_with(with_conflicts(4));
    scene.press(KeyCode::Enter);
    scene.press(KeyCode::Enter);
    scene.answer_all(with_conflicts(4));
    scene.press(KeyCode::Down);
    scene.press(KeyCode::Char('o'));
    scene.answer_all(with_conflicts(4));
    scene
}

pub fn crossing() -> Scene {
    let mut scene = Scene::ready_with(with_branch(plan(4)));
    scene.press(KeyCode::Enter);
    scene.press(KeyCode::Enter);
    scene
}

pub fn tree() -> Scene {
    let mut scene = Scene::ready();
    scene.press(KeyCode::Tab);
    scene.answer_all(plan(4));
    scene
}

pub fn zoomed() -> Scene {
    let mut scene = Scene::ready_with(everything());
    let view = View { jobs: vec![job("npm run dev", None), job("make", Some("exit 0"))], ..view(State::Idle) };
    scene.picker.view_changed(&view);
    scene.ctrl('o');
    scene
}

/// The screen after a line break, without empty lines at its end.
fn screen(scene: &mut Scene, width: u16, height: u16) -> String {
    format!("\n{}\n", scene.drawn(width, height).trim_end())
}

fn job(command: &str, ended: Option<&str>) -> JobFacts {
    JobFacts { job: "j1".to_owned(), command: command.to_owned(), ended: ended.map(str::to_owned) }
}

#[test]
fn rows_and_preview_are_below_each_other_at_40_columns() {
    let expected = "
Rewind: type to filter  4 prompts · list
›  4  6m ! Add a login form w…  +2 ~1 −0
    stays: HEAD moved  bash: npm instal…
   3  7m   Make the tests pass
    [before tests]
   2  8m   Übersetze 日本語 d…  +0 ~1 −0
    bash: test -f a
   1  9m   Set up the project
    files gone; conversation only


── What would change now ────── 10/13 ──
2 files · this prompt leaves

R src/main.rs  +1 −1
   9   fn main() {
  10 −     new();
  10 +     old();
  11   }

D new.txt  −1
  1 − made up
";
    assert_eq!(screen(&mut Scene::ready(), 40, 22), expected);
}

#[test]
fn rows_are_one_line_each_at_80_columns() {
    let expected = "
Rewind: type to filter                                          4 prompts · list
›  4  6m ! Add a login form with a very lo…  stays: HEAD moved  bash:…  +2 ~1 −0
   3  7m   Make the tests pass                                    [before tests]
   2  8m   Übersetze 日本語 die Texte                  bash: test -f a  +0 ~1 −0
   1  9m   Set up the project
    files of that moment are gone; conversation only


── What would change now ─────────────────────────────────────────────── 7/12 ──
2 files · this prompt leaves

R src/main.rs  +1 −1
   9  9   fn main() {
  10    −     new();
     10 +     old();
  11 11   }
";
    assert_eq!(screen(&mut Scene::ready(), 80, 16), expected);
}

#[test]
fn rows_and_preview_are_beside_each_other_at_120_columns() {
    let expected = "
Rewind: type to filter                                                                                  4 prompts · list
›  4  6m ! Add a login form with a very lo…  +2 ~1 −0 │ ── What would change now ────────────────────────────── 12/13 ──
    stays: HEAD moved  bash: npm install · write_fil… │ 2 files · this prompt leaves
   3  7m   Make the tests pass                        │
    [before tests]                                    │ R src/main.rs  +1 −1
   2  8m   Übersetze 日本語 die Texte        +0 ~1 −0 │    9  9   fn main() {
    bash: test -f a                                   │   10    −     new();
   1  9m   Set up the project                         │      10 +     old();
    files gone; conversation only                     │   11 11   }
                                                      │
                                                      │ D new.txt  −1
                                                      │   1   − made up
                                                      │
                                                      │ What changed while its commands ran is presumed to be the
";
    assert_eq!(screen(&mut Scene::ready(), 120, 14), expected);
}

#[test]
fn the_pane_shows_what_the_chosen_thing_would_do() {
    let files = ["R src/main.rs", "D new.txt", "2 files ·"];
    for (digit, said, has_files) in [
        ('1', "this prompt leaves", true),
        ('2', "this prompt leaves · files and side effects stay", false),
        ('3', "2 files · the conversation stays", true),
        ('4', "Fork from here: a new session from here; this one stays as it is", false),
        ('5', "Summarise from here: this prompt becomes a summary", false),
        ('7', "Cancel: nothing changes", false),
    ] {
        for (width, height) in [(40, 40), (80, 30), (100, 30), (120, 30)] {
            let mut scene = menu();
            let down = digit.to_digit(10).unwrap() - 1;
            (0..down).for_each(|_| drop(scene.press(KeyCode::Down)));
            let screen = scene.drawn(width, height);
            let pane: Vec<&str> = match width {
                100.. => screen.lines().filter_map(|line| Some(line.split_once("│ ")?.1)).collect(),
                _ => screen.lines().skip_while(|line| !line.contains("What would change now")).collect(),
            };
            let words = pane.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words.contains(said), "{digit} at {width}: {screen}");
            let shows_files = files.iter().any(|text| words.contains(text));
            assert_eq!(shows_files, has_files, "{digit} at {width}: {screen}");
        }
    }
}

#[test]
fn no_offer_of_the_menu_is_cut_off_at_100_columns() {
    let screen = menu().drawn(100, 30);
    let left: Vec<&str> = screen.lines().filter_map(|line| Some(line.split_once('│')?.0.trim())).collect();
    let words = left.join(" ");
    for offer in ["2 files go back, 1 prompt leaves the conversation", "1 prompt leaves; files and side effects stay"] {
        assert!(words.contains(offer), "{screen}");
    }
    assert!(!left.iter().skip(1).any(|line| line.ends_with('…')), "{screen}");
}

#[test]
fn the_menu_at_40_columns() {
    let expected = "
Rewind: type to filter  4 prompts · list
Rewind to before 4 “Add a login form wi…
› 1 Code and conversation
  2 Conversation only
  3 Code only
  4 Fork from here
  5 Summarise from here
  6 Summarise up to here
  7 Cancel
2 files go back, 1 prompt leaves the
conversation

── What would change now ─────── 7/13 ──
2 files · this prompt leaves

R src/main.rs  +1 −1
   9   fn main() {
  10 −     new();
  10 +     old();
  11   }
";
    assert_eq!(screen(&mut menu(), 40, 20), expected);
}

#[test]
fn the_menu_at_80_columns() {
    let expected = "
Rewind: type to filter                                          4 prompts · list
Rewind to before 4 “Add a login form with a very long description that goes on…
› 1 Code and conversation   2 files go back, 1 prompt leaves the conversation
  2 Conversation only       1 prompt leaves; files and side effects stay
  3 Code only               2 files go back; the conversation stays
  4 Fork from here          a new session from here; this one stays as it is
  5 Summarise from here     this prompt becomes a summary
  6 Summarise up to here    the 3 prompts before it become one summary
  7 Cancel                  nothing changes

── What would change now ─────────────────────────────────────────────── 7/12 ──
2 files · this prompt leaves

R src/main.rs  +1 −1
   9  9   fn main() {
  10    −     new();
     10 +     old();
  11 11   }
";
    assert_eq!(screen(&mut menu(), 80, 18), expected);
}

#[test]
fn the_menu_at_120_columns() {
    let expected = "
Rewind: type to filter                                                                                  4 prompts · list
Rewind to before 4 “Add a login form with a very lon… │ ── What would change now ───────────────────────────────────────
› 1 Code and conversation                             │ 2 files · this prompt leaves
    2 files go back, 1 prompt leaves the conversation │
  2 Conversation only                                 │ R src/main.rs  +1 −1
    1 prompt leaves; files and side effects stay      │    9  9   fn main() {
  3 Code only                                         │   10    −     new();
    2 files go back; the conversation stays           │      10 +     old();
  4 Fork from here                                    │   11 11   }
    a new session from here; this one stays as it is  │
  5 Summarise from here                               │ D new.txt  −1
    this prompt becomes a summary                     │   1   − made up
  6 Summarise up to here                              │
    the 3 prompts before it become one summary        │ What changed while its commands ran is presumed to be the
  7 Cancel                                            │ session's own.
    nothing changes                                   │
                                                      │
                                                      │
";
    assert_eq!(screen(&mut menu(), 120, 18), expected);
}

#[test]
fn decisions_at_40_columns() {
    let expected = "
Rewind: type to filter  4 prompts · list
2 files need a decision
  a.rs
    changed since by you or another pro…
    [keep]  overwrite   merge
› b.rs                 keep  [overwrite]
    changed since by you or another pro…


── What would change now ───────────────
b.rs  +1
is overwritten; what is there now stays
in the safety checkpoint:
5 + of b
";
    assert_eq!(screen(&mut deciding(), 40, 18), expected);
}

#[test]
fn decisions_at_80_columns() {
    let expected = "
Rewind: type to filter                                          4 prompts · list
2 files need a decision
  a.rs                                                [keep]  overwrite   merge
    changed since by you or another program
› b.rs                                                         keep  [overwrite]
    changed since by you or another program



── What would change now ───────────────────────────────────────────────────────
b.rs  +1
is overwritten; what is there now stays in the safety checkpoint:
5 + of b
";
    assert_eq!(screen(&mut deciding(), 80, 14), expected);
}

#[test]
fn another_branch_at_80_columns() {
    let expected = "
Rewind: type to filter                                          4 prompts · list
Another branch is checked out
the branch `topic` is checked out, and it was `main` then
Files would go back to what they were on the other one.
› n No, change nothing
  y Yes, go on

── What would change now ─────────────────────────────────────────────── 6/14 ──
2 files · this prompt leaves
Another branch is checked out: the branch `topic` is checked out, and it was
`main` then

R src/main.rs  +1 −1
   9  9   fn main() {
";
    assert_eq!(screen(&mut crossing(), 80, 14), expected);
}

#[test]
fn the_tree_at_40_columns() {
    let expected = "
Rewind: type to filter  7 prompts · tree
  ┌─○     1m   Prompt 11
  ●  1  1m   Prompt 1
  │   files gone; conversation only
  ●  2  1m   Prompt 2
  ├─○     1m   Prompt 12
  │ ○     1m   Prompt 13
  │     forked: 3fa29c41
  ●  3  1m   Prompt 3
  │   [good]
› ●  4  1m   Prompt 4             ← head
── What would change now ────── 10/13 ──
2 files · this prompt leaves

R src/main.rs  +1 −1
   9   fn main() {
  10 −     new();
  10 +     old();
  11   }

D new.txt  −1
  1 − made up
";
    assert_eq!(screen(&mut tree(), 40, 22), expected);
}

#[test]
fn the_tree_at_80_columns() {
    let expected = "
Rewind: type to filter                                          7 prompts · tree
  ┌─○     1m   Prompt 11
  ●  1  1m   Prompt 1
  │   files of that moment are gone; conversation only
  ●  2  1m   Prompt 2
  ├─○     1m   Prompt 12
  │ ○     1m   Prompt 13                                        forked: 3fa29c41
  ●  3  1m   Prompt 3                                                     [good]
› ●  4  1m   Prompt 4                                                     ← head
── What would change now ─────────────────────────────────────────────── 8/12 ──
2 files · this prompt leaves

R src/main.rs  +1 −1
   9  9   fn main() {
  10    −     new();
     10 +     old();
  11 11   }
";
    assert_eq!(screen(&mut tree(), 80, 18), expected);
}

#[test]
fn everything_that_a_plan_says_at_60_columns() {
    let expected = "
Rewind: type to filter                      4 prompts · list
── What would change now ────────────────────────── 34/43 ──
4 files · 2 conflicts · this prompt and 2 later ones leave
To be decided first:
  ! a.rs  changed since by you or another program
  ! b.rs  changed since by you or another program
Another branch is checked out: the branch `topic` is checked
out, and it was `main` then
Of these, the session never wrote 1 path
! 1 effect is outside the files: no rewind takes that back
(below)
1 command ran; its effects outside these files stay (below)
Changed since then and does not go back:
  build  holds ignored files
Not captured then: 1 gap
  big.iso  too large
Still open for writing in a program:
  app.log
Background jobs: ended if they were started since then:
  npm run dev
Leaves the conversation:
  Prompt 2
  Prompt 3
  Prompt 4

R src/main.rs  +1 −1
   9   fn main() {
  10 −     new();
  10 +     old();
  11   }

D new.txt  −1
  1 − made up

! a.rs
";
    assert_eq!(screen(&mut zoomed(), 60, 36), expected);
}

#[test]
fn a_low_screen_has_rows_only() {
    let expected = "
Rewind: type to filter  4 prompts · list
›  4  6m ! Add a login form w…  +2 ~1 −0
    stays: HEAD moved  bash: npm instal…
   3  7m   Make the tests pass
    [before tests]
   2  8m   Übersetze 日本語 d…  +0 ~1 −0
    bash: test -f a
   1  9m   Set up the project
";
    assert_eq!(screen(&mut Scene::ready(), 40, 8), expected);
}

#[test]
fn prompts_that_left_earlier_and_whose_files_go_back_are_listed() {
    let mut document = plan(4);
    let line = PromptLine { id: id(9), text: "Prompt 9".to_owned() };
    document.conversation.as_mut().unwrap().left_before = vec![line];
    let mut scene = Scene::opened();
    scene.answer_lists(&document, &[target(4, "Prompt 4")]);
    let drawn = screen(&mut scene, 100, 20);
    let at = drawn.find("Left the conversation earlier, and their").unwrap_or_else(|| panic!("{drawn}"));
    assert!(drawn[at..].contains("Prompt 9"), "{drawn}");
}
