// The contract with a session, as JSON: what `retake-agent` sends and takes. Types only; nothing is worked out here.

export type EntryId = string;
export type CallId = string;
/** Milliseconds since 1970. */
export type Timestamp = number;

/** Text if it is UTF-8, else base64. */
export type Bytes = string | { bytes: string };

export type Part =
  | { type: 'text'; text: string }
  | { type: 'paste'; text: string }
  | { type: 'file'; path: string; text: string }
  | { type: 'image'; media_type: string; data: string };

export type Block =
  | { type: 'text'; text: string }
  | { type: 'reasoning'; text: string; opaque: string }
  | { type: 'call'; id: CallId; name: string; arguments: string };

export interface Usage {
  input: number;
  output: number;
  cache_read?: number;
  cache_write?: number;
  cost?: number;
}

export interface Todo {
  text: string;
  state: 'pending' | 'active' | 'done';
}

export type Details =
  | { report: string; rewound: true; checkpoint: EntryId; restore_files: boolean }
  | { lines: number[] }
  | { goal: string; name?: string };

export type ToolOutcome = 'done' | 'failed' | 'denied' | 'interrupted';

export type EndReason =
  | { why: 'done' }
  | { why: 'interrupted' }
  | { why: 'failed'; message: string }
  | { why: 'round_limit' };

export type SummaryBy =
  | { why: 'user' }
  | { why: 'compaction' }
  | { why: 'model'; call: CallId; checkpoint: EntryId };

export type Body =
  | { type: 'prompt'; parts: Part[] }
  | {
      type: 'reply';
      blocks: Block[];
      model: string;
      usage: Usage;
      stop: 'done' | 'calls' | 'length' | 'refused' | 'interrupted';
    }
  | {
      type: 'tool_result';
      call: CallId;
      title: string;
      outcome: ToolOutcome;
      parts: Part[];
      todos?: Todo[];
      details?: Details;
    }
  | { type: 'note'; about: string[]; text: string }
  | { type: 'instructions'; source: string; text: string }
  | { type: 'summary'; from: EntryId; to: EntryId; text: string; by?: SummaryBy; usage?: Usage }
  | { type: 'cleared' }
  | { type: 'approved'; tool: string; prefix: string | null }
  | { type: 'ended'; reason: EndReason };

export type Entry = { id: EntryId; parent: EntryId | null; at: Timestamp } & Body;
export type EntryOf<T extends Body['type']> = Extract<Entry, { type: T }>;

export type LineKind = 'same' | 'added' | 'removed';
export interface DiffLine {
  kind: LineKind;
  text: string;
}
export interface HunkLines {
  start: [number, number];
  lines: DiffLine[];
}
export interface FileDiff {
  path: Bytes;
  added: number;
  removed: number;
  instead?: string;
  hunks: HunkLines[];
  left_out?: number;
  about?: string;
}

export interface Rule {
  tool: string;
  prefix?: string | null;
}
export interface Question {
  call: CallId;
  tool: string;
  title: string;
  detail?: string;
  diffs?: FileDiff[];
  why: string;
  rule: Rule | null;
}
export interface JobFacts {
  job: string;
  command: string;
  ended: string | null;
}
export interface Baseline {
  files: number;
  bytes: number;
}
export type State = 'idle' | 'running' | 'paused';

export interface RunningCall {
  call: CallId;
  title: string;
  output: string;
}
export interface View {
  seq: number;
  session: string;
  workspace: string;
  model: string;
  window?: number | null;
  baseline?: Baseline | null;
  entries: Entry[];
  draft: Part[];
  state: State;
  coming: { text: string; thinking: string };
  calls: RunningCall[];
  questions: Question[];
  summarising?: boolean;
  held: number;
  jobs: JobFacts[];
}

