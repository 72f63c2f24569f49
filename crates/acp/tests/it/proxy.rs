//! The proxy around an agent that has every vice.

mod chat_commands;
mod crashes;
mod cut_failures;
mod declared_paths;
mod extension;
mod extension_types;
mod false_claims;
mod forks;
mod initialize;
mod mcp_servers;
mod message_ids;
mod misbehaviour;
mod opening;
mod ownership;
mod passthrough;
mod raw_input;
mod shutdown;
mod strategies;
mod transcript_load;
mod world;
