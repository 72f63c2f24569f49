//! `retake man`: the manual pages.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap_mangen::Man;

use super::CommandError;
use crate::args;
use crate::failure::Result;
use crate::output::ui::Ui;

/// Print the manual page, or write one for every command
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  retake man | man -l -\n  retake man --dir ~/.local/share/man/man1")]
pub struct ManArgs {
    /// Write a page for each command into this directory instead
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub fn run(ui: &mut Ui, args: &ManArgs) -> Result<()> {
    match &args.dir {
        Some(dir) => {
            write_all(dir).map_err(|source| CommandError::WriteTo { path: dir.clone(), source })?;
            writeln!(ui.talk()?, "Wrote the manual pages to `{}`", dir.display())?;
        }
        None => Man::new(args::command()).render(&mut ui.out)?,
    }
    Ok(())
}

fn write_all(dir: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(dir)?;
    clap_mangen::generate_to(args::command(), dir)
}
