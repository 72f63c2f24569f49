//! `retake acp setup`: what to put into an editor's settings.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use clap::ValueEnum;
use retake_acp::editor_setup;
use retake_agent::rewind_document::VERSION;
use serde::Serialize;

use crate::failure::Result;
use crate::output::ui::{Format, Ui};
use crate::workspace::context::variable;

/// Print what to put into an editor's settings
///
/// For Retake's own agent, and with rewind for those of these whose program is found in PATH: OpenCode, Copilot, Cline, Kilo, Pi, Qwen,
/// Vibe, fast-agent, Hermes, Gemini and Goose; Claude and Codex, too, if there is `npx`, which fetches them. Programs are named by where
/// they are found, because an editor may have another PATH. What each agent needs is said. Nothing is tried and nothing is written; any
/// other agent that speaks the protocol works with `retake acp -- COMMAND` in the same way.
#[derive(clap::Args, Debug)]
pub struct SetupArgs {
    /// The editor; all of them without one
    #[arg(value_name = "EDITOR")]
    editor: Option<EditorName>,
}

/// An editor, as typed.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
pub enum EditorName {
    Zed,
    Jetbrains,
    Neovim,
    Emacs,
}

#[derive(Serialize)]
struct SetupDocument {
    version: u32,
    agents: Vec<AgentFacts>,
    editors: Vec<EditorFacts>,
}

#[derive(Serialize)]
struct AgentFacts {
    name: String,
    command: Vec<String>,
    needs: String,
}

#[derive(Serialize)]
struct EditorFacts {
    editor: String,
    what_to_do: String,
    text: String,
}

pub fn run(ui: &mut Ui, args: &SetupArgs) -> Result<()> {
    let wanted: Vec<EditorName> =
        args.editor.map_or_else(|| EditorName::value_variants().to_vec(), |editor| vec![editor]);
    // Editors may have another search path than this shell.
    let retake = std::env::current_exe().ok().and_then(|path| path.to_str().map(str::to_owned));
    let retake = retake.unwrap_or_else(|| "retake".to_owned());
    let servers = editor_setup::servers(installed);
    let editors: Vec<EditorFacts> = wanted.into_iter().map(|editor| facts(editor, &retake, &servers)).collect();
    if ui.format == Format::Json {
        let agent = |server: &editor_setup::AgentServer| AgentFacts {
            name: server.name.clone(),
            command: std::iter::once(&retake).chain(&server.arguments).cloned().collect(),
            needs: server.needs.to_owned(),
        };
        return Ok(ui.json(&SetupDocument {
            version: VERSION,
            agents: servers.iter().map(agent).collect(),
            editors,
        })?);
    }
    let texts: Vec<String> = editors.iter().map(|one| format!("{}\n\n{}", one.what_to_do, one.text)).collect();
    write!(ui.out, "{}", texts.join("\n"))?;
    Ok(())
}

fn facts(editor: EditorName, retake: &str, servers: &[editor_setup::AgentServer]) -> EditorFacts {
    let named = match editor {
        EditorName::Zed => editor_setup::Editor::Zed,
        EditorName::Jetbrains => editor_setup::Editor::JetBrains,
        EditorName::Neovim => editor_setup::Editor::Neovim,
        EditorName::Emacs => editor_setup::Editor::Emacs,
    };
    let editor_setup::Instructions { what_to_do, text } = named.instructions(retake, servers);
    let name = editor.to_possible_value().map(|value| value.get_name().to_owned());
    EditorFacts { editor: name.unwrap_or_default(), what_to_do, text }
}

/// Where a program is found.
fn installed(program: &str) -> Option<String> {
    let path = variable("PATH").unwrap_or_default();
    let is_program = |file: &PathBuf| {
        std::fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    let found = std::env::split_paths(&path).map(|dir| dir.join(program)).find(is_program)?;
    // What is no text cannot be written into settings; its name may do.
    let absolute = std::path::absolute(&found).ok().and_then(|path| path.into_os_string().into_string().ok());
    Some(absolute.unwrap_or_else(|| program.to_owned()))
}
