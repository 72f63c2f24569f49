//! `retake export`: a point as a commit on a new branch of the workspace's git repository.
//!
//! The only command that writes into a repository, and only what it was asked for: objects and one branch. HEAD, the index and the
//! work tree stay as they are. git itself does the writing.

mod git_name;

use std::collections::HashMap;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use retake_engine::checkpoint::Checkpoint;
use retake_engine::id::ObjectId;
use retake_engine::snapshot::{Node, NodeKind};
use retake_engine::view::Side;
use retake_engine::{Workspace, WorkspacePath};
use serde::Serialize;

use super::CommandError;
use crate::agent::session;
use crate::failure::Result;
use crate::output::json;
use crate::output::messages;
use crate::output::quote;
use crate::output::time;
use crate::output::ui::{Format, Ui};
use crate::workspace::context::CommandContext;
use crate::workspace::interrupted_rewind;
use crate::workspace::point;

/// Write a checkpoint as a commit on a new git branch, or a conversation as JSON lines
///
/// With `--git-branch`: HEAD, the index and your files stay as they are. The commit holds everything that the checkpoint holds, files that git ignores
/// included (`.env`, say), so look at it before you push it; empty directories and nested repositories' own data are left out, since
/// git cannot keep them. Names that git refuses because some system takes them for `.git`, such as `git~1`, are left out and listed.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  retake export --git-branch attempt-1 3fa2
  retake export --jsonl --session 9bc1 > conversation.jsonl")]
pub struct ExportArgs {
    /// Print a conversation, an entry a line, from the first to the last
    #[arg(long, required_unless_present = "git_branch", conflicts_with = "git_branch")]
    jsonl: bool,
    /// Print also what was left behind by rewinds
    #[arg(long, requires = "jsonl")]
    all: bool,
    /// Branch to make; one that is there already is refused
    #[arg(long, value_name = "NAME", requires = "point")]
    git_branch: Option<String>,
    /// Prompt or checkpoint: a unique beginning of its id, its label, or the number of a prompt
    #[arg(conflicts_with = "jsonl")]
    point: Option<String>,
    /// The session [default, of a conversation: the newest]
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
}

#[derive(Serialize)]
struct ExportDocument<'a> {
    version: u32,
    checkpoint: String,
    branch: &'a str,
    commit: &'a str,
    /// Null if the commit at the checkpoint is not there any more, or there was none.
    parent: Option<&'a str>,
    /// Paths that are not in the commit because git refuses their names.
    refused: Vec<json::Bytes>,
}

/// Contents are found in the stream by this number.
type BlobMark = usize;

/// What of the checkpoint is not in the commit.
#[derive(Default)]
struct LeftOut {
    /// Empty directories and version-control data.
    unkept: u64,
    /// Paths whose names git refuses, with all that is below them.
    refused: Vec<WorkspacePath>,
}

/// What the commit will hold.
struct TreeEntry {
    path: Vec<u8>,
    mode: &'static str,
    mark: BlobMark,
}

pub fn run(ui: &mut Ui, here: CommandContext, args: &ExportArgs) -> Result<()> {
    let workspace = Workspace::open(here.environment)?;
    interrupted_rewind::mention(ui, &workspace)?;
    match (&args.git_branch, &args.point) {
        (Some(branch), Some(point)) => {
            let session = args.session.as_deref().map(|text| session::named(&workspace, text)).transpose()?;
            let checkpoint = point::checkpoint(&workspace, point, session.map(|session| session.id))?;
            to_branch(ui, &workspace, branch, &checkpoint)
        }
        _ => to_lines(ui, &workspace, args),
    }
}

/// Prints a conversation, an entry a line.
fn to_lines(ui: &mut Ui, workspace: &Workspace, args: &ExportArgs) -> Result<()> {
    let session = session::find(workspace, args.session.as_deref())?;
    let entries = match args.all {
        true => workspace.sessions().all_entries(session.id)?,
        false => workspace.sessions().conversation(session.id)?.entries().to_vec(),
    };
    for entry in &entries {
        ui.json(entry)?;
    }
    Ok(())
}

