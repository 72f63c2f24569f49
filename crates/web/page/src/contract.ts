// The contract with a session, as JSON: what `retake-agent` sends and takes. Types only.
// Generated from the Rust types; do not edit. To write it anew:
// RETAKE_BLESS=1 cargo test -p retake-agent --all-features --test it contract_ts

export type Action =
  | { type: "prompt", parts: Array<Part>, allow?: Allow | null, unprotected?: boolean, draft?: Array<Part> | null, mentions?: Mentions }
  | { type: "withdraw", request: string }
  | { type: "interrupt", turn?: EntryId | null }
  | { type: "answer", call: CallId, answer: PermissionAnswer }
  | { type: "apply", change: Change, head_seen?: SeenHead | null, plan_seen?: string | null, running?: WhileRunning }
  | { type: "label", prompt: EntryId, label: string | null }
  | { type: "model", model: string }
  | { type: "draft", parts: Array<Part> }
  | { type: "clear" }
  | { type: "fork", entry: EntryId }
  | { type: "summarise", extent: Extent, instructions?: string | null }
  | { type: "end_job", job: string }
  | { type: "close" };

export type Allow = "all" | "edits" | "none" | "all_else_ask" | "edits_else_ask";

export type Baseline = { files: number, bytes: number };

export type Block =
  | { type: "text", text: string }
  | { type: "reasoning", text: string, opaque: string }
  | { type: "call", id: CallId, name: string, arguments: string };

export type Branch = { then: string, now: string };

export type Bytes = string | { bytes: string };

export type CallId = string;

export type Change =
  | { paths?: Array<Bytes>, on_conflict?: OnConflict, choices?: Array<[Bytes, OnConflict]>, on_yours?: OnConflict, across_branches?: boolean } & (
    { "do": "rewind", entry: EntryId, scope: Scope, files?: Files, discard?: Discard }
  | { "do": "keep_prompt", prompt: EntryId, scope: Scope, files?: Files }
  | { "do": "checkpoint", checkpoint: string, files?: Files | null }
  | { "do": "undo", operation?: string | null }
  | { "do": "redo", operation?: string | null });

export type Changed = { added: number, modified: number, deleted: number };

export type CheckpointFacts = { checkpoint: CheckpointRef, at: Timestamp, label: string | null, note: string | null, changed: Changed, turn?: Changed | null, gaps: number };

export type CheckpointRef = string;

export type Coming = { entry?: EntryId | null, text: string, thinking: string };

export type Command = Query | Action;

export type Conflict = "changed_by_others" | "changed_later" | "changed_since" | "uncaptured_since" | "contested" | "not_captured" | "unknown_then" | "in_the_way" | "damaged" | "yours";

export type ConflictFacts = { path: Bytes, why: Conflict, text: string, choices: Array<OnConflict>, choice: OnConflict };

export type Details =
  | { report: string, rewound: boolean, checkpoint: EntryId, restore_files: boolean }
  | { lines: Array<number> }
  | { goal: string, name?: string | null };

export type DiffLine = { kind: LineKind, text: string };

export type DiffOf =
  | { "what": "change", change: Change }
  | { "what": "turn", prompt: EntryId }
  | { "what": "between", from: string | null, to: string | null };

export type Discard = "no" | "now";

export type EndReason =
  | { "why": "done" }
  | { "why": "interrupted" }
  | { "why": "failed", message: string }
  | { "why": "round_limit" };

export type Entry =
  | { id: EntryId, parent: EntryId | null, at: Timestamp } & (
    { type: "prompt", parts: Array<Part> }
  | { type: "reply", blocks: Array<Block>, model: string, usage: Usage, stop: StopReason }
  | { type: "tool_result", call: CallId, title: string, outcome: ToolOutcome, parts: Array<Part>, todos?: Array<Todo> | null, details?: Details | null }
  | { type: "note", about: Array<string>, text: string }
  | { type: "instructions", source: string, text: string }
  | { type: "summary", from: EntryId, to: EntryId, text: string, by: SummaryBy, usage: Usage }
  | { type: "cleared" }
  | { type: "approved", tool: string, prefix: string | null }
  | { type: "ended", reason: EndReason });

