//! `cargo fuzz run contract_json`
#![cfg_attr(fuzzing, no_main)]

retake_fuzz::fuzz!(retake_agent::fuzz::contract_json);
