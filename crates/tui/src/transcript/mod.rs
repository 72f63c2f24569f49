//! The conversation as it is drawn.
