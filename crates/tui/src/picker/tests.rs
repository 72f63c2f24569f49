//! The picker without a terminal and without a session: keys and answers in, steps and drawings out.
