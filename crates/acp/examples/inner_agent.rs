//! The agent with every vice, as a program, for the proxy's tests.

fn main() {
    retake_testkit::fake_agent::main();
}
