//! Who a test runs as: a permission test means nothing as root, and a mount needs more than a normal user has.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

const NOBODY: u32 = 65534;

/// Is this process allowed everything?
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Makes `command` run as a user who is denied things: `nobody` if we are root, else as we are.
///
/// What it has to read or write has to be [given away](give_to_nobody) first, and its program must be reachable for everyone.
pub fn run_as_nobody(mut command: Command) -> Command {
    if is_root() {
        // With a user set, the standard library drops the supplementary groups too.
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

/// Gives `path`, with all below it, to whoever [`run_as_nobody`] runs commands as.
pub fn give_to_nobody(path: &Path) {
    if !is_root() {
        return;
    }
    std::os::unix::fs::lchown(path, Some(NOBODY), Some(NOBODY)).expect("root may give files away");
    if path.symlink_metadata().expect("it exists").is_dir() {
        for entry in std::fs::read_dir(path).expect("root may list it") {
            give_to_nobody(&entry.expect("root may list it").path());
        }
    }
}

/// Fails the test if commands of [`run_as_nobody`] would be allowed everything after all.
pub fn assert_denied(dir: &Path) {
    let secret = dir.join("readable-by-none");
    std::fs::write(&secret, "x").expect("a file in a directory of the test's");
    let nothing = std::os::unix::fs::PermissionsExt::from_mode(0o000);
    std::fs::set_permissions(&secret, nothing).expect("its mode can be set");
    let mut cat = Command::new("cat");
    cat.arg(&secret);
    let output = run_as_nobody(cat).output().expect("`cat` runs");
    std::fs::remove_file(&secret).expect("it was just made");
    assert!(
        !output.status.success(),
        "commands run as nobody read what nobody may read: these tests would prove nothing"
    );
}
