//! The page's types are those of the contract.

use std::path::Path;

#[test]
fn the_page_has_the_types_of_the_contract() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../web/page/src/contract.ts");
    let contract = retake_agent::typescript::contract();
    if std::env::var_os("RETAKE_BLESS").is_some() {
        std::fs::write(&path, &contract).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(
        written == contract,
        "{} is not what the Rust types say; its head tells how to write it anew",
        path.display()
    );
}