export type EntryId = string;

export type Event =
  | { seq: number, request?: string | null } & (
    { type: "appended", entry: Entry }
  | { type: "head_moved", operation: OperationRef | null, keep: EntryId | null, added: Array<Entry> }
  | { type: "draft_changed", parts: Array<Part> }
  | { type: "delta", turn: EntryId, entry: EntryId, text: string }
  | { type: "thinking", turn: EntryId, entry: EntryId, text: string }
  | { type: "call_began", turn: EntryId, tool: string }
  | { type: "call_started", call: CallId, title: string }
  | { type: "call_output", call: CallId, text: string }
  | { type: "permission_asked", question: Question }
  | { type: "permission_settled", call: CallId, allowed: boolean }
  | { type: "state_changed", state: State }
  | { type: "retrying", after_ms: number, attempt: number, message: string }
  | { type: "summarising", active: boolean }
  | { type: "held", count: number }
  | { type: "returned" }
  | { type: "snapshot", moment: SnapshotMoment, checkpoint: CheckpointRef | null, ms: number, error?: string | null }
  | { type: "baseline", baseline: Baseline }
  | { type: "model_changed", model: string, window: number | null }
  | { type: "jobs_changed", jobs: Array<JobFacts> }
  | { type: "turn_ended", session: SessionRef, prompt: EntryId, reason: TurnEnd, message?: string | null, text: string, usage: Usage, taken_back: boolean, operation?: OperationRef | null }
  | { type: "warning", text: string });

export type Extent = { "part": "all" } | { "part": "from", entry: EntryId } | { "part": "up_to", entry: EntryId };

export type FileDiff = { path: Bytes, added: number, removed: number, instead?: Instead | null, hunks: Array<HunkLines>, left_out: number, about?: string | null };

export type Files = "selective" | "exact";

export type GapFacts = { path: Bytes, kind: string, text: string };

export type HunkLines = { start: [number, number], lines: Array<DiffLine> };

export type Instead = "binary" | "too_large" | "directory" | "mode" | "unreadable";

export type JobFacts = { job: string, command: string, ended: string | null };

export type KeptFacts = { path: Bytes, why: string, text: string };

export type LedgerItem = { kind: string, what: string, remedy?: string | null };

export type LineKind = "same" | "added" | "removed";

export type Means = "session" | "workspace" | "operation";

export type Mentions = "leave" | "attach";

export type NotRestoredFacts = { path: Bytes, change: string, why: string, text: string };

export type OnConflict = "stop" | "keep" | "overwrite" | "merge";

export type OperationFacts = { operation: OperationRef, kind: string, what: string, at: Timestamp };

export type OperationRef = string;

export type Part =
  | { type: "text", text: string }
  | { type: "paste", text: string }
  | { type: "file", path: string, text: string }
  | { type: "image", media_type: string, data: string };

export type PermissionAnswer =
  | { type: "allow" }
  | { type: "allow_always", rule: Rule }
  | { type: "deny", why?: string | null };

export type PlannedConversation = { from: EntryId | null, to: EntryId | null, leaves: Array<PromptLine>, returns: Array<PromptLine>, left_before?: Array<PromptLine>, draft: Array<Part> | null, went_on: boolean, removed: boolean, discards: boolean, kept_for?: Array<string>, fork_at?: EntryId | null };

export type PlannedFile = { path: Bytes, action: string | null, status: string, certainty: string | null, yours: boolean, directory: boolean };

export type PromptLine = { id: EntryId, text: string };

export type Query =
  | { type: "attach", from?: number | null }
  | { type: "targets", query?: string | null }
  | { type: "plan", change: Change }
  | { type: "diff", of: DiffOf }
  | { type: "tree" }
  | { type: "operations" }
  | { type: "checkpoints" }
  | { type: "sessions" }
  | { type: "files", query: string }
  | { type: "store" }
  | { type: "context" }
  | { type: "ping" };

export type Question = { call: CallId, tool: string, title: string, detail?: string | null, diffs?: Array<FileDiff>, why: string, rule: Rule | null };

export type Reason = "running" | "interrupted" | "stale_head" | "conflicts" | "stale_plan" | "in_use" | "not_found" | "no_files" | "nothing" | "invalid" | "ended" | "failed";

