//! `retake demo`: what Retake does, shown on a small project of its own.

use crate::demo::scratch::Afterwards;
use crate::demo::{live, tour};
use crate::failure::Result;
use crate::output::ui::Ui;

/// Show what Retake does, in a minute, without any key
///
/// Runs the real agent on a built-in, scripted model in a directory of its own: a prompt, edits, shell commands, a mistake, the way back, and
/// its undo. Nothing of yours is read or changed, and nothing is sent anywhere.
#[derive(clap::Args, Debug)]
pub struct DemoArgs {
    /// Leave the directory there afterwards, with its store
    #[arg(long)]
    keep: bool,
    /// Print the tour as text, as without a terminal
    #[arg(long)]
    text: bool,
}

pub fn run(ui: &mut Ui, args: &DemoArgs) -> Result<()> {
    let afterwards = if args.keep { Afterwards::Keep } else { Afterwards::Remove };
    if ui.is_interactive() && !args.text {
        return live::run(ui, afterwards);
    }
    tour::run(ui, afterwards)
}
