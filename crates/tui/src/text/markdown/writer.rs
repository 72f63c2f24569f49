//! Events of the parser, turned into lines one after another.

use std::collections::HashSet;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Tag, TagEnd};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::table::Table;
use crate::text::wrap::{Breaks, Margin, wrap};
use crate::text::{code, width as columns};
use crate::theme::Theme;

/// How far code stands in.
const CODE_INDENT: &str = "  ";

/// A longer word after a fence is shown, because it names no language.
const MAX_LANGUAGE: usize = 20;

/// What the text is in, from the outside in.
enum Container {
    Quote,
    /// The number of the next item, if they have numbers.
    List(Option<u64>),
    /// The mark stands before the first line, spaces before the others.
    Item {
        mark: Span<'static>,
        is_drawn: bool,
        is_loose: bool,
    },
}

/// Lines as far as they are written, and what the next one is made of.
pub(super) struct Writer {
    width: usize,
    theme: Theme,
    lines: Vec<Line<'static>>,
    containers: Vec<Container>,
    styles: Vec<Style>,
    inline: Vec<Span<'static>>,
    /// Where a link's text begins in `inline`, and its address.
    links: Vec<(usize, String)>,
    /// The addresses that were shown.
    addresses: HashSet<String>,
    /// Language and text of the code that is being read.
    code: Option<(String, String)>,
    table: Option<Table>,
    /// Whether an empty line stands before the next block.
    gap: bool,
}

impl Writer {
    pub(super) fn new(width: u16, theme: Theme) -> Self {
        Self {
            width: usize::from(width).max(4),
            theme,
            lines: Vec::new(),
            containers: Vec::new(),
            styles: Vec::new(),
            inline: Vec::new(),
            links: Vec::new(),
            addresses: HashSet::new(),
            code: None,
            table: None,
            gap: false,
        }
    }