export type EventKind =
  | { type: 'appended'; entry: Entry }
  | { type: 'head_moved'; operation: string | null; keep: EntryId | null; added: Entry[] }
  | { type: 'draft_changed'; parts: Part[] }
  | { type: 'delta'; turn: EntryId; text: string }
  | { type: 'thinking'; turn: EntryId; text: string }
  | { type: 'call_began'; turn: EntryId; tool: string }
  | { type: 'call_started'; call: CallId; title: string }
  | { type: 'call_output'; call: CallId; text: string }
  | { type: 'permission_asked'; question: Question }
  | { type: 'permission_settled'; call: CallId; allowed: boolean }
  | { type: 'state_changed'; state: State }
  | { type: 'retrying'; after_ms: number; attempt: number; message: string }
  | { type: 'summarising'; active: boolean }
  | { type: 'held'; count: number }
  | { type: 'returned' }
  | { type: 'snapshot'; moment: string; checkpoint: string | null; ms: number; error?: string }
  | { type: 'baseline'; baseline: Baseline }
  | { type: 'model_changed'; model: string; window: number | null }
  | { type: 'jobs_changed'; jobs: JobFacts[] }
  | {
      type: 'turn_ended';
      session: string;
      prompt: EntryId;
      reason: string;
      message?: string;
      text: string;
      usage: Usage;
      taken_back?: boolean;
      operation?: string;
    }
  | { type: 'warning'; text: string };

export type Event = { seq: number; request?: string } & EventKind;

export type Scope = 'code' | 'conversation' | 'both';
export type OnConflict = 'stop' | 'keep' | 'overwrite' | 'merge';

export type ChangeGoal =
  | { do: 'rewind'; entry: EntryId; scope: Scope; files?: 'selective' | 'exact' }
  | { do: 'checkpoint'; checkpoint: string; files?: 'selective' | 'exact' }
  | { do: 'undo'; operation?: string | null }
  | { do: 'redo' };

export type Change = ChangeGoal & {
  paths?: Bytes[];
  on_conflict?: OnConflict;
  choices?: [Bytes, OnConflict][];
  /** What an exact rewind does with a person's own changes where nothing else decides. */
  on_yours?: 'stop' | 'overwrite';
  across_branches?: boolean;
};

export type Extent = { part: 'all' } | { part: 'from'; entry: EntryId } | { part: 'up_to'; entry: EntryId };
export type DiffOf =
  | { what: 'change'; change: Change }
  | { what: 'turn'; prompt: EntryId }
  | { what: 'between'; from: EntryId | null; to: EntryId | null };

export type Answer =
  | { type: 'allow' }
  | { type: 'allow_always'; rule: Rule }
  | { type: 'deny'; why?: string | null };

export type Command =
  /** `draft` is what it was made from: that does not wait to be said any more. */
  | { type: 'prompt'; parts: Part[]; draft?: Part[] }
  | { type: 'withdraw'; request: string }
  | { type: 'interrupt'; turn?: EntryId | null }
  | { type: 'answer'; call: CallId; answer: Answer }
  | { type: 'targets'; query?: string | null }
  | { type: 'plan'; change: Change }
  | { type: 'diff'; of: DiffOf }
  | { type: 'apply'; change: Change; head_seen?: { head: EntryId | null } | null; plan_seen?: string | null; running?: 'refuse' | 'interrupt' }
  | { type: 'label'; prompt: EntryId; label: string | null }
  | { type: 'tree' }
  | { type: 'operations' }
  | { type: 'checkpoints' }
  | { type: 'files'; query: string }
  | { type: 'store' }
  | { type: 'model'; model: string }
  | { type: 'draft'; parts: Part[] }
  | { type: 'clear' }
  | { type: 'fork'; entry: EntryId }
  | { type: 'summarise'; extent: Extent; instructions?: string | null }
  | { type: 'end_job'; job: string }
  | { type: 'context' };