export type Refusal = { reason: Reason, message: string, hint?: string | null, document?: RewindDocument | null };

export type Reply =
  | { type: "done" }
  | { type: "view", view: View }
  | { type: "said", prompt: EntryId }
  | { type: "held", count: number, request?: string | null }
  | { type: "targets", head: EntryId | null, targets: Array<Target> }
  | { type: "change", document: RewindDocument }
  | { type: "tree", head: EntryId | null, prompts: Array<TreePrompt> }
  | { type: "operations", undo: OperationFacts | null, redo: OperationFacts | null }
  | { type: "checkpoints", checkpoints: Array<CheckpointFacts> }
  | { type: "sessions", sessions: Array<SessionFacts> }
  | { type: "files", paths: Array<string> }
  | { type: "store", bytes: number, budget: number }
  | { type: "diff", files: Array<FileDiff>, plan?: RewindDocument | null }
  | { type: "forked", session: SessionRef, operation: OperationRef, draft: Array<Part>, differing: Array<Bytes> }
  | { type: "summarised", summary: Summarised | null }
  | { type: "context", body: string };

export type Request = { id: string, command: Command };

export type Response = { id: string, seq?: number | null } & ({ "ok": Reply } | { "refused": Refusal });

export type RewindDocument = { version: number, operation: OperationRef | null, applied: boolean, what: string, session: SessionRef | null, means?: Means | null, scope: Scope | null, conversation: PlannedConversation | null, conversation_moved: boolean | null, safety: CheckpointRef | null, fingerprint?: string | null, files: Array<PlannedFile>, conflicts: Array<ConflictFacts>, kept: Array<KeptFacts>, not_restored: Array<NotRestoredFacts>, already: Array<Bytes>, blocked: Array<Bytes>, branch: Branch | null, ledger: Array<LedgerItem>, undoes: Array<string>, foreign: number, still_open: Array<Bytes>, left_over: Array<Bytes>, gaps: Array<GapFacts>, gaps_total: number };

export type Rule = { tool: string, prefix: string | null };

export type RunningCall = { call: CallId, title: string, output: string };

export type Scope = "code" | "conversation" | "both";

export type SeenHead = { head: EntryId | null };

export type SessionFacts = { session: SessionRef, title: string, at: Timestamp, prompts: number, live: boolean, forked_from: SessionRef | null, draft: string | null };

export type SessionRef = string;

export type SnapshotMoment = "baseline" | "prompt" | "before" | "after" | "turn";

export type State = "idle" | "running" | "paused";

export type StopReason = "done" | "calls" | "length" | "refused" | "interrupted";

export type Summarised = { entry: EntryId, operation: OperationRef, range: [EntryId, EntryId], text: string, usage: Usage, bytes: [number, number] };

export type SummaryBy = { "why": "user" } | { "why": "compaction" } | { "why": "model", call: CallId, checkpoint: EntryId };

export type Target = { id: EntryId, number: number, at: Timestamp, text: string, files: TurnSummary, label: string | null, has_files: boolean };

export type Timestamp = number;

export type Todo = { text: string, state: TodoState };

export type TodoState = "pending" | "active" | "done";

export type ToolOutcome = "done" | "failed" | "denied" | "interrupted";

export type TreePrompt = { id: EntryId, parent: EntryId | null, at: Timestamp, text: string, number: number | null, label: string | null, files: TurnSummary | null, forks: Array<SessionRef>, end: EntryId | null };

export type TurnEnd = "done" | "interrupted" | "failed" | "round_limit";

export type TurnSummary = { added: number, modified: number, deleted: number, tools: Array<string>, ran_commands: boolean, outside: Array<LedgerItem> };

export type Usage = { input: number, output: number, cache_read: number, cache_write: number, cost?: number | null };

export type View = { seq: number, session: SessionRef, workspace: string, model: string, window: number | null, baseline: Baseline | null, entries: Array<Entry>, draft: Array<Part>, state: State, coming: Coming, calls: Array<RunningCall>, questions: Array<Question>, summarising: boolean, held: number, jobs: Array<JobFacts> };

export type WhileRunning = "refuse" | "interrupt";
