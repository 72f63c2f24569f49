//! No input, no output, no clock: facts in, effects out.

use super::*;

fn reads() -> (CallPermission, Effects) {
    (CallPermission::Allowed, Effects::Reads)
}

fn writes() -> (CallPermission, Effects) {
    (CallPermission::Allowed, Effects::Mutates)
}

fn asked() -> (CallPermission, Effects) {
    (CallPermission::Ask, Effects::Mutates)
}

/// A turn whose model has just made `calls`, and what came of that.
fn calling(calls: &[(CallPermission, Effects)]) -> (Turn, Vec<Effect>) {
    let mut turn = Turn::default();
    assert_eq!(turn.step(Fact::Prompted), [Effect::AskModel]);
    let effects = turn.step(Fact::Answered(calls.to_vec()));
    (turn, effects)
}

#[test]
fn an_answer_without_calls_ends_the_turn() {
    let (turn, effects) = calling(&[]);
    assert_eq!(effects, [Effect::End(Ending::Done)]);
    assert_eq!(turn.activity(), Activity::Idle);
}

#[test]
fn the_model_is_asked_again_when_all_calls_have_their_results() {
    let (mut turn, effects) = calling(&[reads(), reads()]);
    assert_eq!(effects, [Effect::Run(0), Effect::Run(1)]);
    assert_eq!(turn.step(Fact::Settled(1)), []);
    assert_eq!(turn.step(Fact::Settled(1)), [], "a result that comes twice is one result");
    assert_eq!(turn.step(Fact::Settled(0)), [Effect::AskModel]);
}

#[test]
fn a_call_waits_for_earlier_ones_that_could_interfere() {
    let (mut turn, effects) = calling(&[writes(), reads(), reads(), writes(), reads()]);
    assert_eq!(effects, [Effect::Run(0)], "what is read is what was written before");
    assert_eq!(turn.step(Fact::Settled(0)), [Effect::Run(1), Effect::Run(2)], "reading goes side by side");
    assert_eq!(turn.step(Fact::Settled(2)), []);
    assert_eq!(turn.step(Fact::Settled(1)), [Effect::Run(3)], "what is read is not changed meanwhile");
    assert_eq!(turn.step(Fact::Settled(3)), [Effect::Run(4)]);
}

#[test]
fn a_call_that_needs_an_answer_holds_up_those_after_it() {
    let (mut turn, effects) = calling(&[reads(), asked(), writes(), reads()]);
    assert_eq!(effects, [Effect::Run(0)], "whether the next one can work depends on it");
    assert_eq!(turn.activity(), Activity::Running);
    assert_eq!(turn.step(Fact::Settled(0)), [Effect::AskPermission(1)]);
    assert_eq!(turn.activity(), Activity::Waiting);
    assert_eq!(turn.step(Fact::Allowed(1)), [Effect::Run(1)]);
    assert_eq!(turn.step(Fact::Settled(1)), [Effect::Run(2)]);
    assert_eq!(turn.step(Fact::Settled(2)), [Effect::Run(3)]);
}

#[test]
fn a_call_that_is_allowed_still_waits_for_what_is_read_before_it() {
    let (mut turn, _) = calling(&[reads(), asked()]);
    assert_eq!(turn.step(Fact::Allowed(1)), []);
    assert_eq!(turn.step(Fact::Settled(0)), [Effect::Run(1)]);
}

#[test]
fn a_denied_call_lets_the_others_go_on() {
    let (mut turn, effects) = calling(&[(CallPermission::Settled, Effects::Mutates), writes()]);
    assert_eq!(effects, [Effect::Run(1)]);
    assert_eq!(turn.step(Fact::Settled(1)), [Effect::AskModel]);
    let (_, effects) = calling(&[(CallPermission::Settled, Effects::Reads)]);
    assert_eq!(effects, [Effect::AskModel], "the model is told of what makes no sense");
}

