//! `retake acp setup`: what to put into an editor's settings.

use std::io::Write;
use std::path::Path;

use retake_acp::setup;

use crate::surroundings::variable;
use crate::ui::Ui;

/// Print what to put into an editor's settings
///
/// For Retake's own agent, and for every agent that is installed here and can be given rewind.
#[derive(clap::Args, Debug)]
pub struct SetupArgs {
    /// The editor; all of them without one
    #[arg(value_name = "EDITOR")]
    editor: Option<Editor>,
}

/// An editor, as typed.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
pub enum Editor {
    Zed,
    Jetbrains,
    Neovim,
    Emacs,
}

pub fn run(ui: &mut Ui, args: &SetupArgs) -> anyhow::Result<()> {
    let all = [Editor::Zed, Editor::Jetbrains, Editor::Neovim, Editor::Emacs];
    let wanted: Vec<Editor> = args.editor.map_or_else(|| all.to_vec(), |editor| vec![editor]);
    // Editors may have another search path than this shell.
    let retake = std::env::current_exe().ok().and_then(|path| path.to_str().map(str::to_owned));
    let retake = retake.unwrap_or_else(|| "retake".to_owned());
    let texts: Vec<String> = wanted.into_iter().map(|editor| in_words(editor, &retake)).collect();
    write!(ui.out, "{}", texts.join("\n"))?;
    Ok(())
}

fn in_words(editor: Editor, retake: &str) -> String {
    let editor = match editor {
        Editor::Zed => setup::Editor::Zed,
        Editor::Jetbrains => setup::Editor::JetBrains,
        Editor::Neovim => setup::Editor::Neovim,
        Editor::Emacs => setup::Editor::Emacs,
    };
    editor.instructions(retake, is_installed)
}

fn is_installed(program: &str) -> bool {
    let path = variable("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| Path::new(&dir).join(program).is_file())
}
