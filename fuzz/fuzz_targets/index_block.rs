//! `cargo fuzz run index_block`
#![cfg_attr(fuzzing, no_main)]

retake_fuzz::fuzz!(retake_engine::fuzz::index_block);
