//! `cargo fuzz run acp_line`
#![cfg_attr(fuzzing, no_main)]

retake_fuzz::fuzz!(retake_acp::fuzz::acp_line);
