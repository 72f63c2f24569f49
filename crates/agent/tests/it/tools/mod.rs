//! The tools, on real directories and processes.

mod bench;
mod edits;
mod files;
mod jobs;
mod mcp;
mod paths;
mod property;
mod searches;
mod shell;
mod toolbox;