export interface TurnSummary {
  added: number;
  modified: number;
  deleted: number;
  tools: string[];
  ran_commands: boolean;
}
export interface Target {
  id: EntryId;
  number: number;
  at: Timestamp;
  text: string;
  files: TurnSummary;
  label: string | null;
  has_files: boolean;
}
export interface TreePrompt {
  id: EntryId;
  parent: EntryId | null;
  at: Timestamp;
  text: string;
  number: number | null;
  label: string | null;
  files: TurnSummary | null;
  forks: string[];
  end?: EntryId | null;
}
export interface OperationFacts {
  operation: string;
  kind: string;
  what: string;
  at: Timestamp;
}
export interface SessionFacts {
  session: string;
  title: string;
  at: Timestamp;
  prompts: number;
  live: boolean;
  forked_from: string | null;
  draft: string | null;
}
export interface CheckpointFacts {
  checkpoint: string;
  at: Timestamp;
  label: string | null;
  note: string | null;
  changed: { added: number; modified: number; deleted: number };
  /** Of the checkpoint of a prompt: what its turn changed. */
  turn?: { added: number; modified: number; deleted: number };
  gaps: number;
}

export interface PromptLine {
  id: EntryId;
  text: string;
}
export interface PlannedConversation {
  from: EntryId | null;
  to: EntryId | null;
  leaves: PromptLine[];
  returns: PromptLine[];
  draft: Part[] | null;
  went_on: boolean;
  removed?: boolean;
  discards: boolean;
  kept_for?: string[];
  fork_at?: EntryId;
}
export interface PlannedFile {
  path: Bytes;
  action: string | null;
  status: string;
  certainty: string | null;
  /** It holds a change that no agent and no command made. */
  yours?: boolean;
}
export interface ConflictFacts {
  path: Bytes;
  why: string;
  text: string;
  choices: OnConflict[];
  choice: OnConflict;
}
export interface RewindDocument {
  version: number;
  fingerprint?: string;
  operation: string | null;
  applied: boolean;
  what: string;
  session: string | null;
  scope: Scope | null;
  conversation: PlannedConversation | null;
  conversation_moved: boolean | null;
  safety: string | null;
  files: PlannedFile[];
  conflicts: ConflictFacts[];
  kept: { path: Bytes; why: string; text: string }[];
  blocked: Bytes[];
  branch: { then: string; now: string } | null;
  gaps: { path: Bytes; kind: string; text: string }[];
  gaps_total: number;
  ledger: { kind: string; what: string; remedy?: string }[];
  undoes: string[];
  foreign: number;
  still_open: Bytes[];
  left_over: Bytes[];
  /** What the point stands for: what this session changed since, or everything. */
  means?: 'session' | 'workspace';
  /** Paths that changed since the point and did not go back. */
  not_restored?: { path: Bytes; why: string; text?: string }[];
}

export interface Summarised {
  entry: EntryId;
  operation: string;
  range: [EntryId, EntryId];
  text: string;
  usage: Usage;
  bytes: [number, number];
}

export type Reply =
  | { type: 'done' }
  | { type: 'view'; view: View }
  | { type: 'said'; prompt: EntryId }
  | { type: 'held'; count: number; request?: string }
  | { type: 'targets'; head: EntryId | null; targets: Target[] }
  | { type: 'change'; document: RewindDocument }
  | { type: 'tree'; head: EntryId | null; prompts: TreePrompt[] }
  | { type: 'operations'; undo: OperationFacts | null; redo: OperationFacts | null }
  | { type: 'checkpoints'; checkpoints: CheckpointFacts[] }
  | { type: 'sessions'; sessions: SessionFacts[] }
  | { type: 'files'; paths: string[] }
  | { type: 'store'; bytes: number; budget: number }
  | { type: 'diff'; files: FileDiff[]; plan?: RewindDocument }
  | { type: 'forked'; session: string; operation: string; draft: Part[]; differing: Bytes[] }
  | { type: 'summarised'; summary: Summarised | null }
  | { type: 'context'; body: string };

export interface Refusal {
  reason:
    | 'running'
    | 'interrupted'
    | 'stale_head'
    | 'conflicts'
    | 'stale_plan'
    | 'in_use'
    | 'not_found'
    | 'no_files'
    | 'nothing'
    | 'invalid'
    | 'ended'
    | 'failed'
    /** Of the page itself: nobody answered. */
    | 'gone';
  message: string;
  hint?: string;
  document?: RewindDocument;
}

export type Response = { id: string } & ({ ok: Reply } | { refused: Refusal });
