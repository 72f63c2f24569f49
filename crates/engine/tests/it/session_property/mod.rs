//! Random conversations with rewinds, undos, redos, clears, summaries, crashes, restarts and checkpoints of the model's own, and random
//! forks of these that are gone on with, undone and deleted, against a naive model: a list of entries for each session, a list of what is
//! seen of them, and full copies of the files.
//!
//! What agents write and what others write are different files, so that nothing is in conflict unless an older turn is undone or another
//! session has changed it: who may overwrite whom is the subject of [`rewind_property`](crate::rewind_property).
//!
//! How many cases, and which: see [`cases`](crate::cases).

mod back;
mod forks;
mod model;
mod play;
mod tally;
mod timeline;
mod turns;
mod view;

use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_oneof};
use proptest::strategy::Just;
use retake_engine::rewind::OnConflict;
use retake_engine::session::{Discard, Scope};

use crate::cases;
use crate::compare::Verdict;
use play::Play;
use tally::Met;

/// Cases of a normal run.
const CASES: u32 = 80;

/// Files of the agent.
const OURS: [&str; 4] = ["a", "b", "d/x", "d/y"];
/// Files of others.
const THEIRS: [&str; 2] = ["o", "p/o"];

/// What is done to a file.
#[derive(Clone, Debug)]
enum Effect {
    Write(usize, u8),
    Delete(usize),
    Move(usize, usize),
}

/// A tool call.
#[derive(Clone, Debug)]
enum Call {
    /// Edits one file, which it declares.
    Edit(usize, u8),
    /// Does anything.
    Shell(Vec<Effect>),
    /// Changes the todo list.
    Todo(u8),
    /// Is allowed from now on, and changes nothing.
    Approved,
    /// Marks a place to go back to.
    Checkpoint,
    /// Goes back to one of the open checkpoints, if there is any.
    GoBack(usize),
}

/// One answer of the model.
#[derive(Clone, Debug)]
struct Round {
    /// What is summarised before the model is asked.
    compact: Option<Compact>,
    calls: Vec<Call>,
}

/// A part of the conversation that makes room if it is summarised.
#[derive(Clone, Copy, Debug)]
enum Compact {
    Before,
    Since,
}

/// A part of the conversation that the user wants to be summarised.
#[derive(Clone, Copy, Debug)]
enum Stretch {
    All,
    From,
    UpTo,
}

/// How a turn ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Done,
    /// The process dies: before any output, in the middle of a round, after one.
    Dies,
}

/// Something that happens.
#[derive(Clone, Debug)]
enum Step {
    Turn {
        prompt: u8,
        rounds: Vec<Round>,
        end: End,
    },
    Outside(Effect),
    /// To a prompt that is listed.
    Rewind(Scope, usize, Manner),
    /// To any entry that there ever was.
    RewindToEntry(Scope, usize, Manner),
    Undo,
    UndoOf(usize),
    Redo,
    Clear,
    /// Around any entry.
    Summarise(Stretch, usize),
    Draft(u8),
    Reopen,
    /// From a prompt that is listed, or from any entry.
    Fork(usize),
    /// Goes on in another session.
    Switch(usize),
    /// Deletes a session, the open one too.
    Delete(usize),
    Collect,
}

/// How a rewind is done.
#[derive(Clone, Copy, Debug)]
struct Manner {
    discard: Discard,
    /// What becomes of files that somebody else has changed too.
    on_conflict: OnConflict,
}

fn effect(names: usize) -> impl Strategy<Value = Effect> {
    prop_oneof![
        4 => (0..names, 0..9_u8).prop_map(|(name, content)| Effect::Write(name, content)),
        1 => (0..names).prop_map(Effect::Delete),
        1 => (0..names, 0..names).prop_map(|(from, to)| Effect::Move(from, to)),
    ]
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        3 => (0..OURS.len(), 0..9_u8).prop_map(|(name, content)| Call::Edit(name, content)),
        3 => vec(effect(OURS.len()), 0..3).prop_map(Call::Shell),
        1 => (0..9_u8).prop_map(Call::Todo),
        1 => Just(Call::Approved),
        3 => Just(Call::Checkpoint),
        4 => any::<usize>().prop_map(Call::GoBack),
    ]
}

fn compact() -> impl Strategy<Value = Option<Compact>> + Clone {
    prop_oneof![8 => Just(None), 1 => Just(Some(Compact::Before)), 1 => Just(Some(Compact::Since))]
}

fn round() -> impl Strategy<Value = Round> {
    (compact(), vec(call(), 0..4)).prop_map(|(compact, calls)| Round { compact, calls })
}

fn stretch() -> impl Strategy<Value = Stretch> {
    prop_oneof![1 => Just(Stretch::All), 5 => Just(Stretch::From), 3 => Just(Stretch::UpTo)]
}

fn scope() -> impl Strategy<Value = Scope> {
    prop_oneof![Just(Scope::Both), Just(Scope::Code), Just(Scope::Conversation)]
}

fn manner() -> impl Strategy<Value = Manner> {
    let discard = prop_oneof![7 => Just(Discard::No), 1 => Just(Discard::Now)];
    let on_conflict = prop_oneof![Just(OnConflict::Stop), Just(OnConflict::Keep), Just(OnConflict::Overwrite)];
    (discard, on_conflict).prop_map(|(discard, on_conflict)| Manner { discard, on_conflict })
}