#[test]
fn an_interrupt_ends_what_runs_and_abandons_what_does_not() {
    let (mut turn, _) = calling(&[writes(), writes(), asked()]);
    assert_eq!(turn.step(Fact::Interrupted), [Effect::Abandon(1), Effect::Abandon(2), Effect::CancelCall(0)]);
    assert_eq!(turn.step(Fact::Interrupted), [], "once is enough");
    assert_eq!(turn.step(Fact::Allowed(2)), [], "an answer that comes too late allows nothing");
    assert_eq!(turn.step(Fact::Settled(0)), [Effect::End(Ending::Interrupted)]);
    assert_eq!(turn.step(Fact::Settled(0)), [], "a result that comes late is ignored");
}

#[test]
fn a_call_that_turns_out_to_need_an_answer_waits_for_it_and_is_then_begun_again() {
    let (mut turn, effects) = calling(&[writes(), writes()]);
    assert_eq!(effects, [Effect::Run(0)]);
    assert_eq!(turn.step(Fact::Asked(0)), []);
    assert_eq!(turn.activity(), Activity::Waiting);
    assert_eq!(turn.step(Fact::Allowed(0)), [Effect::Run(0)]);
    turn.step(Fact::Asked(0));
    assert_eq!(turn.step(Fact::Interrupted)[..2], [Effect::Abandon(0), Effect::Abandon(1)]);
}

#[test]
fn a_call_that_does_not_end_does_not_keep_the_turn_from_ending() {
    let (mut turn, _) = calling(&[writes()]);
    turn.step(Fact::Interrupted);
    assert_eq!(turn.step(Fact::OutOfPatience), [Effect::Abandon(0), Effect::End(Ending::Interrupted)]);
}

#[test]
fn an_interrupt_while_the_model_answers_drops_the_rest_of_the_answer() {
    let mut turn = Turn::default();
    turn.step(Fact::Prompted);
    assert_eq!(turn.step(Fact::Interrupted), [Effect::CancelModel, Effect::End(Ending::Interrupted)]);
    assert_eq!(turn.step(Fact::Answered(vec![writes()])), [], "nothing runs after the turn was stopped");
}

#[test]
fn a_model_that_cannot_be_asked_is_asked_again_a_few_times() {
    let mut turn = Turn::default();
    turn.step(Fact::Prompted);
    let failed_with =
        |retry, message: &str| Fact::Failed { retry, message: message.to_owned(), advice: "do this".to_owned() };
    let failed = || failed_with(Retry::Soon, "busy");
    let mut ms = limits::FIRST_PAUSE_MS;
    for attempt in 1..limits::MAX_ATTEMPTS {
        assert_eq!(turn.step(failed()), [Effect::WaitToRetry { ms, attempt, message: "busy".to_owned() }]);
        ms *= 2;
        assert_eq!(turn.step(Fact::RetryDue), [Effect::AskModel]);
    }
    assert_eq!(turn.step(failed()), [Effect::End(Ending::Failed("busy; do this".to_owned()))]);
    turn.step(Fact::Prompted);
    assert_eq!(
        turn.step(failed_with(Retry::After(7), "later")),
        [Effect::WaitToRetry { ms: 7, attempt: 1, message: "later".to_owned() }]
    );
    turn.step(Fact::Interrupted);
    turn.step(Fact::Prompted);
    let hopeless = failed_with(Retry::Never, "no key");
    assert_eq!(turn.step(hopeless), [Effect::End(Ending::Failed("no key; do this".to_owned()))]);
}

#[test]
fn a_turn_has_a_last_round() {
    let (mut turn, _) = calling(&[reads()]);
    for _ in 1..limits::MAX_ROUNDS {
        assert_eq!(turn.step(Fact::Settled(0)), [Effect::AskModel]);
        turn.step(Fact::Answered(vec![reads()]));
    }
    assert_eq!(turn.step(Fact::Settled(0)), [Effect::End(Ending::RoundLimit)]);
}
