//! The Agent Client Protocol's own schemas, to hold messages against.
//!
//! They come with the published SDK: `npm pack` fetches it once into the target directory. What cannot be fetched fails the test with the
//! reason.

mod validate;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use validate::Validator;

/// The package, as npm names it.
pub const SDK: &str = "@agentclientprotocol/sdk@2.4.0";

/// The schemas of one version of the protocol.
pub struct Schemas {
    version: u32,
    stable: Validator,
    unstable: Validator,
}

impl Schemas {
    /// Those of version 1 or 2.
    pub fn of(version: u32) -> Self {
        let dir = sdk().join(format!("schema/v{version}"));
        let read = |name: &str| {
            let text = fs::read_to_string(dir.join(name)).expect("the package has its schemas");
            Validator::new(serde_json::from_str(&text).expect("a schema is JSON"))
        };
        Self { version, stable: read("schema.json"), unstable: read("schema.unstable.json") }
    }

    /// What is wrong with the parameters of a request or a notification.
    pub fn call(&self, method: &str, params: &Value) -> Vec<String> {
        self.check(method, &["Request", "Notification"], params)
    }

    /// What is wrong with the answer to a request.
    pub fn answer(&self, method: &str, result: &Value) -> Vec<String> {
        self.check(method, &["Response"], result)
    }

    /// What is wrong with an error.
    pub fn error(&self, error: &Value) -> Vec<String> {
        self.stable.check("Error", error)
    }

    /// Extensions have no schema; everything else must have one, and must hold by the stable one too if that knows it.
    fn check(&self, method: &str, kinds: &[&str], value: &Value) -> Vec<String> {
        let is_extension = method.starts_with('_') || ["session/rewind", "session/edit_prompt"].contains(&method);
        if is_extension {
            return Vec::new();
        }
        let mut wrong = Vec::new();
        let Some(name) = self.unstable.definition(method, kinds) else {
            return vec![format!("version {} has no `{method}`", self.version)];
        };
        wrong.extend(self.unstable.check(&name, value));
        if let Some(name) = self.stable.definition(method, kinds) {
            wrong.extend(self.stable.check(&name, value));
        }
        wrong
    }
}

/// The SDK, unpacked.
pub fn sdk() -> PathBuf {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let dir = target.join("acp-sdk-2.4.0");
    if dir.join("package/schema/v2/schema.json").exists() {
        return dir.join("package");
    }
    // Several tests may come here at once: each unpacks its own, and the first one stays.
    let scratch = tempfile::tempdir_in(&target).expect("a directory below `target`");
    let packed = Command::new("npm").args(["pack", "--silent", SDK]).current_dir(scratch.path()).output();
    let packed = packed.unwrap_or_else(|error| panic!("npm is needed for the protocol's schemas: {error}"));
    assert!(packed.status.success(), "`npm pack {SDK}`: {}", String::from_utf8_lossy(&packed.stderr));
    let archive = String::from_utf8_lossy(&packed.stdout).trim().to_owned();
    let unpacked = Command::new("tar").args(["xzf", &archive]).current_dir(scratch.path()).status();
    assert!(unpacked.is_ok_and(|status| status.success()), "`tar` unpacks {archive}");
    fs::create_dir_all(&dir).expect("a directory below `target`");
    // Somebody else may have been quicker.
    fs::rename(scratch.path().join("package"), dir.join("package")).ok();
    assert!(dir.join("package/schema").exists(), "the package is unpacked");
    dir.join("package")
}
