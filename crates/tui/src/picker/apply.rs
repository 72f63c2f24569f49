//! Applies a choice: the requests that the picker sends to change something, and their answers. At most one is open.

use retake_agent::contract::{
    Action, Change, ChangeGoal, Command, Extent, Reason, Refusal, Reply, State, WhileRunning,
};
use retake_agent::rewind_document::Bytes;
use retake_engine::id::EntryId;
use retake_engine::rewind::{Files, OnConflict};
use retake_engine::session::{Discard, Scope};

use super::conflicts::{Deciding, Fate};
use super::menu::{Item, Menu, RUNNING, WAITING};
use super::preview::Why;
use super::{Crossing, CrossingAnswer, PendingWork, Picker, PickerRequest, PickerStage, PickerStep, unexpected};

impl Picker {
    /// Opens the menu for the chosen row, at the first thing that can be done.
    pub(super) fn open_menu(&mut self) -> Vec<PickerStep> {
        let Some(facts) = self.facts() else { return Vec::new() };
        let is_possible = |item: &Item| match facts.offer(*item) {
            Ok(_) => true,
            // It soon can.
            Err(why) => why == WAITING,
        };
        let chosen = Item::ALL.into_iter().find(is_possible).unwrap_or(Item::Cancel);
        self.stage = PickerStage::Menu(Menu { entry: facts.row.id, chosen });
        Vec::new()
    }

    /// Does what the menu says, or says why not.
    pub(super) fn act(&mut self, entry: EntryId, item: Item) -> Vec<PickerStep> {
        let offer = self.facts().map(|facts| facts.offer(item));
        if let Some(Err(why)) = offer {
            self.notice = Some(format!("{}: {why}", item.title()));
            return Vec::new();
        }
        match item {
            Item::Both => self.rewind_files(entry, Scope::Both),
            Item::Code => self.rewind_files(entry, Scope::Code),
            Item::Conversation => self.apply(entry, Scope::Conversation, Vec::new(), CrossingAnswer::Back),
            Item::Fork => self.send(PendingWork::Fork, PickerRequest::Fork, Action::Fork { entry }),
            Item::SummariseFrom => self.summarise(Extent::From { entry }),
            Item::SummariseUpTo => self.summarise(Extent::UpTo { entry }),
            Item::Cancel => {
                self.stage = PickerStage::Browse;
                Vec::new()
            }
        }
    }

    fn summarise(&mut self, extent: Extent) -> Vec<PickerStep> {
        self.send(PendingWork::Summary, PickerRequest::Summarise, Action::Summarise { extent, instructions: None })
    }

    /// Files go back: after what has to be decided first.
    fn rewind_files(&mut self, entry: EntryId, scope: Scope) -> Vec<PickerStep> {
        let Some(plan) = self.preview.plan() else { return Vec::new() };
        if !plan.conflicts.is_empty() {
            self.stage = PickerStage::Deciding(Deciding::new(entry, scope, &plan.conflicts));
            return self.decided();
        }
        if plan.branch.is_some() {
            self.stage = PickerStage::Crossing(Crossing { entry, scope, deciding: None, answer: CrossingAnswer::Back });
            return Vec::new();
        }
        self.apply(entry, scope, Vec::new(), CrossingAnswer::Back)
    }

    /// Everything about conflicts is decided.
    pub(super) fn agree(&mut self, deciding: Deciding) -> Vec<PickerStep> {
        if let Some(why) = self.cannot_apply() {
            self.notice = Some(why.to_owned());
            return Vec::new();
        }
        let (entry, scope) = (deciding.entry, deciding.scope);
        if self.preview.plan().is_some_and(|plan| plan.branch.is_some()) {
            let answer = CrossingAnswer::Back;
            self.stage = PickerStage::Crossing(Crossing { entry, scope, deciding: Some(deciding), answer });
            return Vec::new();
        }
        self.apply(entry, scope, deciding.choices(), CrossingAnswer::Back)
    }

    /// The user goes on although another branch is checked out.
    pub(super) fn cross(&mut self, crossing: &Crossing) -> Vec<PickerStep> {
        if let Some(why) = self.cannot_apply() {
            self.notice = Some(why.to_owned());
            return Vec::new();
        }
        let choices = crossing.deciding.as_ref().map(Deciding::choices).unwrap_or_default();
        self.apply(crossing.entry, crossing.scope, choices, CrossingAnswer::GoOn)
    }

