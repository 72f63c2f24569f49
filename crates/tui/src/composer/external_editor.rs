//! The composer in an external editor: pasted blocks are marks in its text, and become blocks again when it returns.

use super::Composer;
use super::clean;

impl Composer {
    /// The text for an editor; a block is `[block 1]`.
    pub fn for_editor(&self) -> String {
        let mut text = String::new();
        for c in self.text.chars() {
            match self.block_number(c) {
                Some(number) => text.push_str(&mark(number)),
                None => text.push(c),
            }
        }
        text
    }

    /// Takes what came back from an editor.
    pub fn take_edited(&mut self, text: &str) {
        let mut text = clean(text);
        while text.ends_with('\n') {
            text.pop();
        }
        for number in 0..self.blocks.len() {
            if let Some(c) = self.block_character(number) {
                // A mark that was copied stands for the block once only.
                text = text.replacen(&mark(number), &c.to_string(), 1);
            }
        }
        self.cursor = text.len();
        self.text = text;
        self.recalled = None;
    }
}

fn mark(number: usize) -> String {
    format!("[block {}]", number + 1)
}
