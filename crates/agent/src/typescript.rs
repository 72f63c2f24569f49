//! The contract's types as TypeScript, for the web page: `crates/web/page/src/contract.ts` is this text.
//!
//! Only tests use it. It writes nothing; a test compares, and writes the file when it is asked to.

use std::any::TypeId;
use std::collections::{BTreeMap, HashSet};

use ts_rs::{Config, TS, TypeVisitor};

use crate::contract::{Request, Response, SessionFacts};
use crate::view::View;

const HEADER: &str = "\
// The contract with a session, as JSON: what `retake-agent` sends and takes. Types only.
// Generated from the Rust types; do not edit. To write it anew:
// RETAKE_BLESS=1 cargo test -p retake-agent --all-features --test it contract_ts
";

/// Longer unions are broken into lines.
const WIDTH: usize = 120;

/// All types that a client sends or gets, sorted by name.
pub fn contract() -> String {
    let mut types =
        Types { config: Config::new().with_large_int("number"), seen: HashSet::new(), found: BTreeMap::new() };
    types.visit::<Request>();
    types.visit::<Response>();
    types.visit::<crate::contract::Event>();
    types.visit::<View>();
    types.visit::<SessionFacts>();
    let declared: String = types.found.values().map(|declaration| format!("\n{declaration}\n")).collect();
    format!("{HEADER}{declared}")
}

/// The types that were found, by name.
struct Types {
    config: Config,
    seen: HashSet<TypeId>,
    found: BTreeMap<String, String>,
}

impl TypeVisitor for Types {
    fn visit<T: TS + 'static + ?Sized>(&mut self) {
        if !self.seen.insert(TypeId::of::<T>()) {
            return;
        }
        // Text, numbers and lists have no declaration of their own.
        if T::output_path().is_some() {
            let declaration = format!("export {}", laid_out(&T::decl(&self.config)));
            let other = self.found.insert(T::ident(&self.config), declaration);
            assert!(other.is_none(), "two types of the contract are called {}", T::ident(&self.config));
        }
        T::visit_dependencies(self);
        T::visit_generics(self);
    }
}

/// A declaration without the comments of its fields, which are in the Rust types, and with each of its alternatives in a line.
fn laid_out(declaration: &str) -> String {
    let mut text = String::new();
    let mut rest = declaration;
    while let Some((before, comment)) = rest.split_once("/**") {
        text.push_str(before.trim_end());
        text.push(' ');
        rest = comment.split_once("*/").map_or("", |(_, after)| after.trim_start());
    }
    text.push_str(rest);
    let text = text.replace(", }", " }").replace("\"type\":", "type:");
    if text.len() <= WIDTH || !text.contains("} | {") {
        return text;
    }
    text.replace("} | {", "}\n  | {").replace("} & (", "} & (\n    ").replacen("= {", "=\n  | {", 1)
}
