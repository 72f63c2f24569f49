//! Going back: asking the engine for a rewind, an undo or a redo, and comparing all that comes of it.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;

use retake_engine::Timestamp;
use retake_engine::id::{CheckpointId, OperationId};
use retake_engine::operation::OperationError;
use retake_engine::progress::NoProgress;
use retake_engine::rewind::{Applied, NewRewind, OnConflict, RewindError, RewindRequest};
use retake_engine::view::Side;
use retake_testkit::naive::{Everything, Known, NaiveTree};
use retake_testkit::tree::{Aim, Choice, Pick, Spot, Who};

use super::check;
use super::expect::{Expected, Goal, Planned, Wanted, expect};
use super::model::{Operation, OperationIs, Path};
use super::world::{World, parse, pick, random};
use crate::compare::{self, MISMATCH, Verdict, no_error};

/// What came of asking for a rewind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Applied,
    /// The files were there already.
    Nothing,
    /// Everything that would have to change was left as it is.
    LeftAlone,
    Refused,
}

/// Where the model says a rewind goes, and what it is then called; or why there is nothing to go to.
type Resolved = Result<(Goal, OperationIs), &'static str>;

impl World<'_, '_> {
    /// Where `aim` goes, for the engine and for the model; `None` if it names nothing.
    fn aim(&mut self, aim: Aim) -> Option<(retake_engine::rewind::Goal, Resolved)> {
        let session = |who: Option<Who>| who.map(|who| self.sessions[who as usize]);
        let points = &self.model.points;
        let point = |to: Pick| {
            let at = pick_from_newest(to, points.len())?;
            Some((at, points[at].id))
        };
        Some(match aim {
            Aim::Exact(to) => {
                self.met.add("goal: exact");
                let (at, checkpoint) = point(to)?;
                (
                    retake_engine::rewind::Goal::Exact { checkpoint, session: None },
                    Ok((Goal::Exact(at), OperationIs::Rewind)),
                )
            }
            Aim::Selective(who, to) => {
                self.met.add("goal: selective");
                let (at, checkpoint) = point(to)?;
                let session = self.sessions[who as usize];
                let goal = retake_engine::rewind::Goal::Selective { session, checkpoint };
                (goal, Ok((Goal::Selective(who, at), OperationIs::Rewind)))
            }
            Aim::Undo { which: Some(which), .. } => {
                let at = pick_from_newest(which, self.model.operations.len())?;
                self.met.add("goal: undo of an operation");
                let operation = &self.model.operations[at];
                let goal = retake_engine::rewind::Goal::Undo { operation: Some(operation.id), session: None };
                let expected = match operation.is {
                    OperationIs::Undo | OperationIs::Redo => Err("none: not reversible"),
                    _ if operation.is_undone => Err("none: already undone"),
                    _ if !operation.is_done => Err("none: not finished"),
                    _ => Ok((Goal::Reverse(at), OperationIs::Undo)),
                };
                (goal, expected)
            }
            Aim::Undo { which: None, who } => {
                self.met.add("goal: undo");
                let goal = retake_engine::rewind::Goal::Undo { operation: None, session: session(who) };
                let at = self.model.next_to_undo(who);
                (goal, at.map(|at| (Goal::Reverse(at), OperationIs::Undo)))
            }
            Aim::Redo(who) => {
                self.met.add("goal: redo");
                let at = self.model.next_to_redo(who).ok_or("none: nothing to redo");
                let goal = retake_engine::rewind::Goal::Redo { session: session(who) };
                (goal, at.map(|at| (Goal::Reverse(at), OperationIs::Redo)))
            }
        })
    }

