//! `cargo fuzz run git_index`
#![cfg_attr(fuzzing, no_main)]

retake_fuzz::fuzz!(retake_engine::fuzz::git_index);
