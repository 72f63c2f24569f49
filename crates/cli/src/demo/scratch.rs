//! A directory for the demo: the project and a store, which nothing else knows of. It goes when the demo ends.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use retake_agent::ids;
use retake_engine::{Breadth, Environment, Settings};

use super::story;

/// Files by name, with their contents.
pub type Files = BTreeMap<String, Vec<u8>>;

/// The demo's directory.
pub struct Scratch {
    dir: PathBuf,
    afterwards: Afterwards,
}

/// What happens to the demo's directory when the demo ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Afterwards {
    Remove,
    Keep,
}

impl Scratch {
    /// Makes it, with the project in it.
    pub fn new(afterwards: Afterwards) -> io::Result<Self> {
        let name: String = ids::random().iter().map(|byte| format!("{byte:02x}")).collect();
        let scratch = Self { dir: std::env::temp_dir().join(format!("retake-demo-{}", &name[..8])), afterwards };
        std::fs::create_dir(&scratch.dir)?;
        std::fs::create_dir(scratch.root())?;
        for (name, text) in story::FILES {
            std::fs::write(scratch.root().join(name), text)?;
        }
        Ok(scratch)
    }

    /// The project.
    pub fn root(&self) -> PathBuf {
        self.dir.join("prices")
    }

    /// The project as a workspace.
    pub fn environment(&self) -> Environment {
        Environment {
            root: self.root(),
            data_dir: self.dir.join("store"),
            global_excludes: None,
            homes: Vec::new(),
            breadth: Breadth::Guarded,
            settings: Settings::default(),
            threads: 2,
        }
    }

    /// All files of the project as they are now.
    pub fn files(&self) -> io::Result<Files> {
        let mut files = Files::new();
        collect(&self.root(), "", &mut files)?;
        Ok(files)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.afterwards == Afterwards::Remove {
            // What stays in the system's temporary directory is nobody's loss.
            std::fs::remove_dir_all(&self.dir).ok();
        }
    }
}

fn collect(dir: &Path, prefix: &str, files: &mut Files) -> io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &format!("{name}/"), files)?;
        } else {
            files.insert(name, std::fs::read(entry.path())?);
        }
    }
    Ok(())
}
