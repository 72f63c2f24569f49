//! The turn: what happens next, decided without doing any of it.
//!
//! Facts go in, effects come out; the controller carries them out. A call sees what those before it in the answer have done: one that
//! reads waits for earlier ones that may change something, and one that may change something waits for all earlier ones, so that it is
//! known who changed what. Those that read run side by side. The user is asked about a call once everything that is read before it is
//! read: until then it is not known whether it is bound to fail. Calls are held by their number in the answer, so that a result that comes
//! late or twice is harmless.

use crate::limits;

#[cfg(test)]
mod tests;

/// A call, by its number in the model's answer.
pub(crate) type CallNumber = usize;

/// Whether a call may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallPermission {
    /// It may.
    Allowed,
    /// Somebody has to be asked.
    Ask,
    /// It has its result already: it is denied, or makes no sense.
    Settled,
}

/// What a call does to the workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effects {
    /// Nothing.
    Reads,
    /// It may change something.
    Mutates,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fact {
    /// The user said something.
    Prompted,
    /// The user wants a summary.
    SummaryWanted,
    /// The summary is there, or cannot be had.
    SummaryEnded,
    /// The model answered, and made these calls.
    Answered(Vec<(CallPermission, Effects)>),
    /// The model could not be asked.
    Failed {
        /// Whether to try again.
        retry: Retry,
        /// Why.
        message: String,
        /// What people can do about it, once nothing is tried any more.
        advice: String,
    },
    /// It is time to try again.
    RetryDue,
    /// A call that was to run cannot before the user has answered.
    Asked(CallNumber),
    /// The user allowed a call.
    Allowed(CallNumber),
    /// A call has its result.
    Settled(CallNumber),
    /// The user stopped the turn.
    Interrupted,
    /// Calls that were told to end have had their time.
    OutOfPatience,
}

/// Whether a model that could not be asked is asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retry {
    /// It would be of no use.
    Never,
    /// After a pause that doubles each time.
    Soon,
    /// After this many milliseconds, as the server wishes.
    After(u64),
}

/// Something to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Ask the model.
    AskModel,
    /// Stop asking the model for a summary; nothing of it is kept.
    CancelSummary,
    /// Ask the model again after this many milliseconds.
    WaitToRetry {
        /// The time.
        ms: u64,
        /// How often it has been tried.
        attempt: u32,
        /// Why.
        message: String,
    },
    /// Ask the user.
    AskPermission(CallNumber),
    /// Run a call.
    Run(CallNumber),
    /// Stop asking the model; what has come of its answer is kept.
    CancelModel,
    /// Tell a running call to end.
    CancelCall(CallNumber),
    /// Give a call that has not begun, or did not end in time, the result that it was interrupted.
    Abandon(CallNumber),
    /// The turn is over.
    End(Ending),
}

/// Why a turn is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The model had said all.
    Done,
    /// The user stopped it.
    Interrupted,
    /// The model could not be asked.
    Failed(String),
    /// It took too many rounds.
    RoundLimit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallStage {
    /// The user will be asked, once earlier calls have read.
    ToAsk,
    Asked,
    Allowed,
    Running,
    Settled,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct CallState {
    stage: CallStage,
    effects: Effects,
}

/// Where a turn stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Turn {
    phase: Phase,
    round: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Idle,
    Asking {
        attempt: u32,
    },
    Waiting {
        attempt: u32,
    },
    Calling(Vec<CallState>),
    /// Interrupted: running calls are coming to their end.
    Settling(Vec<CallState>),
    /// No turn: the model writes a summary for the user.
    Summarising,
}

/// What a turn looks like from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activity {
    /// Nothing is going on.
    Idle,
    /// The model or a tool is at work.
    Running,
    /// Nothing goes on until the user answers.
    Waiting,
}

