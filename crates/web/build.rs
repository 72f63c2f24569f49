//! Writes down the files of the page, so that they become part of the program: what is in `page/dist`, which is committed.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo tells where the crate is"));
    let source = root.join("page/dist");
    println!("cargo::rerun-if-changed=page/dist");
    let mut files = Vec::new();
    collect(&source, &source, &mut files)?;
    files.sort();
    let mut code = String::from("&[\n");
    for (name, path) in files {
        writeln!(code, "    ({name:?}, include_bytes!({path:?}).as_slice()),").map_err(io::Error::other)?;
    }
    code.push_str("]\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo tells where to write"));
    fs::write(out.join("files.rs"), code)
}

/// Everything below `dir` but what only helps developers, by its path from `source`.
fn collect(source: &Path, dir: &Path, files: &mut Vec<(String, String)>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(source, &path, files)?;
            continue;
        }
        let name = path.strip_prefix(source).map_err(io::Error::other)?;
        let (Some(name), Some(path)) = (name.to_str(), path.to_str()) else {
            return Err(io::Error::other("the page's files have names that are UTF-8"));
        };
        if !name.ends_with(".map") {
            files.push((format!("/{name}"), path.to_owned()));
        }
    }
    Ok(())
}
