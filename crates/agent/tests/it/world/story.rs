//! What a story is made of, and how it is drawn.

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use retake_engine::rewind::OnConflict;
use retake_engine::session::Scope;

use crate::scene::Wire;

/// Paths that tools and people write; what is below `n` only tools do, and that directory comes and goes.
pub(super) const PATHS: [&str; 7] = ["a", "b", "c.txt", "d/e", "d/f", "n/x", "n/y"];
/// Of these, the ones that people write too.
pub(super) const SHARED: usize = 5;

/// A path by its number.
pub(super) type Place = usize;

#[derive(Clone, Debug)]
pub(super) struct Story {
    /// Whether shell commands are allowed.
    pub(super) has_shell: bool,
    pub(super) wire: Wire,
    pub(super) steps: Vec<Step>,
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    Turn {
        rounds: Vec<Act>,
        ending: Ending,
    },
    /// A person writes or deletes.
    Outside {
        place: Place,
        is_delete: bool,
    },
    /// To before a prompt.
    Rewind {
        which: usize,
        scope: Scope,
        choice: OnConflict,
    },
    /// To after another entry.
    RewindInto {
        which: usize,
        scope: Scope,
        choice: OnConflict,
    },
    Undo,
    Redo,
    Clear,
    /// Around any entry.
    Summarise {
        stretch: Stretch,
        which: usize,
    },
    Restart,
    Draft,
}

/// A part of the conversation that the user wants to be summarised.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stretch {
    All,
    From,
    UpTo,
}

#[derive(Clone, Debug)]
pub(super) enum Ending {
    Done,
    /// The model cannot be asked.
    Fails,
    /// The user stops a command that has written something.
    StopsCall(Place),
    /// The user stops the answer.
    StopsAnswer,
    /// The user stops before there is an answer.
    StopsWaiting,
}

/// What the model does in a round.
#[derive(Clone, Debug)]
pub(super) enum Act {
    /// Reads a file and writes it.
    Write(Place),
    /// Writes a file that it may not have read.
    WriteBlindly(Place),
    Edit(Place),
    Delete(Place),
    Move(Place, Place),
    Shell(Shell),
    Todo(usize),
    Read(Place),
    /// Several calls at once, of which one writes.
    Together(Place),
    /// A call that makes no sense, or leads out of the workspace.
    Nonsense(usize),
    /// Marks a place to go back to.
    Checkpoint,
    /// Goes back to one of the open checkpoints.
    GoBack {
        which: usize,
        restores: bool,
    },
    /// Something after which the conversation is too long for the model.
    Long,
}

#[derive(Clone, Debug)]
pub(super) enum Shell {
    Write(Place),
    /// Writes a file twice; the second time as it was.
    ThereAndBack(Place),
    Append(Place),
    Remove(Place),
    RemoveDirectory,
    Move(Place, Place),
    Mode(Place),
    /// Writes, and fails.
    Fails(Place),
}

fn place() -> impl Strategy<Value = Place> {
    0..PATHS.len()
}

fn shell() -> impl Strategy<Value = Shell> {
    prop_oneof![
        3 => place().prop_map(Shell::Write),
        1 => place().prop_map(Shell::ThereAndBack),
        1 => place().prop_map(Shell::Append),
        2 => place().prop_map(Shell::Remove),
        1 => Just(Shell::RemoveDirectory),
        1 => (place(), place()).prop_map(|(from, to)| Shell::Move(from, to)),
        1 => place().prop_map(Shell::Mode),
        1 => place().prop_map(Shell::Fails),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => place().prop_map(Act::Write),
        1 => place().prop_map(Act::WriteBlindly),
        2 => place().prop_map(Act::Edit),
        2 => place().prop_map(Act::Delete),
        2 => (place(), place()).prop_map(|(from, to)| Act::Move(from, to)),
        5 => shell().prop_map(Act::Shell),
        1 => (0..4_usize).prop_map(Act::Todo),
        1 => place().prop_map(Act::Read),
        2 => place().prop_map(Act::Together),
        1 => (0..5_usize).prop_map(Act::Nonsense),
        2 => Just(Act::Checkpoint),
        3 => (any::<u8>(), any::<bool>())
            .prop_map(|(which, restores)| Act::GoBack { which: usize::from(which), restores }),
        1 => Just(Act::Long),
    ]
}

fn ending() -> impl Strategy<Value = Ending> {
    prop_oneof![
        12 => Just(Ending::Done),
        1 => Just(Ending::Fails),
        2 => place().prop_map(Ending::StopsCall),
        1 => Just(Ending::StopsAnswer),
        1 => Just(Ending::StopsWaiting),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let scope = || prop_oneof![Just(Scope::Code), Just(Scope::Conversation), Just(Scope::Both)];
    let stretch = prop_oneof![1 => Just(Stretch::All), 3 => Just(Stretch::From), 2 => Just(Stretch::UpTo)];
    let choice = || prop_oneof![Just(OnConflict::Stop), Just(OnConflict::Keep), Just(OnConflict::Overwrite)];
    prop_oneof![
        8 => (vec(act(), 0..4), ending()).prop_map(|(rounds, ending)| Step::Turn { rounds, ending }),
        5 => (0..SHARED, any::<u8>()).prop_map(|(place, n)| Step::Outside { place, is_delete: n % 4 == 0 }),
        6 => (any::<u8>(), scope(), choice())
            .prop_map(|(which, scope, choice)| Step::Rewind { which: usize::from(which), scope, choice }),
        3 => (any::<u8>(), scope(), choice())
            .prop_map(|(which, scope, choice)| Step::RewindInto { which: usize::from(which), scope, choice }),
        4 => Just(Step::Undo),
        3 => Just(Step::Redo),
        1 => Just(Step::Clear),
        2 => (stretch, any::<u8>())
            .prop_map(|(stretch, which)| Step::Summarise { stretch, which: usize::from(which) }),
        2 => Just(Step::Restart),
        1 => Just(Step::Draft),
    ]
}

/// The model makes a checkpoint and works on, and goes back after whatever else happens: often somebody else was at work too.
fn exploration() -> impl Strategy<Value = Vec<Step>> {
    let turn = |rounds| Step::Turn { rounds, ending: Ending::Done };
    let (works, between) = (vec(act(), 0..3), vec(step(), 0..3));
    (works, 0..SHARED, between, any::<u8>()).prop_map(move |(mut rounds, place, mut steps, n)| {
        rounds.insert(0, Act::Write(place));
        rounds.insert(0, Act::Checkpoint);
        if n % 3 == 0 {
            steps.push(Step::Outside { place, is_delete: false });
        }
        steps.insert(0, turn(rounds));
        steps.push(turn(vec![Act::GoBack { which: 0, restores: n % 4 != 0 }]));
        steps
    })
}

pub(super) fn stories() -> impl Strategy<Value = Story> {
    let steps = prop_oneof![16 => step().prop_map(|step| vec![step]), 1 => exploration()];
    let steps = vec(steps, 4..16).prop_map(|steps| steps.concat());
    let wire = prop_oneof![Just(Wire::Anthropic), Just(Wire::OpenAi)];
    (any::<u8>(), wire, steps).prop_map(|(n, wire, steps)| Story { has_shell: n % 6 != 0, wire, steps })
}