impl Turn {
    /// What it looks like from outside.
    pub(crate) fn activity(&self) -> Activity {
        match &self.phase {
            Phase::Idle => Activity::Idle,
            Phase::Calling(calls) => {
                let is = |wanted: CallStage| calls.iter().any(|call| call.stage == wanted);
                if is(CallStage::Asked) && !is(CallStage::Running) { Activity::Waiting } else { Activity::Running }
            }
            Phase::Asking { .. } | Phase::Waiting { .. } | Phase::Settling(_) | Phase::Summarising => Activity::Running,
        }
    }

    /// Takes a fact in and says what is to be done.
    pub(crate) fn step(&mut self, fact: Fact) -> Vec<Effect> {
        match (&mut self.phase, fact) {
            (Phase::Idle, Fact::Prompted) => {
                self.round = 1;
                self.ask(0)
            }
            (Phase::Idle, Fact::SummaryWanted) => {
                self.phase = Phase::Summarising;
                Vec::new()
            }
            (Phase::Summarising, Fact::SummaryEnded) => {
                self.phase = Phase::Idle;
                Vec::new()
            }
            (Phase::Summarising, Fact::Interrupted) => {
                self.phase = Phase::Idle;
                vec![Effect::CancelSummary]
            }
            (Phase::Asking { .. }, Fact::Answered(calls)) if calls.is_empty() => self.end(Ending::Done),
            (Phase::Asking { .. }, Fact::Answered(calls)) => self.begin_calls(calls),
            (Phase::Asking { attempt }, Fact::Failed { retry, message, advice }) => {
                let attempt = *attempt + 1;
                self.failed(attempt, retry, message, &advice)
            }
            (Phase::Waiting { attempt }, Fact::RetryDue) => {
                let attempt = *attempt;
                self.ask(attempt)
            }
            (Phase::Calling(calls), Fact::Asked(number)) => {
                set(calls, number, &[CallStage::Running], CallStage::Asked);
                Vec::new()
            }
            (Phase::Calling(calls), Fact::Allowed(number)) => {
                set(calls, number, &[CallStage::ToAsk, CallStage::Asked], CallStage::Allowed);
                self.go_on()
            }
            (Phase::Calling(calls), Fact::Settled(number)) => {
                set(
                    calls,
                    number,
                    &[CallStage::ToAsk, CallStage::Asked, CallStage::Allowed, CallStage::Running],
                    CallStage::Settled,
                );
                self.go_on()
            }
            (Phase::Asking { .. } | Phase::Waiting { .. }, Fact::Interrupted) => {
                let mut effects = vec![Effect::CancelModel];
                effects.extend(self.end(Ending::Interrupted));
                effects
            }
            (Phase::Calling(_), Fact::Interrupted) => self.settle(),
            (Phase::Settling(calls), Fact::Settled(number)) => {
                set(calls, number, &[CallStage::Running], CallStage::Settled);
                if calls.iter().all(|call| call.stage == CallStage::Settled) {
                    self.end(Ending::Interrupted)
                } else {
                    Vec::new()
                }
            }
            (Phase::Settling(calls), Fact::OutOfPatience) => {
                let late = calls.iter().enumerate().filter(|(_, call)| call.stage != CallStage::Settled);
                let mut effects: Vec<Effect> = late.map(|(number, _)| Effect::Abandon(number)).collect();
                effects.extend(self.end(Ending::Interrupted));
                effects
            }
            // Whatever comes too late changes nothing.
            (_, Fact::Prompted | Fact::Answered(_) | Fact::Failed { .. } | Fact::RetryDue) => Vec::new(),
            (_, Fact::Asked(_) | Fact::Allowed(_) | Fact::Settled(_)) => Vec::new(),
            (_, Fact::SummaryWanted | Fact::SummaryEnded) => Vec::new(),
            (_, Fact::Interrupted | Fact::OutOfPatience) => Vec::new(),
        }
    }

