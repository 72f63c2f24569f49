//! Stories: what two sessions and the world outside do to a directory, and how it is taken back.
//!
//! Plain data like everything here. Checkpoints, windows and operations are named by number, because which ones there are is known only
//! when the story is played.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::editor_save::{Save, Spot};
use super::pools::{EVERYTHING, FILE_MODES};
use super::step::{Pick, RuleChange, RuleName, Step, change, content, create, pick, place, rules};

/// One of the two sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// The first.
    A,
    /// The second.
    B,
}

/// One thing done to the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    /// Anything.
    Step(Step),
    /// What an editor does.
    Save(Spot, Save),
}

/// What a session runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tool {
    /// May change anything.
    Shell,
    /// Declares these paths, and writes them once it has begun.
    Editor(Vec<(Spot, Save)>),
}

/// Where a rewind goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aim {
    /// To a checkpoint, counted from the newest, with everything.
    Exact(Pick),
    /// To a checkpoint, with what one session did.
    Selective(Who, Pick),
    /// Before an operation.
    Undo {
        /// Which, counted from the newest; the newest that is not undone for `None`.
        which: Option<Pick>,
        /// Of this session only.
        who: Option<Who>,
    },
    /// To what was undone.
    Redo(Option<Who>),
}

/// What becomes of conflicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "as the rewind calls them")]
pub enum Choice {
    Stop,
    Keep,
    Overwrite,
    Merge,
}

/// A round of a story.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Round {
    /// Somebody changes files: whoever has a window open, or nobody.
    Edit(Vec<Deed>),
    /// A checkpoint is taken.
    Checkpoint,
    /// A tool begins; `operation`, so that it can be undone.
    Begin {
        /// Whose.
        who: Who,
        /// What it may change.
        tool: Tool,
        /// Can it be undone?
        operation: bool,
    },
    /// One of the tools that have begun ends.
    End(Pick),
    /// The process of one of the tools that have begun dies.
    Lose(Pick),
    /// Files go back.
    Rewind {
        /// Where to.
        aim: Aim,
        /// What becomes of conflicts.
        choice: Choice,
        /// One path whose conflict is decided by itself.
        but: Option<(Spot, Choice)>,
        /// Only these, if there are any.
        only: Vec<Spot>,
        /// Is the plan made beforehand, and held to?
        shown: bool,
    },
    /// An undo and at once a redo, which together do nothing.
    BackAndForth(Choice),
    /// The workspace is opened anew, as by another process.
    Reopen,
}

/// A directory to start with and what happens to it.
#[derive(Debug, Clone)]
pub struct Story {
    /// Makes the tree of the first checkpoint.
    pub start: Vec<Deed>,
    /// What happens then, in groups that belong together.
    pub rounds: Vec<Vec<Round>>,
    /// How many threads the scanner may use.
    pub threads: usize,
}

/// Any story.
pub fn story() -> impl Strategy<Value = Story> {
    let create = prop_oneof![5 => create().prop_map(Deed::Step), 3 => save(), 2 => rules().prop_map(Deed::Step)];
    let groups = prop_oneof![
        6 => deeds(1..=3).prop_map(|deeds| vec![Round::Edit(deeds)]),
        1 => Just(vec![Round::Checkpoint]),
        8 => tool_call(),
        3 => overlap(),
        2 => two_hands(),
        1 => in_its_place(),
        2 => hiding(),
        1 => begin().prop_map(|begin| vec![begin]),
        1 => pick().prop_map(|which| vec![Round::End(which)]),
        1 => lost(),
        10 => rewind().prop_map(|rewind| vec![rewind]),
        2 => choice().prop_map(|choice| vec![Round::BackAndForth(choice)]),
        1 => choice().prop_map(undo_twice),
        1 => Just(vec![Round::Reopen]),
    ];
    let tail = rewind().prop_map(|rewind| vec![rewind]);
    (vec(create, 1..=7), vec(groups, 4..=10), tail, 1..=2_usize).prop_map(|(start, mut rounds, tail, threads)| {
        rounds.push(tail);
        Story { start, rounds, threads }
    })
}

