//! The picker: where to go back to.