fn to_branch(ui: &mut Ui, workspace: &Workspace, branch: &str, checkpoint: &Checkpoint) -> Result<()> {
    let git = Git { root: workspace.root() };
    let prefix = git.prefix()?;
    let reference = git.new_branch(branch)?;
    let parent = checkpoint.git.head.clone().filter(|head| git.has_commit(head));
    let author = git.identity("GIT_AUTHOR_IDENT")?;
    let committer = git.identity("GIT_COMMITTER_IDENT")?;

    let mut import = git.import()?;
    let mut left_out = LeftOut::default();
    let written = {
        let input = import.stdin.take().expect("it was asked for");
        let mut stream = FastImport { out: BufWriter::new(input), workspace, marks: HashMap::new() };
        let mut entries = Vec::new();
        let contents = stream.contents(checkpoint, None, &prefix, &mut entries, &mut left_out);
        // Without a commit git keeps contents that nothing refers to, and its garbage collection removes them.
        let committed = contents.and_then(|()| {
            let head =
                Head { reference: &reference, author: &author, committer: &committer, parent: parent.as_deref() };
            Ok(stream.commit(checkpoint, &head, &prefix, &entries)?)
        });
        let ended = stream.end();
        committed.and_then(|()| Ok(ended?))
    };
    let output = import.wait_with_output().map_err(CommandError::git)?;
    if !output.status.success() {
        // What git says explains a broken pipe.
        return Err(failed("fast-import", &output).into());
    }
    written?;
    let commit = git.ask(&["rev-parse", "--verify", &reference])?;
    if ui.format == Format::Json {
        return Ok(ui.json(&ExportDocument {
            version: json::VERSION,
            checkpoint: checkpoint.id.to_string(),
            branch,
            commit: &commit,
            parent: parent.as_deref(),
            refused: left_out.refused.iter().map(|path| json::Bytes::new(path.as_bytes())).collect(),
        })?);
    }
    let short: String = commit.chars().take(10).collect();
    writeln!(ui.out, "Checkpoint {} is commit {short} on `{}`", checkpoint.id.short(), quote::one_line(branch))?;
    let names = quote::names(&left_out.refused);
    ui.warn_of("is not in it: git refuses its name", "are not in it: git refuses their names", &names)?;
    if 0 < left_out.unkept {
        let paths = messages::count(left_out.unkept, "path is", "paths are");
        ui.warn(&format!("{paths} not in it: empty directories and version-control data, which git cannot keep"))?;
    }
    Ok(())
}

/// What a commit needs besides its content.
struct Head<'a> {
    reference: &'a str,
    author: &'a str,
    committer: &'a str,
    parent: Option<&'a str>,
}

/// What git is told.
struct FastImport<'a, W: Write> {
    out: BufWriter<W>,
    workspace: &'a Workspace,
    marks: HashMap<ObjectId, BlobMark>,
}

impl<W: Write> FastImport<'_, W> {
    /// Writes the contents of everything below `dir` and lists it.
    fn contents(
        &mut self,
        checkpoint: &Checkpoint,
        dir: Option<&WorkspacePath>,
        prefix: &[u8],
        entries: &mut Vec<TreeEntry>,
        left_out: &mut LeftOut,
    ) -> Result<()> {
        let children = self.workspace.list(&Side::Stored(checkpoint.snapshot), dir)?;
        if children.is_empty() && dir.is_some() {
            left_out.unkept += 1;
        }
        for (name, node) in children {
            let path = match dir {
                Some(dir) => dir.join(&name)?,
                None => WorkspacePath::parse(&name)?,
            };
            if name == b".git" {
                left_out.unkept += 1;
                continue;
            }
            if git_name::is_refused(&name, node.kind) {
                left_out.refused.push(path);
                continue;
            }
            let mode = match node.kind {
                NodeKind::Directory => {
                    self.contents(checkpoint, Some(&path), prefix, entries, left_out)?;
                    continue;
                }
                NodeKind::Symlink => "120000",
                NodeKind::File if node.mode & 0o100 != 0 => "100755",
                NodeKind::File => "100644",
            };
            let mark = self.content(checkpoint, &path, &node)?;
            entries.push(TreeEntry { path: [prefix, path.as_bytes()].concat(), mode, mark });
        }
        Ok(())
    }

    /// Writes one content, unless it is there already.
    fn content(&mut self, checkpoint: &Checkpoint, path: &WorkspacePath, node: &Node) -> Result<BlobMark> {
        if let Some(mark) = self.marks.get(&node.content) {
            return Ok(*mark);
        }
        let mark = self.marks.len() + 1;
        write!(self.out, "blob\nmark :{mark}\ndata {}\n", node.size)?;
        let mut counted = Counted { out: &mut self.out, written: 0 };
        let side = Side::Stored(checkpoint.snapshot);
        let copied = self.workspace.content(&side, path, node, &mut counted);
        // git expects as many bytes as were announced, whatever became of them.
        let missing = node.size.saturating_sub(counted.written);
        io::copy(&mut io::Read::take(io::repeat(0), missing), &mut self.out)?;
        writeln!(self.out)?;
        copied?;
        self.marks.insert(node.content, mark);
        Ok(mark)
    }

    fn commit(
        &mut self,
        checkpoint: &Checkpoint,
        head: &Head<'_>,
        prefix: &[u8],
        entries: &[TreeEntry],
    ) -> io::Result<()> {
        let subject = match (&checkpoint.label, &checkpoint.note) {
            (Some(label), _) => quote::one_line(label).into_owned(),
            (None, Some(note)) => quote::one_line(note).into_owned(),
            (None, None) => format!("Checkpoint {}", checkpoint.id.short()),
        };
        let at = time::rfc3339(checkpoint.at);
        let message = format!("{subject}\n\nRetake checkpoint {}, made {at}\n", checkpoint.id);
        let (author, committer) = (head.author, head.committer);
        writeln!(self.out, "commit {}", head.reference)?;
        write!(self.out, "author {author}\ncommitter {committer}\ndata {}\n{message}\n", message.len())?;
        if let Some(parent) = head.parent {
            writeln!(self.out, "from {parent}")?;
        }
        match prefix.strip_suffix(b"/") {
            // What is beside the workspace stays as it is in the parent.
            Some(dir) => writeln!(self.out, "D {}", quote::name(dir))?,
            None => writeln!(self.out, "deleteall")?,
        }
        for TreeEntry { path, mode, mark } in entries {
            writeln!(self.out, "M {mode} :{mark} {}", quote::name(path))?;
        }
        writeln!(self.out)
    }

    fn end(mut self) -> io::Result<()> {
        writeln!(self.out, "done")?;
        self.out.flush()
    }
}

