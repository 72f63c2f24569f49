//! Random edits against a naive model.

use proptest::prelude::*;
use serde_json::json;

use super::bench::Bench;

/// Replaces by splitting: another way than the tool's.
fn naive(text: &str, old: &str, new: &str) -> (usize, String) {
    let pieces: Vec<&str> = text.split(old).collect();
    (pieces.len() - 1, pieces.join(new))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn an_exact_edit_equals_the_naive_one_with_the_files_line_endings(
        lines in prop::collection::vec("[ab\u{e9} \t]{0,4}", 0..8),
        start in 0usize..30,
        length in 1usize..8,
        new in "[ab\u{e9}\n]{0,5}",
        crlf: bool,
        all: bool,
    ) {
        let text = lines.join("\n");
        let chars: Vec<char> = text.chars().collect();
        prop_assume!(start < chars.len());
        let old: String = chars[start..(start + length).min(chars.len())].iter().collect();
        prop_assume!(old != new);
        let bench = Bench::new();
        let endings = |text: &str| if crlf { text.replace('\n', "\r\n") } else { text.to_owned() };
        bench.file("a", endings(&text));
        let (count, wanted) = naive(&text, &old, &new);
        let call = json!({ "path": "a", "old": old, "new": new, "replace_all": all });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let output = runtime.block_on(bench.call("edit_file", call));
        let after = String::from_utf8(bench.content("a")).unwrap();
        if count == 1 || all {
            // A file without any newline has no line endings to keep.
            let has_endings = text.contains('\n');
            prop_assert_eq!(after, if has_endings { endings(&wanted) } else { wanted }, "{:?}", output);
        } else {
            prop_assert!(output.text().contains(&format!("occurs {count} times")), "{:?}", output);
            prop_assert_eq!(after, endings(&text));
        }
    }
}
