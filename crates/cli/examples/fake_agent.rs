//! The agent with every vice, as a program, for the tests of `retake acp -- AGENT`.

fn main() {
    retake_testkit::fake_agent::main();
}