/// Counts what passes.
struct Counted<'a, W: Write> {
    out: &'a mut W,
    written: u64,
}

impl<W: Write> Write for Counted<'_, W> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let written = self.out.write(data)?;
        self.written += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// git, in the workspace.
struct Git<'a> {
    root: &'a Path,
}

impl Git<'_> {
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("git");
        command.arg("-C").arg(self.root).args(args).stdin(Stdio::null());
        command
    }

    fn output(&self, args: &[&str]) -> Result<Output, CommandError> {
        self.command(args).output().map_err(CommandError::git)
    }

    /// What git answers, on one line.
    fn ask(&self, args: &[&str]) -> Result<String, CommandError> {
        let output = self.output(args)?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned()),
            false => Err(failed(args[0], &output)),
        }
    }

    /// The workspace's place in the repository: empty, or with a slash at its end.
    fn prefix(&self) -> Result<Vec<u8>, CommandError> {
        let mut output = self.output(&["rev-parse", "--show-prefix"])?;
        if !output.status.success() {
            return Err(CommandError::NoRepository { root: self.root.to_owned() });
        }
        output.stdout.pop_if(|last| *last == b'\n');
        Ok(output.stdout)
    }

    /// The full name of a branch that is not there yet.
    fn new_branch(&self, name: &str) -> Result<String, CommandError> {
        let taken = || CommandError::BranchTaken { name: name.to_owned() };
        if !self.output(&["check-ref-format", "--branch", name])?.status.success() || name.starts_with('@') {
            return Err(CommandError::BadBranch { name: name.to_owned() });
        }
        let reference = format!("refs/heads/{name}");
        if self.output(&["rev-parse", "--verify", "--quiet", &reference])?.status.success() {
            return Err(taken());
        }
        // A branch without a commit is there for whoever has it checked out.
        match self.ask(&["symbolic-ref", "--quiet", "HEAD"]) {
            Ok(head) if head == reference => Err(taken()),
            _ => Ok(reference),
        }
    }

    fn has_commit(&self, id: &str) -> bool {
        let commit = format!("{id}^{{commit}}");
        self.output(&["cat-file", "-e", &commit]).is_ok_and(|output| output.status.success())
    }

    /// Who the user is to git, with the time.
    fn identity(&self, name: &str) -> Result<String, CommandError> {
        self.ask(&["var", name])
    }

    fn import(&self) -> Result<Child, CommandError> {
        let mut command = self.command(&["fast-import", "--quiet", "--done"]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().map_err(CommandError::git)
    }
}

fn failed(what: &str, output: &Output) -> CommandError {
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim().lines().last().unwrap_or_default();
    CommandError::GitFailed { what: what.to_owned(), said: quote::one_line(said).into_owned() }
}
