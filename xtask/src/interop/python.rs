//! A Python that is new enough: the machine's own, or else that of a newer Debian.
//!
//! The newer one is unpacked from Debian's packages, with the C library that it was built for, and started through that library's loader:
//! nothing is installed on the machine, and apt's own lists are left alone.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::install::write_program;
use crate::shell;

/// What asks whether a Python is new enough.
const IS_NEW_ENOUGH: &str = "import sys, pip; sys.exit(sys.version_info < (3, 12))";
/// The release of Debian that has one, its packages, and what they call it.
const RELEASE: &str = "trixie";
const PACKAGES: [&str; 3] = ["python3.13-minimal", "libpython3.13-stdlib", "python3-pip-whl"];
const PROGRAM: &str = "python3.13";
/// What signs Debian's archive.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// A Python.
#[derive(Debug)]
pub(super) struct Python {
    pub(super) interpreter: PathBuf,
    /// Where pip is, if it does not come with the interpreter.
    wheel: Option<PathBuf>,
}

impl Python {
    /// Its pip.
    pub(super) fn pip(&self) -> Command {
        let mut pip = Command::new(&self.interpreter);
        pip.args(["-m", "pip", "--disable-pip-version-check"]);
        if let Some(wheel) = &self.wheel {
            pip.env("PYTHONPATH", wheel);
        }
        pip
    }
}

/// The machine's Python if it is new enough, else one in `folder`, which is unpacked at the first time.
pub(super) fn find(folder: &Path) -> Result<Python> {
    let own = Command::new("python3").args(["-c", IS_NEW_ENOUGH]).output();
    if own.is_ok_and(|own| own.status.success()) {
        return Ok(Python { interpreter: PathBuf::from("python3"), wheel: None });
    }
    let (interpreter, root) = (folder.join("python3"), folder.join("root"));
    if !interpreter.is_file() {
        println!("this machine's Python is older than 3.12: unpacking that of Debian {RELEASE}");
        unpack(folder, &root).context("no Python from 3.12 on is to be had")?;
        // Last, so that what was left half done is done again.
        write_program(&interpreter, &launcher(&root)?)?;
    }
    let wheels = root.join("usr/share/python-wheels");
    let wheel = entry(&wheels, "pip-").with_context(|| format!("there is no pip in {}", wheels.display()))?;
    Ok(Python { interpreter, wheel: Some(wheel) })
}

/// Starts the interpreter with the libraries that came with it.
fn launcher(root: &Path) -> Result<String> {
    let libraries = root.join(format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH));
    let loader = entry(&libraries, "ld-linux").with_context(|| format!("no loader in {}", libraries.display()))?;
    let (loader, libraries) = (loader.display(), libraries.display());
    let program = root.join("usr/bin").join(PROGRAM);
    Ok(format!("#!/bin/sh\nexec '{loader}' --library-path '{libraries}' '{}' \"$@\"\n", program.display()))
}

/// The first entry of a folder with this beginning.
fn entry(folder: &Path, beginning: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?.filter_map(Result::ok);
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(beginning))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found.into_iter().next()
}

/// Downloads the packages with all that they need, and unpacks them.
fn unpack(folder: &Path, root: &Path) -> Result<()> {
    let apt = folder.join("apt");
    for part in ["lists/partial", "cache/archives/partial"] {
        fs::create_dir_all(apt.join(part))?;
    }
    let archive = archive()?;
    fs::write(apt.join("sources.list"), format!("deb [signed-by={KEYRING}] {archive} {RELEASE} main\n"))?;
    // To apt nothing is installed, so that it downloads everything.
    fs::write(apt.join("status"), "")?;
    shell::run(Command::new("apt-get").args(settings(&apt)).args(["update", "-qq"]))?;
    let mut download = Command::new("apt-get");
    download.args(settings(&apt)).args(["install", "-qq", "-y", "--no-install-recommends", "--download-only"]);
    shell::run(download.args(PACKAGES))?;
    fs::create_dir_all(root)?;
    for package in fs::read_dir(apt.join("cache/archives"))? {
        let package = package?.path();
        if package.extension().is_some_and(|extension| extension == "deb") {
            shell::run(Command::new("dpkg-deb").arg("--extract").arg(&package).arg(root))?;
        }
    }
    Ok(())
}

/// Has apt keep to a folder of its own.
fn settings(apt: &Path) -> Vec<OsString> {
    let at = |setting: &str, place: &str| format!("--option={setting}={}", apt.join(place).display());
    vec![
        at("Dir::Etc::sourcelist", "sources.list").into(),
        "--option=Dir::Etc::sourceparts=/dev/null".into(),
        at("Dir::State::lists", "lists").into(),
        at("Dir::State::status", "status").into(),
        at("Dir::Cache", "cache").into(),
        // The user that apt downloads as may not come into this folder.
        "--option=APT::Sandbox::User=root".into(),
    ]
}

/// Where this machine gets its Debian packages.
fn archive() -> Result<String> {
    let format = "$(CREATED_BY) $(RELEASE) $(COMPONENT) $(REPO_URI)";
    let targets = shell::read(Command::new("apt-get").args(["indextargets", "--format", format]))?;
    match archive_of(&targets) {
        Some(archive) if Path::new(KEYRING).is_file() => Ok(archive.to_owned()),
        _ => bail!("this machine gets no packages from Debian: install Python 3.12 or newer, with pip"),
    }
}

/// The archive of the release itself; updates and security fixes are elsewhere.
fn archive_of(targets: &str) -> Option<&str> {
    targets.lines().find_map(|line| {
        let [made_by, release, component, archive] = line.split(' ').collect::<Vec<_>>().try_into().ok()?;
        let is_it = made_by == "Packages" && component == "main" && !release.contains(['-', '/']);
        is_it.then_some(archive)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_archive_is_that_of_the_release() {
        let targets = "Translations bookworm main http://a/\nPackages bookworm-security main http://b/\n\
                       Packages bookworm contrib http://c/\nPackages bookworm main http://d/\n";
        assert_eq!(archive_of(targets), Some("http://d/"));
        assert_eq!(archive_of("Packages nodistro universe http://e/"), None);
    }
}