    pub(super) fn finish(mut self) -> Vec<Line<'static>> {
        self.flush();
        self.lines
    }

    pub(super) fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.push(&text, Style::new()),
            },
            Event::Code(text) => self.inline_code(&text),
            Event::Html(html) => {
                self.push(html.trim_end_matches('\n'), self.theme.dim());
                self.flush();
            }
            Event::InlineHtml(html) => self.push(&html, self.theme.dim()),
            // Models break lines where they mean it; to join them would run lists of names together.
            Event::SoftBreak | Event::HardBreak => self.flush(),
            Event::Rule => {
                self.block();
                let room = self.width.saturating_sub(self.margin_width());
                self.push(&"─".repeat(room.clamp(1, 40)), self.theme.dim());
                self.flush();
                self.gap = true;
            }
            Event::TaskListMarker(true) => self.push("[x] ", self.theme.added()),
            Event::TaskListMarker(false) => self.push("[ ] ", self.theme.dim()),
            // Not asked for from the parser.
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                self.push(&text, Style::new());
            }
        }
    }

    /// Definitions of links stand in no paragraph; what nobody refers to would not be seen otherwise.
    pub(super) fn definitions(&mut self, definitions: impl Iterator<Item = (String, String)>) {
        self.flush();
        let addresses = std::mem::take(&mut self.addresses);
        for (label, address) in definitions.filter(|(_, address)| !addresses.contains(address)) {
            self.block();
            self.push(&format!("[{label}]: {address}"), self.theme.dim());
            self.flush();
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => {
                if let Some(Container::Item { is_loose, .. }) = self.containers.last_mut() {
                    *is_loose = true;
                }
                self.block();
            }
            Tag::Heading { level, .. } => {
                self.block();
                let bold = self.theme.bold();
                self.styles.push(if level == HeadingLevel::H1 { bold.patch(self.theme.underlined()) } else { bold });
            }
            Tag::BlockQuote(_) => {
                self.block();
                self.containers.push(Container::Quote);
            }
            Tag::CodeBlock(kind) => {
                self.block();
                self.start_code(&kind);
            }
            Tag::List(first) => {
                self.block();
                self.containers.push(Container::List(first));
            }
            Tag::Item => self.start_item(),
            Tag::Table(alignments) => {
                self.block();
                self.table = Some(Table::new(alignments));
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            Tag::TableCell => self.inline.clear(),
            Tag::HtmlBlock => self.block(),
            Tag::Emphasis => self.styles.push(self.theme.italic()),
            Tag::Strong => self.styles.push(self.theme.bold()),
            Tag::Strikethrough => self.styles.push(self.theme.struck()),
            Tag::Link { dest_url, title, .. } => {
                self.links.push((self.inline.len(), address(&dest_url, &title)));
                self.styles.push(self.theme.underlined());
            }
            Tag::Image { dest_url, title, .. } => {
                self.push("image: ", self.theme.dim());
                self.links.push((self.inline.len(), address(&dest_url, &title)));
                self.styles.push(Style::new());
            }
            // Not asked for from the parser.
            _ => self.block(),
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => {
                self.flush();
                self.gap = true;
            }
            TagEnd::Heading(_) => {
                self.flush();
                self.styles.pop();
                self.gap = true;
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.containers.pop();
                self.gap = true;
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.containers.pop();
                self.gap |= !self.containers.iter().any(|one| matches!(one, Container::Item { .. }));
            }
            TagEnd::Item => self.end_item(),
            TagEnd::Table => self.end_table(),
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.inline);
                if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::TableHead | TagEnd::TableRow => {}
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => self.end_link(),
            _ => self.flush(),
        }
    }

    fn start_item(&mut self) {
        // What stands before a mark belongs to the item before.
        self.block();
        let mark = match self.containers.last_mut() {
            Some(Container::List(Some(number))) => {
                *number += 1;
                format!("{}. ", *number - 1)
            }
            _ => "- ".to_owned(),
        };
        let mark = Span::styled(mark, self.theme.dim());
        self.containers.push(Container::Item { mark, is_drawn: false, is_loose: false });
    }

    fn end_item(&mut self) {
        self.flush();
        if matches!(self.containers.last(), Some(Container::Item { is_drawn: false, .. })) {
            self.write(&Line::default(), Breaks::Words);
        }
        self.gap = matches!(self.containers.pop(), Some(Container::Item { is_loose: true, .. }));
    }

    fn start_code(&mut self, kind: &CodeBlockKind<'_>) {
        let info = match kind {
            CodeBlockKind::Fenced(info) => info.trim(),
            CodeBlockKind::Indented => "",
        };
        let is_language = |c: char| c.is_ascii_alphanumeric() || "+-#_".contains(c);
        if !info.chars().all(is_language) || info.len() > MAX_LANGUAGE {
            let spans = vec![Span::raw(CODE_INDENT), Span::styled(info.to_owned(), self.theme.dim())];
            self.write_indented(&Line::from(spans), Breaks::Words);
        }
        self.code = Some((language(info), String::new()));
    }

    fn end_code(&mut self) {
        let Some((language, text)) = self.code.take() else { return };
        for line in code::lines(&text, &language, &self.theme) {
            let mut spans = vec![Span::raw(CODE_INDENT)];
            if !line.spans.is_empty() {
                spans.extend(line.spans);
            }
            self.write_indented(&Line::from(spans), Breaks::Anywhere);
        }
        self.gap = true;
    }

    fn end_table(&mut self) {
        let Some(table) = self.table.take() else { return };
        let room = self.width.saturating_sub(self.margin_width()).max(self.width / 2);
        for line in table.lines(room, self.theme) {
            self.write(&line, Breaks::Anywhere);
        }
        self.gap = true;
    }

    fn end_link(&mut self) {
        self.styles.pop();
        let Some((start, address)) = self.links.pop() else { return };
        let shown: String = self.inline.iter().skip(start).map(|span| span.content.as_ref()).collect();
        if shown.is_empty() {
            self.push(&address, self.theme.dim());
        } else if shown != address && address.strip_prefix("mailto:") != Some(&shown) {
            self.push(&format!(" ({address})"), self.theme.dim());
        }
        self.addresses.insert(address);
    }

    fn inline_code(&mut self, text: &str) {
        // Without colours only the marks tell.
        match self.theme.has_colours() {
            true => self.push(text, self.theme.accent()),
            false => self.push(&format!("`{text}`"), Style::new()),
        }
    }

    fn push(&mut self, text: &str, style: Style) {
        let style = self.styles.iter().fold(Style::new(), |all, one| all.patch(*one)).patch(style);
        self.inline.push(Span::styled(text.to_owned(), style));
    }

    /// A block begins: what was being written is finished, and the gap before it drawn.
    fn block(&mut self) {
        self.flush();
        if std::mem::take(&mut self.gap) && !self.lines.is_empty() {
            let spans = self.margin_without_marks();
            let is_bare = spans.iter().all(|span| span.content.trim().is_empty());
            self.lines.push(if is_bare { Line::default() } else { Line::from(spans) });
        }
    }

    fn flush(&mut self) {
        if !self.inline.is_empty() {
            let line = Line::from(std::mem::take(&mut self.inline));
            self.write(&line, Breaks::Words);
        }
    }

    fn write(&mut self, line: &Line<'_>, breaks: Breaks) {
        let next = self.margin_without_marks();
        let margin = Margin { first: self.margin(), next };
        self.lines.extend(wrap(line, self.width, &margin, breaks));
    }

    /// Writes a line of code: what does not fit goes on below its first column.
    fn write_indented(&mut self, line: &Line<'_>, breaks: Breaks) {
        let mut next = self.margin_without_marks();
        next.push(Span::raw(CODE_INDENT));
        let margin = Margin { first: self.margin(), next };
        self.lines.extend(wrap(line, self.width, &margin, breaks));
    }

    fn margin_width(&self) -> usize {
        self.margin_without_marks().iter().map(|span| columns(&span.content)).sum()
    }

    fn margin_without_marks(&self) -> Vec<Span<'static>> {
        let span = |container: &Container| match container {
            Container::Quote => Some(Span::styled("│ ", self.theme.dim())),
            Container::List(_) => None,
            Container::Item { mark, .. } => Some(Span::raw(" ".repeat(columns(&mark.content)))),
        };
        self.containers.iter().filter_map(span).collect()
    }

    /// What stands before the next line: marks that were not drawn yet are drawn now.
    fn margin(&mut self) -> Vec<Span<'static>> {
        let mut spans = self.margin_without_marks();
        let shown = self.containers.iter_mut().filter(|one| !matches!(one, Container::List(_)));
        for (container, span) in shown.zip(&mut spans) {
            if let Container::Item { mark, is_drawn: is_drawn @ false, .. } = container {
                *is_drawn = true;
                *span = mark.clone();
            }
        }
        spans
    }
}

/// The language that the words after a fence mean: `rust,ignore`, `src/main.rs`, `12:40:src/main.rs`.
fn language(info: &str) -> String {
    let first = info.split([' ', ',', '{']).next().unwrap_or_default();
    let name = match first.rsplit_once('.') {
        Some((_, extension)) => extension,
        None => first.split(':').next().unwrap_or_default(),
    };
    name.to_owned()
}

/// Where a link leads, with the words that a browser would show beside it.
pub(super) fn address(url: &str, title: &str) -> String {
    if title.is_empty() { url.to_owned() } else { format!("{url} {title}") }
}
