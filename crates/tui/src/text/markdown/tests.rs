//! What markdown looks like, and that no piece of it is ever lost or too wide.

use super::*;
use crate::text::width as columns;
use crate::theme::Colours;

fn drawn(text: &str, width: u16) -> String {
    let lines = lines(text, width, &Theme::new(Colours::None));
    lines.iter().map(|line| line.to_string().trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

const SAMPLE: &str = "# Heading one

Some *stressed* and **strong** words, `inline code`, ~~struck~~ and a [link](https://example.org/page).
Second line, hard break  
third line <b>html</b>.

- first item with enough words to be wrapped somewhere
- second
  1. nested one
  2. nested two

     with a paragraph
- [x] task done
- [ ] task open

> quoted text
> - list inside
>
> more

```rust
fn main() {
    println!(\"hello 漢字\");
}
```

| Name | Kind | Meaning |
|------|:----:|--------:|
| alpha | one | first letter |
| beta | two | second letter |

Setext
------

    indented code

<div>
block html
</div>

![picture](a.png) <https://auto.link> [label][]

[label]: https://ref.example
[unused]: https://unused.example

---
10. ten
11. eleven
";

#[test]
fn a_rich_text_at_eighty_columns() {
    let expected = "\
Heading one

Some stressed and strong words, `inline code`, struck and a link
(https://example.org/page).
Second line, hard break
third line <b>html</b>.

- first item with enough words to be wrapped somewhere
- second
  1. nested one

  2. nested two

     with a paragraph
- [x] task done
- [ ] task open

│ quoted text
│
│ - list inside
│
│ more

  fn main() {
      println!(\"hello 漢字\");
  }

Name  │ Kind │       Meaning
──────┼──────┼──────────────
alpha │ one  │  first letter
beta  │ two  │ second letter

Setext

  indented code

<div>
block html
</div>

image: picture (a.png) https://auto.link label (https://ref.example)

────────────────────────────────────────

10. ten
11. eleven

[unused]: https://unused.example";
    assert_eq!(drawn(SAMPLE, 80), expected);
}

#[test]
fn lists_are_as_tight_as_they_were_written() {
    let text = "Do:\n- one\n- two words that wrap\n  - deep\n    more\n- three\n\nAfter\n";
    assert_eq!(drawn(text, 16), "Do:\n\n- one\n- two words that\n  wrap\n  - deep\n    more\n- three\n\nAfter");
    assert_eq!(drawn("3. a\n4. b", 20), "3. a\n4. b");
}

#[test]
fn quotes_have_a_bar_and_code_stands_in() {
    assert_eq!(drawn("> a\n>\n> ```\n> x  y\n> ```\n\nb", 20), "│ a\n│\n│   x  y\n\nb");
    assert_eq!(
        drawn("```sh title=a.sh\nls -la /a/very/long\n```", 12),
        "  sh\n  title=a.sh\n  ls -la /a/\n  very/long"
    );
    assert_eq!(drawn("a\n\n```\nopen fence\n", 20), "a\n\n  open fence");
}

#[test]
fn tables_stand_side_by_side_or_row_by_row() {
    let table = "| Name | Meaning |\n|--|--:|\n| alpha | the first letter of all |\n| `b` | x |\n";
    assert_eq!(
        drawn(table, 60),
        "Name  │                 Meaning\n──────┼────────────────────────\nalpha │ the first letter of all\n`b`   │                       x"
    );
    assert_eq!(
        drawn(table, 24),
        "Name  │          Meaning\n──────┼─────────────────\nalpha │ the first letter\n      │           of all\n`b`   │                x"
    );
    let words = "| Setting | Meaning |\n|--|--|\n| configuration.file | somewhere |\n";
    assert_eq!(drawn(words, 24), "Setting:\n  configuration.file\nMeaning: somewhere", "words are not cut for a grid");
    assert_eq!(drawn(table, 14), "Name: alpha\nMeaning: the\n  first letter\n  of all\n\nName: `b`\nMeaning: x");
}

#[test]
fn a_line_that_may_become_anything_is_held_back() {
    let theme = Theme::default();
    let text = |text: &str| coming(text, 40, &theme).iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(text("Intro\n-"), ["Intro"]);
    assert_eq!(text("Intro\n- a"), ["Intro", "", "- a"]);
    assert_eq!(text("Intro\n``"), ["Intro"]);
    assert_eq!(coming("Intro\n-", 40, &theme)[0].spans[0].style, ratatui::style::Style::new());
}

#[test]
fn escape_sequences_do_not_get_through() {
    let text = "a \x1b[31mred `\x07` \n\n```\n\x1b]0;title\x07\n```\n\n| \x1b |\n|--|\n| \u{202e} |\n";
    let all = drawn(text, 30);
    assert!(!all.chars().any(|c| c.is_control() && c != '\n' || c == '\u{202e}'), "{all:?}");
    assert!(all.contains("␛[31mred"));
}

#[test]
fn every_beginning_of_a_text_can_be_drawn_and_shows_all_its_words() {
    let theme = Theme::new(Colours::None);
    let bare = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>();
    for (end, _) in SAMPLE.char_indices().chain([(SAMPLE.len(), ' ')]) {
        let source = &SAMPLE[..end];
        for width in [10, 40, 80] {
            let rows: Vec<String> = coming(source, width, &theme).iter().map(ToString::to_string).collect();
            assert!(rows.iter().all(|row| columns(row) <= usize::from(width)), "{width} {source:?}\n{rows:#?}");
            let all = bare(&rows.concat());
            // The words after a fence name a language and are not shown.
            let shown = source.lines().filter(|line| !line.starts_with('`')).collect::<Vec<_>>().join(" ");
            for word in shown.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 1) {
                assert!(all.contains(word), "{width}: `{word}` of {source:?} is missing\n{rows:#?}");
            }
        }
    }
}

#[test]
fn whatever_is_said_can_be_drawn_and_fits() {
    const PIECES: [&str; 40] = [
        "word",
        " ",
        "\n",
        "\n\n",
        "- ",
        "  - ",
        "1. ",
        "> ",
        "# ",
        "```",
        "```rust\n",
        "`",
        "*",
        "**",
        "_",
        "~~",
        "|",
        "|--",
        "| a | b |\n",
        "|---|:-:|\n",
        "[",
        "](",
        ")",
        "!",
        "<b>",
        "</div>\n",
        "<div>",
        "---\n",
        "===\n",
        "    ",
        "\t",
        "\\",
        "漢字",
        "é",
        "e\u{301}",
        "👩\u{200d}💻",
        "\x1b[0m",
        "\u{202e}",
        "[x]: http://a\n",
        "averylongwordthatfitsnowhere",
    ];
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed % below as u64).expect("it is below a usize")
    };
    for _ in 0..600 {
        let count = random(40);
        let text: String = (0..count).map(|_| PIECES[random(PIECES.len())]).collect();
        for width in [4, 10, 23, 40, 80] {
            let rows: Vec<String> = coming(&text, width, &Theme::default()).iter().map(ToString::to_string).collect();
            assert!(rows.iter().all(|row| columns(row) <= usize::from(width)), "{width} {text:?}\n{rows:#?}");
            assert!(!rows.concat().contains(|c: char| c.is_control() || c == '\u{202e}'), "{text:?}");
            let wide = |text: &str| text.matches('漢').count();
            assert!(wide(&rows.concat()) >= wide(&text), "{width} {text:?}\n{rows:#?}");
        }
    }
}
