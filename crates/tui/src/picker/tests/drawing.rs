//! What is on the screen.

use super::*;

/// A plan in which everything there is to say is said.
fn everything() -> RewindDocument {
    let ledger = |kind: &str, what: &str, remedy: Option<&str>| LedgerItem {
        kind: kind.to_owned(),
        what: what.to_owned(),
        remedy: remedy.map(str::to_owned),
    };
    let gaps = json!({"gaps": [{"path": "big.iso", "kind": "too_large", "text": "too large"}], "gaps_total": 1});
    let kept = json!([{"path": "build", "why": "ignored", "text": "holds ignored files"}]);
    RewindDocument {
        ledger: vec![ledger("command", "npm install", None), ledger("git", "HEAD moved", Some("git reset --soft abc"))],
        gaps: serde_json::from_value(gaps).unwrap(),
        kept: serde_json::from_value(kept).unwrap(),
        foreign: 1,
        undoes: vec!["bash: npm install".to_owned()],
        ..with_branch(with_conflicts(2))
    }
}

#[test]
fn dump() {
    for (w, h) in [(40, 24), (80, 20), (120, 20)] {
        let mut scene = Scene::ready();
        eprintln!("== {w}x{h}\n{}", scene.drawn(w, h));
        scene.press(KeyCode::Enter);
        eprintln!("== menu\n{}", scene.drawn(w, h));
        let mut scene = Scene::ready_with(everything());
        scene.press(KeyCode::Enter);
        scene.press(KeyCode::Enter);
        eprintln!("== deciding\n{}", scene.drawn(w, h));
        scene.press(KeyCode::Enter);
        eprintln!("== crossing\n{}", scene.drawn(w, h));
        let mut scene = Scene::ready();
        scene.press(KeyCode::Tab);
        scene.answer_all(plan(4));
        eprintln!("== tree\n{}", scene.drawn(w, h));
    }
}