    fn cannot_apply(&self) -> Option<&'static str> {
        match (self.state(), self.preview.plan()) {
            (State::Running, _) => Some(RUNNING),
            (State::Idle | State::Paused, None) => Some(WAITING),
            (State::Idle | State::Paused, Some(_)) => None,
        }
    }

    /// Goes back.
    fn apply(
        &mut self,
        entry: EntryId,
        scope: Scope,
        choices: Vec<(Bytes, OnConflict)>,
        crossing: CrossingAnswer,
    ) -> Vec<PickerStep> {
        let goal = ChangeGoal::Rewind { entry, scope, files: Files::Selective, discard: Discard::No };
        let across_branches = crossing == CrossingAnswer::GoOn;
        let change = Change { choices, across_branches, ..Change::new(goal) };
        let seen = self.preview.seen();
        // The plan of a conversation alone is not the one that is shown.
        let plan_seen = seen.filter(|_| scope != Scope::Conversation);
        let command = Action::Apply { change, head_seen: self.head, plan_seen, running: WhileRunning::Refuse };
        self.send(PendingWork::Rewind, PickerRequest::Apply, command)
    }

    fn send(&mut self, work: PendingWork, asked: PickerRequest, command: impl Into<Command>) -> Vec<PickerStep> {
        let from = Box::new(std::mem::replace(&mut self.stage, PickerStage::Browse));
        self.stage = PickerStage::Busy { work, from };
        self.notice = None;
        vec![PickerStep::Ask(asked, Box::new(command.into()))]
    }

    /// After a decision was made: asks what would change with it.
    pub(super) fn decided(&mut self) -> Vec<PickerStep> {
        self.preview.want(self.wanted(), Why::Decided)
    }

    /// After a plan has come: conflicts may have come and gone, and a decision about one path can raise a question about another.
    pub(super) fn refresh_decisions(&mut self) -> Vec<PickerStep> {
        let Some(plan) = self.preview.plan() else { return Vec::new() };
        let PickerStage::Deciding(deciding) = &mut self.stage else { return Vec::new() };
        match deciding.refresh(&plan.conflicts) {
            Fate::Same => Vec::new(),
            Fate::Others => self.decided(),
            Fate::Settled => {
                let (entry, chosen) = (deciding.entry, item_of(deciding.scope));
                self.notice = Some("nothing needs a decision any more".to_owned());
                self.stage = PickerStage::Menu(Menu { entry, chosen });
                Vec::new()
            }
        }
    }

    /// Takes what became of what was sent.
    pub(super) fn take_outcome(&mut self, answer: Result<Reply, Refusal>) -> Vec<PickerStep> {
        let PickerStage::Busy { from, .. } = std::mem::replace(&mut self.stage, PickerStage::Browse) else {
            return Vec::new();
        };
        match answer {
            Ok(Reply::Change { document }) => vec![PickerStep::Rewound(document)],
            Ok(Reply::Forked { session, .. }) => vec![PickerStep::Forked { session }],
            Ok(Reply::Summarised { summary: Some(summary) }) => vec![PickerStep::Summarised(summary)],
            Ok(Reply::Summarised { summary: None }) => {
                self.notice = Some("there is nothing to summarise there; nothing was changed".to_owned());
                self.stage = *from;
                Vec::new()
            }
            Ok(_) => self.refused(&unexpected(), *from),
            Err(refusal) => self.refused(&refusal, *from),
        }
    }

    /// Nothing was done: says why, and shows what there is now. What was decided stays decided.
    fn refused(&mut self, refusal: &Refusal, from: PickerStage) -> Vec<PickerStep> {
        self.say(refusal);
        let entry = from.entry();
        let conflicts = refusal.document.as_deref().map(|document| document.conflicts.as_slice()).unwrap_or_default();
        self.stage = match (refusal.reason, from) {
            // What was chosen may not be what it was.
            (Reason::StaleHead | Reason::NotFound, _) => PickerStage::Browse,
            (Reason::Conflicts | Reason::StalePlan, PickerStage::Menu(Menu { entry, chosen }))
                if !conflicts.is_empty() =>
            {
                PickerStage::Deciding(Deciding::new(entry, scope_of(chosen), conflicts))
            }
            (_, PickerStage::Crossing(Crossing { deciding: Some(deciding), .. })) => PickerStage::Deciding(deciding),
            (_, PickerStage::Crossing(Crossing { scope, .. })) => match entry {
                Some(entry) => PickerStage::Menu(Menu { entry, chosen: item_of(scope) }),
                None => PickerStage::Browse,
            },
            (_, from) => from,
        };
        self.refresh()
    }
}

fn scope_of(item: Item) -> Scope {
    match item {
        Item::Code => Scope::Code,
        _ => Scope::Both,
    }
}

pub(super) fn item_of(scope: Scope) -> Item {
    match scope {
        Scope::Both => Item::Both,
        Scope::Conversation => Item::Conversation,
        Scope::Code => Item::Code,
    }
}
