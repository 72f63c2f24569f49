//! The terminal's state: taken over while the client runs, and given back whatever ends it.

use std::io::{self, Write, stdout};
use std::sync::Once;

use crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture, KeyboardEnhancementFlags,
    PopKeyboardEnhancementFlags, PushKeyboardEnhancementFlags,
};
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use crossterm::{cursor, execute};

/// A terminal that is taken over; it is given back when this goes.
pub struct Taken(());

impl Taken {
    /// Takes the terminal over.
    pub fn take() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        let taker = std::thread::current().id();
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                // What went wrong has to be legible. In another thread it does not end the client.
                if std::thread::current().id() == taker {
                    give_back().ok();
                }
                before(panic);
            }));
        });
        enable_raw_mode()?;
        let taken = Self(());
        execute!(stdout(), EnterAlternateScreen, EnableBracketedPaste, EnableMouseCapture)?;
        // Terminals that know it tell Shift+Enter from Enter; the others ignore it.
        execute!(stdout(), PushKeyboardEnhancementFlags(KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES))?;
        Ok(taken)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        // There is nothing else that could be done about a terminal that is gone.
        give_back().ok();
    }
}

fn give_back() -> io::Result<()> {
    execute!(
        stdout(),
        PopKeyboardEnhancementFlags,
        DisableMouseCapture,
        DisableBracketedPaste,
        LeaveAlternateScreen,
        cursor::Show
    )?;
    disable_raw_mode()?;
    stdout().flush()
}
