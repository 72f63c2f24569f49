//! Retake's fuzz targets: one for each decoder of bytes that Retake did not write just now.
//!
//! `fuzz_targets/` has one program per target for `cargo fuzz`, which needs a nightly compiler. `corpus/TARGET` has its inputs: real data in
//! small, and every input that once broke a decoder. The tests here replay the corpus with the stable compiler. A decoder's properties
//! are checked in the `fuzz` module of its crate, by panicking.

/// Takes any bytes, and panics when one of its decoder's properties fails.
pub type Decode = fn(&[u8]);

/// The name of every target, which is also its directory below `corpus/`, with the function that takes the input.
pub const TARGETS: [(&str, Decode); 12] = [
    ("acp_line", retake_acp::fuzz::acp_line),
    ("contract_json", retake_agent::fuzz::contract_json),
    ("git_index", retake_engine::fuzz::git_index),
    ("ignore_file", retake_engine::fuzz::ignore_file),
    ("index_block", retake_engine::fuzz::index_block),
    ("pack_bundle", retake_engine::fuzz::pack_bundle),
    ("pack_record", retake_engine::fuzz::pack_record),
    ("rewind_intent", retake_engine::fuzz::rewind_intent),
    ("session_entry", retake_engine::fuzz::session_entry),
    ("snapshot_aside", retake_engine::fuzz::snapshot_aside),
    ("snapshot_tree", retake_engine::fuzz::snapshot_tree),
    ("sse", retake_agent::fuzz::sse),
];

/// Makes a program of a function that takes bytes: a fuzzer under `cargo fuzz`, else one that does nothing.
#[macro_export]
macro_rules! fuzz {
    ($decoder:path) => {
        #[cfg(fuzzing)]
        libfuzzer_sys::fuzz_target!(|bytes: &[u8]| $decoder(bytes));

        #[cfg(not(fuzzing))]
        fn main() {}
    };
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::TARGETS;

    /// Replaying is part of every test run: a corpus stays small.
    const MAX_INPUT: u64 = 64 << 10;

    fn place(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
    }

    fn names(directory: &Path) -> BTreeSet<String> {
        let entries = fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
        entries.map(|entry| entry.expect("it is listed").file_name().into_string().expect("a plain name")).collect()
    }

    #[test]
    fn every_fuzz_target_has_a_program_and_a_corpus() {
        let targets: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
        let programs = names(&place("fuzz_targets"));
        assert_eq!(programs, targets.iter().map(|name| format!("{name}.rs")).collect());
        assert_eq!(names(&place("corpus")), targets);
        for target in targets {
            let inputs = names(&place("corpus").join(&target));
            assert!(!inputs.is_empty(), "corpus/{target} is empty");
        }
    }

    #[test]
    fn every_input_of_the_corpus_is_decoded_without_a_failure() {
        for (target, decode) in TARGETS {
            let corpus = place("corpus").join(target);
            for name in names(&corpus) {
                let bytes = fs::read(corpus.join(&name)).expect("it can be read");
                assert!(bytes.len() as u64 <= MAX_INPUT, "corpus/{target}/{name} has {} bytes", bytes.len());
                let decoded = std::panic::catch_unwind(|| decode(&bytes));
                assert!(decoded.is_ok(), "corpus/{target}/{name} fails: the panic is above");
            }
        }
    }
}
