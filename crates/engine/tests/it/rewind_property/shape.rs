//! The shape of a plan: directories that must come before what is in them, and directories that cannot go.

use retake_engine::rewind::{Conflict, KeptBecause};
use retake_testkit::naive::{Known, NaiveKind, NaiveNode};

use super::expect::{Expected, Goal, Planned, Planner, is_directory, is_overwritable, name, parent};
use super::model::Path;

impl Planner<'_> {
    /// Directories that cannot go, and directories that must come first.
    pub(super) fn settle(&self, expected: &mut Expected) {
        self.refuse_the_impossible(expected);
        let going = expected.paths.iter().filter(|(_, p)| is_directory(p.now.as_ref()) && !is_directory(p.result()));
        let going: Vec<Path> = going.map(|(path, _)| path.clone()).collect();
        for path in going.into_iter().rev() {
            let children = self.disk.keys().filter(|child| parent(child) == Some(&path));
            // What cannot be captured is not deleted, whatever is chosen.
            let goes = |planned: &Planned| planned.aim().is_none() && planned.conflict != Some(Conflict::NotCaptured);
            let stays = |child: &Path| !expected.paths.get(child).is_some_and(goes);
            if !children.into_iter().any(stays) {
                continue;
            }
            let Some(planned) = expected.paths.get_mut(&path) else { continue };
            if planned.result().is_none() {
                expected.paths.remove(&path);
                expected.kept.insert((path, name(KeptBecause::HoldsOthers)));
            } else if matches!(self.wanted.goal, Goal::Exact(_)) {
                expected.blocked.insert(path);
            } else {
                self.stand_back(&path, planned);
            }
        }
        let coming = expected.paths.iter().filter(|(_, planned)| planned.is_touched() && planned.result().is_some());
        for path in coming.map(|(path, _)| path.clone()).collect::<Vec<_>>() {
            if !self.make_parents(&path, expected)
                && let Some(planned) = expected.paths.get_mut(&path)
            {
                self.stand_back(&path, planned);
            }
        }
    }

    fn stand_back(&self, path: &[u8], planned: &mut Planned) {
        planned.conflict = Some(Conflict::InTheWay);
        planned.choice = self.choice(path);
        planned.merged = None;
    }

    /// A conflict that could never be decided otherwise than by keeping, whatever becomes of other paths, is something in the way.
    fn refuse_the_impossible(&self, expected: &mut Expected) {
        let is_selective = !matches!(self.wanted.goal, Goal::Exact(_));
        let undecided = expected.paths.iter().filter(|(_, planned)| planned.conflict.is_some_and(is_overwritable));
        let is_impossible = |path: &Path, planned: &Planned| {
            let comes = planned.target.is_some() || planned.merged.is_some();
            let gives_way = is_directory(planned.now.as_ref()) && comes && !is_directory(planned.target.as_ref());
            let above = std::iter::successors(parent(path), |path| parent(path));
            let has_place = || above.into_iter().all(|above| self.may_be_directory(above, expected));
            comes && !has_place() || is_selective && gives_way && !self.may_be_emptied(path, expected)
        };
        let impossible: Vec<Path> =
            undecided.filter(|(path, planned)| is_impossible(path, planned)).map(|(path, _)| path.clone()).collect();
        for path in impossible {
            if let Some(planned) = expected.paths.get_mut(&path) {
                self.stand_back(&path, planned);
            }
        }
    }

    /// What may become of a path of the plan, depending on what is chosen for it.
    fn outcomes(planned: &Planned) -> Vec<Option<&NaiveNode>> {
        match planned.conflict {
            None => vec![planned.target.as_ref()],
            Some(conflict) if is_overwritable(conflict) => vec![planned.now.as_ref(), planned.target.as_ref()],
            Some(_) => vec![planned.now.as_ref()],
        }
    }

    fn may_be_directory(&self, path: &[u8], expected: &Expected) -> bool {
        match expected.paths.get(path) {
            Some(planned) => Self::outcomes(planned).into_iter().any(is_directory),
            // One that is not there can be made.
            None => self.now.known(path).state().is_some_and(|state| state.is_none() || is_directory(state)),
        }
    }

    fn may_be_emptied(&self, path: &[u8], expected: &Expected) -> bool {
        self.disk.keys().filter(|child| parent(child) == Some(path)).all(|child| {
            expected.paths.get(child).is_some_and(|planned| {
                let is_known = planned.conflict != Some(Conflict::NotCaptured) && planned.target.is_none();
                let goes = is_known && planned.conflict.is_none_or(is_overwritable);
                goes && (!is_directory(planned.now.as_ref()) || self.may_be_emptied(child, expected))
            })
        })
    }

    /// Plans missing directories above `path`; tells whether all of them can be directories.
    fn make_parents(&self, path: &[u8], expected: &mut Expected) -> bool {
        let mut parents: Vec<&[u8]> = std::iter::successors(parent(path), |path| parent(path)).collect();
        parents.reverse();
        for above in parents {
            let outcome = match expected.paths.get(above) {
                Some(planned) => Some(planned.aim()),
                None => self.now.known(above).state(),
            };
            match outcome {
                Some(Some(node)) if node.kind == NaiveKind::Directory => {}
                Some(None) if !expected.paths.contains_key(above) => {
                    let plain = NaiveNode { kind: NaiveKind::Directory, mode: 0o755, content: Vec::new() };
                    let node = match self.then().known(above) {
                        Known::There(node) if is_directory(Some(node)) => node.clone(),
                        _ => plain,
                    };
                    expected.paths.insert(above.to_vec(), self.planned(above, None, None, Some(&node)));
                }
                _ => return false,
            }
        }
        true
    }
}
