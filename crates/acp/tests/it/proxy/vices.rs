//! Agents that do what they should not: the proxy survives each.
