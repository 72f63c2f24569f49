//! The conversation as it is drawn.
use retake_agent::view::View; use ratatui::{buffer::Buffer, layout::Rect}; use crate::theme::Theme;
pub struct Transcript;
impl Transcript {
  pub fn new() -> Self { Self } pub fn scroll(&mut self, _l: i32) {} pub fn page(&mut self, _l: i32) {} pub fn to_top(&mut self) {} pub fn to_bottom(&mut self) {}
  pub fn is_at_bottom(&self) -> bool { true } pub fn toggle_all(&mut self) {} pub fn click(&mut self, _r: u16) -> bool { false }
  pub fn draw(&mut self, _v: &View, _a: Rect, _b: &mut Buffer, _t: &Theme) {}
}
