//! Taking a fork back, and repeating that. Files have nothing to do with it, and neither has the session that was forked from: the new
//! session is hidden or shown again, in one transaction with the operation.

use rusqlite::{Connection, OptionalExtension};

use super::finish::mark;
use super::goal::Resolved;
use super::prepare::insert_operation;
use super::{Applied, NewRewind, Plan, RewindError, RewindRequest};
use crate::base::id::SessionId;
use crate::history::codes::CONVERSATION;
use crate::history::operation::{self, Operation, OperationKind, OperationState};
use crate::history::session_lock;
use crate::history::sessions::{Shown, set_kind};
use crate::session::fork::Made;
use crate::session::{Scope, writer};
use crate::store::{Durability, Store, StoreError};
use crate::workspace::Workspace;

/// What would become of a forked session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedFork {
    /// The session.
    pub session: SessionId,
    /// What becomes of it.
    pub fate: ForkFate,
}

/// What becomes of a forked session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForkFate {
    /// It goes, until that is redone.
    Goes,
    /// It comes back as it was.
    ComesBack,
}

/// Why a fork cannot be taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForkUse {
    /// A process has it open.
    Open,
    /// Something was said in it.
    WentOn,
    /// Another session was forked from it.
    Forked,
}

impl ForkUse {
    /// The reason in words that follow the session.
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Open => "is open",
            Self::WentOn => "has gone on since it was forked",
            Self::Forked => "has forks of its own",
        }
    }
}

/// A fork that is to be taken back or repeated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reversal {
    made: Made,
    session: SessionId,
    fate: ForkFate,
}

impl Reversal {
    /// What reversing `operation` does to a forked session; `None` if it is not about one.
    pub(super) fn of(store: &Store, operation: &Operation) -> Result<Option<Self>, RewindError> {
        let (fork, fate) = match (operation.kind, operation.reverses_seq) {
            (OperationKind::Fork, _) => (operation.seq, ForkFate::Goes),
            (OperationKind::Undo, Some(reversed)) => match operation::by_seq(store, reversed)? {
                Some(original) if original.kind == OperationKind::Fork => (reversed, ForkFate::ComesBack),
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        let found = store.db().read(|connection| {
            let Some(made) = Made::by_seq(connection, fork)? else { return Ok(None) };
            let id: Option<[u8; 16]> = connection
                .query_row("SELECT id FROM sessions WHERE seq = ?", [made.session], |row| row.get(0))
                .optional()?;
            Ok(id.map(|id| (made, SessionId::from_bytes(id))))
        })?;
        let (made, session) = found.ok_or(RewindError::Gone)?;
        Ok(Some(Self { made, session, fate }))
    }

    fn planned(self) -> PlannedFork {
        PlannedFork { session: self.session, fate: self.fate }
    }

    /// What keeps the session from going, apart from its being open.
    fn in_use(self, connection: &Connection) -> rusqlite::Result<Option<ForkUse>> {
        let Made { session, head } = self.made;
        let is_there: bool = connection.query_row(
            "SELECT head IS ?2 FROM sessions WHERE seq = ?1",
            rusqlite::params![session, head],
            |row| row.get(0),
        )?;
        let is_forked: bool = connection.query_row(
            &format!("SELECT EXISTS (SELECT 1 FROM sessions WHERE parent = ? AND kind = {CONVERSATION})"),
            [session],
            |row| row.get(0),
        )?;
        Ok(match (is_there, is_forked) {
            (_, true) => Some(ForkUse::Forked),
            (false, false) => Some(ForkUse::WentOn),
            (true, false) => None,
        })
    }

    /// Refuses to take a session away that is used.
    fn refuse_use(self, store: &Store) -> Result<(), RewindError> {
        if self.fate == ForkFate::ComesBack {
            return Ok(());
        }
        let session = self.session;
        if session_lock::is_live(store.dir(), session) {
            return Err(RewindError::ForkInUse { session, why: ForkUse::Open });
        }
        let why = store.db().read(|connection| self.in_use(connection))?;
        why.map_or(Ok(()), |why| Err(RewindError::ForkInUse { session, why }))
    }
}

impl Workspace {
    /// The plan of taking a fork back, or of repeating it.
    pub(super) fn plan_fork(&self, resolved: &Resolved, reversal: Reversal) -> Result<Plan, RewindError> {
        reversal.refuse_use(&self.store)?;
        Ok(Plan {
            what: resolved.what.clone(),
            session: resolved.session_id,
            means: None,
            paths: Vec::new(),
            kept: Vec::new(),
            uncaptured: Vec::new(),
            already: Vec::new(),
            blocked: Vec::new(),
            branch: None,
            checked_out: None,
            ledger: Vec::new(),
            gaps: Vec::new(),
            foreign: 0,
            undoes: Vec::new(),
            scope: Scope::Conversation,
            conversation: None,
            fork: Some(reversal.planned()),
            directories: Vec::new(),
            newest: 0,
        })
    }

    /// Takes a fork back, or repeats it.
    pub(super) fn apply_fork(
        &mut self,
        request: &RewindRequest,
        seen: Option<&str>,
        resolved: &Resolved,
        reversal: Reversal,
        new: &NewRewind,
    ) -> Result<Applied, RewindError> {
        let plan = self.plan_fork(resolved, reversal)?;
        if seen.is_some_and(|seen| !plan.is_as_seen(seen)) {
            return Err(RewindError::Stale { plan: Box::new(plan) });
        }
        let session = reversal.session;
        // As long as this is held nobody opens it, so that nothing is said in it meanwhile.
        let lock = session_lock::lock(self.store.dir(), session)?;
        let _lock = lock.ok_or(RewindError::ForkInUse { session, why: ForkUse::Open })?;
        let reversed = resolved.reverses.as_ref().ok_or(RewindError::Gone)?;
        let why = self.store.db().transaction(Durability::Synced, |tx| {
            let shown = match reversal.fate {
                ForkFate::Goes => Shown::No,
                ForkFate::ComesBack => Shown::Yes,
            };
            if shown == Shown::No
                && let Some(why) = reversal.in_use(tx).map_err(crate::store::db::in_transaction(tx))?
            {
                return Ok(Some(why));
            }
            set_kind(tx, reversal.made.session, shown)?;
            insert_operation(tx, resolved, new, &plan, reversed.before_seq, request.made_by)?;
            operation::finish(tx, new.operation, OperationState::Done, None)?;
            mark(tx, resolved.kind, Some(reversed.seq))?;
            Ok::<_, StoreError>(None)
        })?;
        if let Some(why) = why {
            return Err(RewindError::ForkInUse { session, why });
        }
        if reversal.fate == ForkFate::Goes {
            writer::forget_lock(self.store.dir(), session);
        }
        Ok(Applied {
            plan,
            operation: Some(new.operation),
            conversation_moved: None,
            statuses: Vec::new(),
            safety: None,
            still_open: Vec::new(),
            left_over: Vec::new(),
        })
    }
}