    /// Asks for a rewind and compares all that comes of it; `None` if there was nothing to ask for.
    pub(super) fn rewind(
        &mut self,
        aim: Aim,
        choice: Choice,
        but: Option<(Spot, Choice)>,
        only: &[Spot],
        shown: bool,
    ) -> Result<Option<Outcome>, String> {
        let mut path_of = |spot: &Spot| Some(self.sandbox.spot(*spot)?.as_os_str().as_bytes().to_vec());
        let only: Vec<Path> = only.iter().filter_map(&mut path_of).collect();
        let but = but.and_then(|(spot, choice)| Some((path_of(&spot)?, on_conflict(choice))));
        let choices: BTreeMap<Path, OnConflict> = but.into_iter().collect();
        let Some((goal, resolved)) = self.aim(aim) else { return Ok(None) };
        let choice = on_conflict(choice);
        let mut request = RewindRequest::new(goal);
        request.on_conflict = choice;
        request.on_yours =
            if self.model.points.len().is_multiple_of(2) { OnConflict::Overwrite } else { OnConflict::Stop };
        request.choices = choices.iter().map(|(path, choice)| (parse(path), *choice)).collect();
        request.paths = only.iter().map(|path| parse(path)).collect();
        let paths: Vec<_> = only.iter().map(|path| path.escape_ascii().to_string()).collect();
        self.sandbox.note(format!("rewind {resolved:?}, {choice:?} but {choices:?}, {paths:?}"));
        let before = self.everything()?;
        let at = Timestamp(self.tick());
        let new = NewRewind {
            note: retake_engine::id::EntryId::new([0; 10]),
            operation: OperationId::new(at, random(at.0, 2)),
            safety: CheckpointId::new(at, random(at.0, 3)),
            after: CheckpointId::new(at, random(at.0, 4)),
            at,
        };
        let (goal, is) = match resolved {
            Ok(found) => found,
            Err(reason) => {
                self.met.add(reason);
                let outcome = self.workspace.rewinds_mut().apply(&request, None, &new, &NoProgress);
                self.sandbox.note("none");
                check_none(&outcome, reason)?;
                return self.unchanged(&before).map(|()| None);
            }
        };
        let wanted = Wanted { goal, choice, choices, on_yours: request.on_yours, only };
        let mut expected =
            expect(&self.model, &wanted, &before, &self.root, &|declared, saved| self.naive(declared, saved))?;
        if !expected.is_refused() && !expected.touched().is_empty() && !self.is_in_use(goal) {
            let held = self.model.to_hold(&expected.now, None, &before);
            if !held.is_empty() {
                self.met.add("change: held by a safety checkpoint");
                self.model.held.extend(held);
                expected =
                    expect(&self.model, &wanted, &before, &self.root, &|declared, saved| self.naive(declared, saved))?;
            }
        }
        self.count(&wanted, &expected, shown);
        let plan = match shown {
            true => Some(no_error("plan", self.workspace.rewinds().plan(&request, &NoProgress))?),
            false => None,
        };
        if let Some(plan) = &plan {
            check::plan(plan, &expected)?;
            self.unchanged(&before)?;
        }
        let seen = plan.as_ref().map(|plan| plan.fingerprint());
        let outcome = self.workspace.rewinds_mut().apply(&request, seen.as_deref(), &new, &NoProgress);
        if self.is_in_use(goal) {
            self.met.add("outcome: in use");
            self.sandbox.note("in use");
            if !matches!(outcome, Err(RewindError::InUse { .. })) {
                return Err(format!("{MISMATCH}: in use, and {outcome:?}"));
            }
            return self.unchanged(&before).map(|()| None);
        }
        match outcome {
            Err(RewindError::Refused { plan }) => {
                self.met.add("outcome: refused");
                self.sandbox.note("refused");
                check::plan(&plan, &expected)?;
                self.unchanged(&before)?;
                Ok(Some(Outcome::Refused))
            }
            Err(error) => Err(format!("ERROR: apply: {error}: {error:?}")),
            Ok(applied) => self.applied(&applied, &expected, &before, goal, is, &new).map(Some),
        }
    }

