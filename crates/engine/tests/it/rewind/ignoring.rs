//! Ignore rules that come and go: what stays captured, whose a file is that was hidden for a time, and which names are never deleted.

use super::*;

impl Bench {
    fn applying_rules(&mut self) -> Checkpoint {
        let new = numbered(self.tick());
        self.workspace.checkpoint_applying_rules(new, Durability::Soon, &NoProgress).unwrap()
    }

    /// The file at `text` in `checkpoint`.
    fn holds(&self, checkpoint: &Checkpoint, text: &str) -> bool {
        let side = retake_engine::Side::Stored(checkpoint.snapshot);
        self.workspace.entry(&side, &path(text)).unwrap().is_some()
    }
}

#[test]
fn a_rule_that_came_back_by_a_redo_applies_when_the_user_confirms_it() {
    let mut bench = Bench::new();
    bench.write("d/x", "x");
    bench.checkpoint();
    bench.command(|root| fs::write(root.join(".retakeignore"), "x\n").unwrap());
    bench.undo().unwrap();
    bench.redo().unwrap();
    let confirmed = bench.applying_rules();
    assert!(!bench.holds(&confirmed, "d/x"));
    assert_eq!(bench.workspace.coverage(&confirmed).unwrap().no_longer, 1);
    assert!(bench.workspace.index_agrees(&NoProgress).unwrap());
}
