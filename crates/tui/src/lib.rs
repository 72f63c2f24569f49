//! Retake in the terminal.