    fn failed(&mut self, attempt: u32, retry: Retry, message: String, advice: &str) -> Vec<Effect> {
        let ms = match retry {
            Retry::Never => return self.end(Ending::Failed(format!("{message}; {advice}"))),
            Retry::Soon => (limits::FIRST_PAUSE_MS << (attempt - 1)).min(limits::LONGEST_PAUSE_MS),
            Retry::After(ms) => ms,
        };
        if limits::MAX_ATTEMPTS <= attempt {
            return self.end(Ending::Failed(format!("{message}; {advice}")));
        }
        self.phase = Phase::Waiting { attempt };
        vec![Effect::WaitToRetry { ms, attempt, message }]
    }

    fn ask(&mut self, attempt: u32) -> Vec<Effect> {
        self.phase = Phase::Asking { attempt };
        vec![Effect::AskModel]
    }

    fn end(&mut self, ending: Ending) -> Vec<Effect> {
        self.phase = Phase::Idle;
        vec![Effect::End(ending)]
    }

    fn begin_calls(&mut self, calls: Vec<(CallPermission, Effects)>) -> Vec<Effect> {
        let stage = |verdict| match verdict {
            CallPermission::Allowed => CallStage::Allowed,
            CallPermission::Ask => CallStage::ToAsk,
            CallPermission::Settled => CallStage::Settled,
        };
        let calls: Vec<CallState> =
            calls.into_iter().map(|(verdict, effects)| CallState { stage: stage(verdict), effects }).collect();
        self.phase = Phase::Calling(calls);
        self.go_on()
    }

    /// Asks about what can be asked about, starts what can be started; asks the model again once all calls have their results.
    fn go_on(&mut self) -> Vec<Effect> {
        let Phase::Calling(calls) = &mut self.phase else { return Vec::new() };
        if calls.iter().all(|call| call.stage == CallStage::Settled) {
            if limits::MAX_ROUNDS <= self.round {
                return self.end(Ending::RoundLimit);
            }
            self.round += 1;
            return self.ask(0);
        }
        let (mut asks, mut runs) = (Vec::new(), Vec::new());
        let (mut reads_before, mut changes_before) = (false, false);
        for (number, call) in calls.iter_mut().enumerate() {
            let has_to_wait = match call.effects {
                Effects::Reads => changes_before,
                Effects::Mutates => changes_before || reads_before,
            };
            if call.stage == CallStage::ToAsk && !reads_before {
                call.stage = CallStage::Asked;
                asks.push(Effect::AskPermission(number));
            }
            if call.stage == CallStage::Allowed && !has_to_wait {
                call.stage = CallStage::Running;
                runs.push(Effect::Run(number));
            }
            let is_open = call.stage != CallStage::Settled;
            reads_before |= is_open && call.effects == Effects::Reads;
            changes_before |= is_open && call.effects == Effects::Mutates;
        }
        asks.append(&mut runs);
        asks
    }

    fn settle(&mut self) -> Vec<Effect> {
        let Phase::Calling(calls) = &mut self.phase else { return Vec::new() };
        let mut calls = std::mem::take(calls);
        let (mut effects, mut running) = (Vec::new(), Vec::new());
        for (number, call) in calls.iter_mut().enumerate() {
            match call.stage {
                CallStage::Running => running.push(Effect::CancelCall(number)),
                CallStage::ToAsk | CallStage::Asked | CallStage::Allowed => {
                    call.stage = CallStage::Settled;
                    effects.push(Effect::Abandon(number));
                }
                CallStage::Settled => {}
            }
        }
        // Last: one that ends at once may be what the end of the turn waits for.
        effects.extend(running);
        if calls.iter().all(|call| call.stage == CallStage::Settled) {
            effects.extend(self.end(Ending::Interrupted));
        } else {
            self.phase = Phase::Settling(calls);
        }
        effects
    }
}

/// Brings a call from one of some stages to another; one that is elsewhere stays there.
fn set(calls: &mut [CallState], number: CallNumber, from: &[CallStage], to: CallStage) {
    if let Some(call) = calls.get_mut(number).filter(|call| from.contains(&call.stage)) {
        call.stage = to;
    }
}
