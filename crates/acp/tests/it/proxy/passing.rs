//! What passes: everything, as it came.
