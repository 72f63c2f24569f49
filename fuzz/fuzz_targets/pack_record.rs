//! `cargo fuzz run pack_record`
#![cfg_attr(fuzzing, no_main)]

retake_fuzz::fuzz!(retake_engine::fuzz::pack_record);