fn deeds(count: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Vec<Deed>> {
    vec(
        prop_oneof![
            5 => change().prop_map(Deed::Step),
            2 => create().prop_map(Deed::Step),
            2 => rules().prop_map(Deed::Step),
            6 => save(),
        ],
        count,
    )
}

fn save() -> BoxedStrategy<Deed> {
    spot_and_save().prop_map(|(spot, save)| Deed::Save(spot, save)).boxed()
}

fn spot() -> BoxedStrategy<Spot> {
    prop_oneof![
        // A few paths that everybody meets at.
        5 => (0..3_u16).prop_map(|number| Spot::There(Pick(number))),
        4 => pick().prop_map(Spot::There),
        1 => pick().prop_map(Spot::Any),
        2 => place().prop_map(Spot::At),
    ]
    .boxed()
}

fn spot_and_save() -> BoxedStrategy<(Spot, Save)> {
    let save = prop_oneof![
        3 => content().prop_map(Save::Write),
        6 => (any::<u8>(), 0..4_u8).prop_map(|(line, value)| Save::Line(line, value)),
        2 => select(FILE_MODES).prop_map(Save::Mode),
        1 => Just(Save::Link),
        1 => Just(Save::Directory),
        1 => Just(Save::Holding),
        1 => Just(Save::Fifo),
        2 => Just(Save::Remove),
    ];
    (spot(), save).boxed()
}

fn who() -> impl Strategy<Value = Who> {
    select(&[Who::A, Who::A, Who::B][..])
}

fn choice() -> impl Strategy<Value = Choice> {
    select(&[Choice::Stop, Choice::Keep, Choice::Overwrite, Choice::Merge][..])
}

fn begin() -> BoxedStrategy<Round> {
    let tool = prop_oneof![1 => Just(Tool::Shell), 1 => vec(spot_and_save(), 1..=3).prop_map(Tool::Editor)];
    (who(), tool, proptest::bool::weighted(0.3))
        .prop_map(|(who, tool, operation)| Round::Begin { who, tool, operation })
        .boxed()
}

/// A tool call from its beginning to its end.
fn tool_call() -> impl Strategy<Value = Vec<Round>> {
    (begin(), deeds(0..=3)).prop_map(|(begin, deeds)| vec![begin, Round::Edit(deeds), Round::End(Pick(u16::MAX))])
}

/// A tool call whose process dies.
fn lost() -> impl Strategy<Value = Vec<Round>> {
    (begin(), deeds(0..=2), deeds(0..=2)).prop_map(|(begin, before, after)| {
        vec![begin, Round::Edit(before), Round::Lose(Pick(u16::MAX)), Round::Edit(after)]
    })
}

/// Two tool calls, one of which begins before the other one has ended.
fn overlap() -> impl Strategy<Value = Vec<Round>> {
    (begin(), begin(), vec(deeds(0..=2), 3), pick()).prop_map(|(first, second, deeds, end)| {
        let mut deeds = deeds.into_iter().map(Round::Edit);
        let mut next = || deeds.next().unwrap_or(Round::Checkpoint);
        vec![first, next(), second, next(), Round::End(end), next(), Round::End(Pick(0))]
    })
}

/// An undo, and the same operation once more.
fn undo_twice(choice: Choice) -> Vec<Round> {
    let undo = |which| Aim::Undo { which, who: None };
    let rewind = |aim| Round::Rewind { aim, choice, but: None, only: Vec::new(), shown: false };
    vec![rewind(undo(None)), rewind(undo(Some(Pick(1))))]
}

/// A session and somebody else change different lines of one file, and the session's go back.
fn two_hands() -> impl Strategy<Value = Vec<Round>> {
    let line = || (any::<u8>(), 0..9_u8).prop_map(|(line, value)| Save::Line(line, value));
    (0..3_u16, line(), line(), line(), begin(), choice()).prop_map(|(number, first, ours, theirs, begin, choice)| {
        let edit = |save| Round::Edit(vec![Deed::Save(Spot::There(Pick(number)), save)]);
        let who = if let Round::Begin { who, .. } = begin { who } else { Who::A };
        let rewind =
            Round::Rewind { aim: Aim::Selective(who, Pick(1)), choice, but: None, only: Vec::new(), shown: true };
        vec![edit(first), begin, edit(ours), Round::End(Pick(u16::MAX)), edit(theirs), rewind]
    })
}

/// Something takes another thing's place, and has to give way again.
fn in_its_place() -> impl Strategy<Value = Vec<Round>> {
    let other =
        select(&[Save::Holding, Save::Fifo, Save::Directory, Save::Link, Save::Write(super::Content::Empty)][..]);
    (begin(), 0..3_u16, other, any::<bool>(), choice()).prop_map(|(begin, number, other, exact, choice)| {
        let edit = Round::Edit(vec![Deed::Save(Spot::There(Pick(number)), other)]);
        let who = if let Round::Begin { who, .. } = begin { who } else { Who::A };
        let aim = if exact { Aim::Exact(Pick(1)) } else { Aim::Selective(who, Pick(1)) };
        let rewind = Round::Rewind { aim, choice, but: None, only: Vec::new(), shown: false };
        vec![begin, edit, Round::End(Pick(u16::MAX)), rewind]
    })
}

/// A command hides files by an ignore rule of its own and makes new ones, somebody else may do so too, and all goes back, twice.
fn hiding() -> impl Strategy<Value = Vec<Round>> {
    let rule = (select(&[RuleName::Git, RuleName::Ours][..]), select(&[EVERYTHING, 0, 23][..]))
        .prop_map(|(name, line)| Step::Rules { dir: Pick(0), name, change: RuleChange::Lines(vec![line]) });
    let made = || vec(create().prop_map(Deed::Step), 1..=2);
    (who(), any::<bool>(), rule, made(), option::weighted(0.3, made()), 0..3_u8, choice()).prop_map(
        |(who, operation, rule, made, others, aim, choice)| {
            let aim = match aim {
                0 => Aim::Exact(Pick(1)),
                1 => Aim::Selective(who, Pick(1)),
                _ => Aim::Undo { which: None, who: Some(who) },
            };
            let back = |aim| Round::Rewind { aim, choice, but: None, only: Vec::new(), shown: true };
            let begin = Round::Begin { who, tool: Tool::Shell, operation };
            let work = std::iter::once(Deed::Step(rule)).chain(made).collect();
            let others = others.map(|deeds| vec![Round::Edit(deeds)]).unwrap_or_default();
            let tail = [back(aim), back(Aim::Exact(Pick(3)))];
            [vec![begin, Round::Edit(work), Round::End(Pick(u16::MAX))], others, tail.to_vec()].concat()
        },
    )
}

fn rewind() -> BoxedStrategy<Round> {
    let aim = prop_oneof![
        4 => pick().prop_map(Aim::Exact),
        8 => (who(), pick()).prop_map(|(who, to)| Aim::Selective(who, to)),
        4 => (option::weighted(0.4, pick()), option::weighted(0.2, who()))
            .prop_map(|(which, who)| Aim::Undo { which, who }),
        2 => option::weighted(0.2, who()).prop_map(Aim::Redo),
    ];
    let only = prop_oneof![3 => Just(Vec::new()), 1 => vec(spot(), 1..=2)];
    (aim, choice(), option::weighted(0.2, (spot(), choice())), only, any::<bool>())
        .prop_map(|(aim, choice, but, only, shown)| Round::Rewind { aim, choice, but, only, shown })
        .boxed()
}
