//! A terminal's screen as an SVG: text with the sixteen colours, bold, dim, reversed, underlined.

use std::fmt::Write;

/// Pixels of a cell.
const CELL: (f32, f32) = (8.4, 18.0);
/// Around the screen, and above it for the title.
const MARGIN: (f32, f32) = (14.0, 38.0);
const BACKGROUND: &str = "#16181d";
const FOREGROUND: &str = "#d5d8df";
/// Black, red, green, yellow, blue, magenta, cyan, white, and their bright ones.
const COLOURS: [&str; 16] = [
    "#3a3f4b", "#ef6b73", "#98c379", "#e5c07b", "#6aa5f2", "#c678dd", "#56c8d8", "#d5d8df", "#5c6370", "#ff7b85",
    "#b5e08f", "#ffd88f", "#82b8ff", "#dd93f5", "#74e2f0", "#ffffff",
];

/// How text looks.
#[derive(Clone, Debug, Default, PartialEq)]
struct Look {
    colour: Option<usize>,
    is_bold: bool,
    is_dim: bool,
    is_italic: bool,
    is_underlined: bool,
    is_reversed: bool,
}

impl Look {
    /// Takes the numbers of an escape sequence in.
    fn take(&mut self, numbers: &str) {
        let mut numbers = numbers.split(';').map(|number| number.parse::<usize>().unwrap_or(0));
        while let Some(number) = numbers.next() {
            match number {
                0 => *self = Self::default(),
                1 => self.is_bold = true,
                2 => self.is_dim = true,
                3 => self.is_italic = true,
                4 => self.is_underlined = true,
                7 => self.is_reversed = true,
                22 => (self.is_bold, self.is_dim) = (false, false),
                23 => self.is_italic = false,
                24 => self.is_underlined = false,
                27 => self.is_reversed = false,
                colour @ 30..=37 => self.colour = Some(colour - 30),
                // One of 256, of which the first sixteen are used.
                38 => self.colour = numbers.nth(1).filter(|colour| *colour < COLOURS.len()),
                39 => self.colour = None,
                colour @ 90..=97 => self.colour = Some(colour - 82),
                _ => {}
            }
        }
    }
}

/// Draws a screen as tmux prints it with escapes.
pub(crate) fn draw(screen: &str, (columns, rows): (u16, u16), title: &str) -> String {
    let width = f32::from(columns) * CELL.0 + 2.0 * MARGIN.0;
    let height = f32::from(rows) * CELL.1 + MARGIN.0 + MARGIN.1;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"ui-monospace, SFMono-Regular, \
         'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"14\">\n<rect width=\"100%\" height=\"100%\" rx=\"9\" fill=\"{BACKGROUND}\"/>\n"
    );
    for (number, colour) in ["#ff5f57", "#febc2e", "#28c840"].into_iter().enumerate() {
        let x = 20 + 18 * number;
        svg.push_str(&format!("<circle cx=\"{x}\" cy=\"18\" r=\"5.5\" fill=\"{colour}\"/>\n"));
    }
    let middle = width / 2.0;
    svg.push_str(&format!(
        "<text x=\"{middle:.0}\" y=\"23\" fill=\"#8b919c\" text-anchor=\"middle\">{}</text>\n",
        escaped(title)
    ));
    for (row, line) in screen.lines().enumerate().take(usize::from(rows)) {
        draw_row(&mut svg, row, line);
    }
    svg.push_str("</svg>\n");
    svg
}

fn draw_row(svg: &mut String, row: usize, line: &str) {
    let (mut look, mut column, mut rest) = (Look::default(), 0, line);
    while !rest.is_empty() {
        if let Some(sequence) = rest.strip_prefix("\u{1b}[") {
            let end = sequence.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(sequence.len() - 1);
            if sequence[end..].starts_with('m') {
                look.take(&sequence[..end]);
            }
            rest = &sequence[end + 1..];
            continue;
        }
        let end = rest.find('\u{1b}').unwrap_or(rest.len()).max(1);
        draw_run(svg, row, column, &rest[..end], &look);
        column += rest[..end].chars().count();
        rest = &rest[end..];
    }
}

fn draw_run(svg: &mut String, row: usize, column: usize, text: &str, look: &Look) {
    let (x, y) = (MARGIN.0 + column as f32 * CELL.0, MARGIN.1 + row as f32 * CELL.1);
    let width = text.chars().count() as f32 * CELL.0;
    let (mut colour, mut behind) = (look.colour.map_or(FOREGROUND, |colour| COLOURS[colour]), None);
    if look.is_reversed {
        (behind, colour) = (Some(colour), BACKGROUND);
    }
    if let Some(behind) = behind {
        let height = CELL.1;
        writeln!(svg, "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height}\" fill=\"{behind}\"/>")
            .expect("a string takes it");
    }
    if text.trim().is_empty() {
        return;
    }
    let mut style = String::new();
    for (is_so, attribute) in [
        (look.is_bold, " font-weight=\"bold\""),
        (look.is_italic, " font-style=\"italic\""),
        (look.is_underlined, " text-decoration=\"underline\""),
        (look.is_dim, " opacity=\"0.55\""),
    ] {
        if is_so {
            style.push_str(attribute);
        }
    }
    let y = y + CELL.1 * 0.75;
    let text = escaped(text);
    writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"{colour}\" textLength=\"{width:.1}\" xml:space=\"preserve\"{style}>{text}</text>"
    )
    .expect("a string takes it");
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
