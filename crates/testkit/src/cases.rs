//! How much a test tries that plays many random cases.

/// As many cases as `RETAKE_CASES` says, or `usual`.
pub fn cases(usual: u32) -> u32 {
    match std::env::var("RETAKE_CASES") {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("RETAKE_CASES is a number, not `{text}`")),
        Err(_) => usual,
    }
}