    fn count(&mut self, wanted: &Wanted, expected: &Expected, shown: bool) {
        self.met.add(match wanted.choice {
            OnConflict::Stop => "choice: stop",
            OnConflict::Keep => "choice: keep",
            OnConflict::Overwrite => "choice: overwrite",
            OnConflict::Merge => "choice: merge",
        });
        check::count(expected, self.met);
        if shown {
            self.met.add("rewind: plan shown first");
        }
        if expected.paths.iter().any(|(path, p)| p.conflict.is_some() && wanted.choices.contains_key(path)) {
            self.met.add("rewind: a conflict decided by itself");
        }
        if !wanted.only.is_empty() {
            self.met.add("rewind: only some paths");
        }
        if !self.windows.is_empty() {
            self.met.add("rewind: while a window is open");
        }
        if let Goal::Reverse(operation) = wanted.goal
            && self.model.operations[operation].is == OperationIs::Exec
        {
            self.met.add("undone: exec");
        }
    }

    /// Compares what is there after an operation, and takes it into the model.
    fn applied(
        &mut self,
        applied: &Applied,
        expected: &Expected,
        before: &Everything,
        goal: Goal,
        is: OperationIs,
        new: &NewRewind,
    ) -> Result<Outcome, String> {
        check::plan(&applied.plan, expected)?;
        check::statuses(applied, expected)?;
        if expected.is_refused() {
            return Err(format!("{MISMATCH}: applied what had to be refused: {expected:?}"));
        }
        if is == OperationIs::Undo {
            let already: BTreeSet<Path> = applied.plan.already.iter().map(|path| path.as_bytes().to_vec()).collect();
            if already != expected.already {
                return Err(format!("{MISMATCH}: {already:?} as before already, not {:?}", expected.already));
            }
        }
        let session = self.session(goal);
        let (reverses, target) = match goal {
            Goal::Exact(target) | Goal::Selective(_, target) => (None, target),
            Goal::Reverse(operation) => (Some(operation), self.model.operations[operation].before),
        };
        let operation = |before, after| Operation {
            id: new.operation,
            session,
            is,
            before,
            after,
            reverses,
            is_done: true,
            is_undone: false,
        };
        let after = self.everything()?;
        check::disk(before, &after, expected)?;
        let touched = expected.touched();
        if touched.is_empty() {
            self.met.add("outcome: nothing to do");
            self.sandbox.note("nothing to do");
            let left_alone = |path: &Planned| path.conflict.is_some() && path.choice == OnConflict::Keep;
            let left_alone = expected.paths.values().any(left_alone);
            // An undo without effect is none, and can still be made.
            let without_effect = is == OperationIs::Undo && !expected.already.is_empty();
            let reverses = reverses.filter(|_| !without_effect && !left_alone);
            if applied.operation.is_some() != reverses.is_some() {
                return Err(format!("{MISMATCH}: nothing to do, and operation {:?}", applied.operation));
            }
            if reverses.is_some() {
                self.model.operations.push(operation(target, None));
                self.model.mark(is, reverses);
            }
            return Ok(if left_alone { Outcome::LeftAlone } else { Outcome::Nothing });
        }
        self.met.add("outcome: applied");
        self.sandbox.note(format!("applied, points {} and {}", self.model.points.len(), self.model.points.len() + 1));
        let checkpoints = no_error("checkpoints", self.workspace.checkpoints().all())?;
        let point = |id| checkpoints.iter().find(|point| point.id == id).ok_or(format!("{MISMATCH}: no point {id}"));
        let (safety, afterwards) = (point(new.safety)?, point(new.after)?);
        let saved = compare::read_back(&self.workspace, &Side::Stored(safety.snapshot))?;
        check::safety(before, &after, &saved)?;
        let wanted = self.declare_gaps(&expected.now, &expected.captured);
        let at = self.record(safety, session, expected.now.clone(), None, &expected.saved, wanted)?;
        self.model.operations.push(operation(at, Some(at + 1)));
        let number = self.model.operations.len() - 1;
        let tree = self.naive(&self.model.declared, &BTreeSet::new())?;
        // What an operation wrote is known afterwards whatever the rules say by then, or it could not be undone.
        let unknown = touched.iter().filter(|path| tree.known(path) == Known::Unknown).cloned().collect();
        let tree = self.look(Some(target), &unknown)?;
        let wanted = self.declare_gaps(&tree, &unknown);
        self.record(afterwards, session, tree, Some((&touched, number)), &BTreeMap::new(), wanted)?;
        self.model.mark(is, reverses);
        Ok(Outcome::Applied)
    }

