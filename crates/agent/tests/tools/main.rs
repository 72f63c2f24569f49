//! The tools, on real directories and processes.