fn step() -> impl Strategy<Value = Step> {
    let end = prop_oneof![6 => Just(End::Done), 1 => Just(End::Dies)];
    let turn = (0..9_u8, vec(round(), 0..4), end);
    prop_oneof![
        8 => turn.prop_map(|(prompt, rounds, end)| Step::Turn { prompt, rounds, end }),
        2 => effect(THEIRS.len()).prop_map(Step::Outside),
        4 => (scope(), any::<usize>(), manner()).prop_map(|(scope, at, manner)| Step::Rewind(scope, at, manner)),
        2 => (scope(), any::<usize>(), manner()).prop_map(|(scope, at, manner)| Step::RewindToEntry(scope, at, manner)),
        5 => Just(Step::Undo),
        3 => any::<usize>().prop_map(Step::UndoOf),
        4 => Just(Step::Redo),
        1 => Just(Step::Clear),
        4 => (stretch(), any::<usize>()).prop_map(|(stretch, at)| Step::Summarise(stretch, at)),
        1 => (0..3_u8).prop_map(Step::Draft),
        1 => Just(Step::Reopen),
    ]
}

/// The model makes a checkpoint, and goes back to it after whatever else happens.
fn exploration() -> impl Strategy<Value = Vec<Step>> {
    let turn = |call: Call| {
        let round = vec(self::call(), 0..2).prop_map(move |mut calls| {
            calls.push(call.clone());
            Round { compact: None, calls }
        });
        round.prop_map(|round| Step::Turn { prompt: 2, rounds: vec![round], end: End::Done })
    };
    (turn(Call::Checkpoint), vec(step(), 1..4), turn(Call::GoBack(0))).prop_map(|(first, mut steps, last)| {
        steps.insert(0, first);
        steps.push(last);
        steps
    })
}

/// Anything, in one of several sessions.
fn step_of_many() -> impl Strategy<Value = Step> {
    prop_oneof![
        30 => step(),
        4 => any::<usize>().prop_map(Step::Fork),
        7 => any::<usize>().prop_map(Step::Switch),
        2 => any::<usize>().prop_map(Step::Delete),
        1 => Just(Step::Collect),
    ]
}

/// Several sessions that change the same files, go back and take back.
fn tangle() -> impl Strategy<Value = Vec<Step>> {
    let call = prop_oneof![
        5 => (0..OURS.len(), 0..9_u8).prop_map(|(name, content)| Call::Edit(name, content)),
        4 => vec(effect(OURS.len()), 1..3).prop_map(Call::Shell),
        2 => call(),
    ];
    let round = (compact(), vec(call, 1..3)).prop_map(|(compact, calls)| Round { compact, calls });
    let turn = vec(round, 1..3).prop_map(|rounds| Step::Turn { prompt: 2, rounds, end: End::Done });
    let step = prop_oneof![
        8 => turn.clone(),
        4 => any::<usize>().prop_map(Step::Fork),
        8 => any::<usize>().prop_map(Step::Switch),
        5 => (scope(), any::<usize>(), manner()).prop_map(|(scope, at, manner)| Step::Rewind(scope, at, manner)),
        2 => (scope(), any::<usize>(), manner()).prop_map(|(scope, at, manner)| Step::RewindToEntry(scope, at, manner)),
        3 => Just(Step::Undo),
        2 => any::<usize>().prop_map(Step::UndoOf),
        3 => Just(Step::Redo),
        2 => any::<usize>().prop_map(Step::Delete),
        2 => (stretch(), any::<usize>()).prop_map(|(stretch, at)| Step::Summarise(stretch, at)),
        4 => step_of_many(),
    ];
    let once = |at| vec![Step::Fork(at)];
    // Forks the fork, and undoes the first one where it was made.
    let twice = |at| vec![Step::Fork(at), Step::Switch(0), Step::Fork(at), Step::Switch(0), Step::UndoOf(at)];
    let forks = prop_oneof![5 => any::<usize>().prop_map(once), 1 => any::<usize>().prop_map(twice)];
    let begin = (vec(turn, 1..3), forks).prop_map(|(turns, forks)| [turns, forks].concat());
    (begin, vec(step, 4..24)).prop_map(|(begin, steps)| [begin, steps].concat())
}

fn story() -> impl Strategy<Value = Vec<Step>> {
    let alone = prop_oneof![24 => step().prop_map(|step| vec![step]), 1 => exploration()];
    let explored = (exploration(), any::<usize>()).prop_map(|(mut steps, at)| {
        steps.push(Step::Fork(at));
        steps
    });
    let many = prop_oneof![12 => step_of_many().prop_map(|step| vec![step]), 1 => explored];
    let (alone, many) = (vec(alone, 1..17), vec(many, 1..17));
    prop_oneof![
        3 => alone.prop_map(|steps| steps.concat()),
        1 => many.prop_map(|steps| steps.concat()),
        2 => tangle(),
    ]
}

#[test]
fn conversations_do_what_a_naive_model_says() {
    cases::run_usually(CASES, story, run_guarded);
}

/// Plays one story; a panic of the engine becomes a report that tells the steps too.
fn run_guarded(story: &Vec<Step>, met: &mut Met) -> Verdict {
    let mut done = Vec::new();
    let verdict = cases::guarded(|| {
        let has_forks = story.iter().any(|step| matches!(step, Step::Fork(_)));
        let mut play = Play::new(met, !has_forks);
        for step in story {
            done.push(format!("{step:?}"));
            play.step(step)?;
        }
        play.plan_every_target()?;
        play.grow_old()
    });
    verdict.map_err(|report| format!("{report}\nafter\n  {}", done.join("\n  ")))
}
