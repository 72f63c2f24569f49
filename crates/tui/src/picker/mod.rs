//! The picker: where to go back to.
use retake_agent::contract::*; use retake_agent::document::RewindDocument; use retake_agent::view::View; use retake_engine::Timestamp;
use crossterm::event::KeyEvent; use ratatui::{buffer::Buffer, layout::Rect}; use crate::theme::Theme;
pub struct Picker;
#[derive(Clone, Debug, PartialEq, Eq)] pub enum Asked { Apply }
#[derive(Clone, Debug, PartialEq)] pub enum Step { Ask(Asked, Box<Command>), Close, Rewound(Box<RewindDocument>), Forked{session:String}, Summarised(Box<Summarised>) }
impl Picker {
  pub fn open() -> (Self, Vec<Step>) { (Self, vec![]) }
  pub fn is_applying(&self) -> bool { false }
  pub fn key(&mut self, _k: KeyEvent) -> Vec<Step> { vec![] }
  pub fn paste(&mut self, _t: &str) -> Vec<Step> { vec![] }
  pub fn wheel(&mut self, _l: i32) {}
  pub fn answered(&mut self, _a: Asked, _r: Result<Reply, Refusal>) -> Vec<Step> { vec![] }
  pub fn view_changed(&mut self, _v: &View) -> Vec<Step> { vec![] }
  pub fn draw(&mut self, _a: Rect, _b: &mut Buffer, _t: &Theme, _n: Timestamp) {}
}
