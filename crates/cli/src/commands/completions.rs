//! `retake completions`: a completion script for the user's shell.

use clap_complete::Shell;

use crate::args;
use crate::failure::Result;
use crate::output::ui::Ui;

/// Print a completion script for a shell
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  retake completions bash > ~/.local/share/bash-completion/completions/retake
  retake completions zsh > ~/.zfunc/_retake
  retake completions fish > ~/.config/fish/completions/retake.fish")]
pub struct CompletionsArgs {
    /// Shell to print for
    shell: Shell,
}

pub fn run(ui: &mut Ui, args: &CompletionsArgs) -> Result<()> {
    // Rendered apart, because clap_complete panics where writing fails.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut args::command(), "retake", &mut script);
    Ok(std::io::Write::write_all(&mut ui.out, &script)?)
}
