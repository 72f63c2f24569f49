//! The examples run. Each asserts for itself that it does what it says.

#[path = "../../examples/agent.rs"]
mod agent;
#[path = "../../examples/checkpoint.rs"]
mod checkpoint;
#[path = "../../examples/command.rs"]
mod command;
#[path = "../../examples/watch.rs"]
mod watch;

#[test]
fn the_example_of_a_checkpoint_runs() {
    checkpoint::main().unwrap();
}

#[test]
fn the_example_of_a_command_runs() {
    command::main().unwrap();
}

#[test]
fn the_example_of_a_watch_runs() {
    watch::main().unwrap();
}

#[test]
fn the_example_of_an_agent_runs() {
    agent::main().unwrap();
}