    /// Has those of `captured` that no rule leaves out captured from now on; returns the others.
    fn declare_gaps(&mut self, tree: &NaiveTree, captured: &BTreeSet<Path>) -> BTreeSet<Path> {
        let is_there = |path: &Path| tree.nodes.contains_key(path) || tree.gaps.iter().any(|(gap, _)| gap == path);
        let is_plain = |path: &Path| is_there(path) && !tree.helped.contains(path);
        let (gaps, left_out): (BTreeSet<Path>, BTreeSet<Path>) = captured.iter().cloned().partition(is_plain);
        self.model.declared.extend(gaps);
        left_out
    }

    fn is_in_use(&self, goal: Goal) -> bool {
        self.model.is_in_use(self.session(goal), goal.target(&self.model))
    }

    /// The session that going to `goal` is an operation of.
    fn session(&self, goal: Goal) -> Option<Who> {
        match goal {
            Goal::Exact(target) => self.model.points[target].session,
            Goal::Selective(who, _) => Some(who),
            Goal::Reverse(operation) => self.model.operations[operation].session,
        }
    }

    /// Nothing at all may have changed.
    fn unchanged(&self, before: &Everything) -> Verdict {
        check::disk(before, &self.everything()?, &Expected::default())
    }

    pub(super) fn back_and_forth(&mut self, choice: Choice) -> Verdict {
        self.met.add("round: back and forth");
        let before = self.everything()?;
        let undo = self.rewind(Aim::Undo { which: None, who: None }, choice, None, &[], false)?;
        let is_made = self.model.operations.last().is_some_and(|operation| operation.is == OperationIs::Undo);
        if !is_made || !matches!(undo, Some(Outcome::Applied | Outcome::Nothing)) {
            return Ok(());
        }
        let redo = self.rewind(Aim::Redo(None), Choice::Stop, None, &[], true)?;
        if !matches!(redo, Some(Outcome::Applied | Outcome::Nothing)) {
            return Err(format!("{MISMATCH}: the redo of an undo just made: {redo:?}"));
        }
        let after = self.everything()?;
        let content = |all: &Everything| -> Vec<_> {
            all.iter().map(|(path, thing)| (path.clone(), thing.shape, thing.mode, thing.content.clone())).collect()
        };
        if content(&before) != content(&after) {
            return Err(format!("{MISMATCH}: undo and redo change something: {before:?} {after:?}"));
        }
        Ok(())
    }
}

fn pick_from_newest(which: Pick, of: usize) -> Option<usize> {
    pick(which, of).map(|at| of - 1 - at)
}

fn on_conflict(choice: Choice) -> OnConflict {
    match choice {
        Choice::Stop => OnConflict::Stop,
        Choice::Keep => OnConflict::Keep,
        Choice::Overwrite => OnConflict::Overwrite,
        Choice::Merge => OnConflict::Merge,
    }
}

fn check_none(outcome: &Result<Applied, RewindError>, reason: &str) -> Verdict {
    let is_right = match outcome {
        Err(RewindError::Operation(error)) => match error {
            OperationError::NothingToUndo => reason == "none: nothing to undo",
            OperationError::NothingToRedo => reason == "none: nothing to redo",
            OperationError::AlreadyUndone { .. } => reason == "none: already undone",
            OperationError::NotReversible { .. } => reason == "none: not reversible",
            OperationError::NotFinished { .. } => reason == "none: not finished",
            OperationError::Running { .. } => reason == "none: running",
            _ => false,
        },
        _ => false,
    };
    if is_right { Ok(()) } else { Err(format!("{MISMATCH}: expected {reason}, not {outcome:?}")) }
}
