//! The styles, in one place. Only the terminal's own colours are used, so that light and dark terminals both look as their owner wants.

use ratatui::style::{Color, Modifier, Style};

/// Whether colours are used at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colours {
    /// The terminal's sixteen.
    #[default]
    Terminal,
    /// None: `NO_COLOR` is set. Bold, dim and reversed remain.
    None,
}

/// What things look like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Theme {
    colours: Colours,
}

impl Theme {
    /// With or without colours.
    pub fn new(colours: Colours) -> Self {
        Self { colours }
    }

    fn colour(self, colour: Color) -> Style {
        match self.colours {
            Colours::Terminal => Style::new().fg(colour),
            Colours::None => Style::new(),
        }
    }

    /// Ordinary text.
    pub fn plain(self) -> Style {
        Style::new()
    }

    /// What matters less.
    pub fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// What matters more.
    pub fn bold(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// What the user said, keys, names.
    pub fn accent(self) -> Style {
        self.colour(Color::Cyan)
    }

    /// What comes, and what went well.
    pub fn added(self) -> Style {
        self.colour(Color::Green)
    }

    /// What goes, and what went wrong.
    pub fn removed(self) -> Style {
        self.colour(Color::Red)
    }

    /// What needs attention.
    pub fn warning(self) -> Style {
        self.colour(Color::Yellow)
    }

    /// Strings and the like in code.
    pub fn magenta(self) -> Style {
        self.colour(Color::Magenta)
    }

    /// A stressed word.
    pub fn italic(self) -> Style {
        Style::new().add_modifier(Modifier::ITALIC)
    }

    /// What was struck out.
    pub fn struck(self) -> Style {
        Style::new().add_modifier(Modifier::CROSSED_OUT)
    }

    /// The first of headings, and what a link is on.
    pub fn underlined(self) -> Style {
        Style::new().add_modifier(Modifier::UNDERLINED)
    }

    /// Whether there are colours; what only a colour would tell needs a sign otherwise.
    pub fn has_colours(self) -> bool {
        self.colours == Colours::Terminal
    }

    /// Keywords in code.
    pub fn blue(self) -> Style {
        self.colour(Color::Blue)
    }

    /// The chosen row.
    pub fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }
}
