//! What is typed, pasted, called back and edited outside.

use super::*;
use crate::theme::Theme;

fn typed(text: &str) -> Composer {
    let mut composer = Composer::default();
    composer.insert(text);
    composer
}

fn long() -> String {
    "a line\n".repeat(12)
}

#[test]
fn what_is_typed_is_said() {
    let mut composer = typed("mend it\nplease");
    assert_eq!(composer.take(), [Part::text("mend it\nplease")]);
    assert!(composer.is_blank());
}

#[test]
fn a_long_paste_is_one_block_that_goes_with_one_key() {
    let mut composer = typed("look: ");
    composer.paste(&long());
    composer.insert(" thanks");
    let parts = composer.parts();
    assert_eq!(parts, [Part::text("look: "), Part::Paste { text: long() }, Part::text(" thanks")]);
    for _ in 0..8 {
        composer.backspace();
    }
    assert_eq!(composer.parts(), [Part::text("look: ")]);
    let drawn = {
        composer.paste(&long());
        composer.rows(40, Theme::default())
    };
    assert_eq!(drawn.lines[0].to_string(), "look: [pasted 12 lines]");
}

#[test]
fn a_short_paste_is_text() {
    let mut composer = Composer::default();
    composer.paste("one\r\ntwo");
    assert_eq!(composer.parts(), [Part::text("one\ntwo")]);
}

#[test]
fn what_would_command_the_terminal_is_dropped() {
    assert_eq!(typed("a\u{1b}[31mb\u{7}\u{100000}c").parts(), [Part::text("a[31mbc")]);
}

#[test]
fn the_parts_of_a_prompt_come_back_as_they_were() {
    let parts = vec![
        Part::text("see"),
        Part::File { path: "a.rs".into(), text: "x".into() },
        Part::Image { media_type: "image/png".into(), data: "AA".into() },
        Part::Paste { text: long() },
    ];
    let mut composer = Composer::default();
    composer.set(&parts);
    assert_eq!(composer.parts(), parts);
    assert_eq!(composer.rows(80, Theme::default()).lines[0].to_string(), "see[file a.rs][image png][pasted 12 lines]");
}

#[test]
fn history_is_walked_and_what_was_being_typed_comes_back() {
    let mut composer = typed("first");
    composer.take();
    composer.insert("second");
    composer.take();
    composer.insert("third");
    assert!(composer.up() && composer.up() && composer.up());
    assert_eq!(composer.parts(), [Part::text("first")]);
    assert!(composer.down() && composer.down());
    assert_eq!(composer.parts(), [Part::text("third")]);
    assert!(!composer.down(), "there is nothing newer");
}

#[test]
fn up_and_down_move_within_several_lines_first() {
    let mut composer = typed("one\ntwo words\nx");
    composer.take();
    composer.insert("alpha\nbe");
    composer.up();
    composer.insert("|");
    assert_eq!(composer.parts(), [Part::text("al|pha\nbe")]);
}

#[test]
fn words_and_lines_are_deleted() {
    let mut composer = typed("one two three");
    composer.delete_word();
    assert_eq!(composer.raw(), ("one two ", 8));
    composer.word_left();
    composer.delete_to_end();
    assert_eq!(composer.raw(), ("one ", 4));
    composer.delete_to_start();
    assert!(composer.is_blank());
}

#[test]
fn characters_of_several_bytes_and_columns_are_one_step() {
    let mut composer = typed("a👩‍👩‍👧本");
    let rows = composer.rows(4, Theme::default());
    assert_eq!(rows.lines.iter().map(ToString::to_string).collect::<Vec<_>>(), ["a👩‍👩‍👧", "本"]);
    assert_eq!(rows.cursor, (1, 2));
    composer.left();
    composer.backspace();
    assert_eq!(composer.parts(), [Part::text("a本")]);
}

#[test]
fn the_cursor_has_room_behind_a_full_row() {
    let rows = typed("abcd").rows(4, Theme::default());
    assert_eq!((rows.lines.len(), rows.cursor), (2, (1, 0)));
}

#[test]
fn an_editor_outside_gets_marks_for_blocks_and_gives_them_back() {
    let mut composer = typed("see ");
    composer.paste(&long());
    assert_eq!(composer.for_editor(), "see [block 1]");
    composer.take_edited("please see [block 1]\nand mend it\n");
    let parts = composer.parts();
    assert_eq!(parts, [Part::text("please see "), Part::Paste { text: long() }, Part::text("and mend it")]);
    composer.take_edited("nothing");
    assert_eq!(composer.parts(), [Part::text("nothing")]);
}

#[test]
fn the_word_before_the_cursor_is_completed() {
    let mut composer = typed("look at @sr");
    assert_eq!(composer.word(), (8, "@sr"));
    composer.complete("@src/lib.rs ");
    assert_eq!(composer.parts(), [Part::text("look at @src/lib.rs ")]);
}

#[test]
fn a_mentioned_file_is_no_block_when_a_prompt_comes_back() {
    let file = |path: &str| Part::File { path: path.into(), text: "old".into() };
    let mut composer = Composer::default();
    composer.set(&[Part::text("see @a.txt"), file("a.txt"), file("b.txt")]);
    assert_eq!(composer.parts(), [Part::text("see @a.txt"), file("b.txt")]);
}

#[test]
fn words_are_not_broken_and_the_cursor_goes_with_its_word() {
    let mut composer = typed("the script belongs into src");
    let rows = |composer: &Composer| {
        let rows = composer.rows(16, Theme::default());
        (rows.lines.iter().map(ToString::to_string).collect::<Vec<_>>(), rows.cursor)
    };
    assert_eq!(rows(&composer).0, ["the script ", "belongs into src", ""]);
    for _ in 0.."ongs into src".len() {
        composer.left();
    }
    assert_eq!(rows(&composer).1, (1, 3), "behind `bel`");
    composer.home();
    assert_eq!(rows(&composer).1, (0, 0));
    assert_eq!(typed(&"x".repeat(20)).rows(16, Theme::default()).lines.len(), 2, "a word longer than a row is cut");
}
