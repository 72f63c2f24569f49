//! `todo`: the list of what is to be done, kept by the model, seen by the user.
//!
//! The list lives in the results of these calls alone, so it goes back with the conversation.

use retake_engine::session::entry::{Todo, TodoState};

use super::arguments::{ArgumentKind, Arguments, required};
use super::run::answering;
use super::toolbox::{Tool, ToolContext};
use super::{Access, Output, Prepared, counted};

const MAX_ITEMS: usize = 100;

pub(crate) const TODO: Tool = Tool {
    name: "todo",
    description: "Sets the todo list that the user sees beside the conversation. Each call replaces the whole list, so give all items each \
time, in order.\n\nUse it for work of three or more steps: write the list before you begin, keep exactly one item `active` while you work on \
it, and set an item `done` as soon as it is done, not in batches. Leave it out for a single, simple step or a question. An empty list \
removes it. At most 100 items.",
    arguments: &[required(
        "items",
        ArgumentKind::List(&[
            required("text", ArgumentKind::Text, "What is to be done, in a few words."),
            required("state", ArgumentKind::Choice(&["pending", "active", "done"]), "How far it is."),
        ]),
        "The whole list, in order.",
    )],
    prepare,
};

fn prepare(_: &ToolContext, arguments: &Arguments) -> Result<Prepared, Output> {
    let items = arguments.list("items");
    if items.len() > MAX_ITEMS {
        return Err(Output::failed(format!("A list has at most {MAX_ITEMS} items; this one has {}.", items.len())));
    }
    let todos: Vec<Todo> = items.iter().map(item).collect();
    let done = todos.iter().filter(|todo| todo.state == TodoState::Done).count();
    let text = match todos.len() {
        0 => "The todo list is empty now.".to_owned(),
        all => format!("The todo list has {}, {done} done.", counted(all, "item")),
    };
    let output = Output { todos: Some(todos), ..Output::done(text) };
    Ok(Prepared::new(format!("todo: {done}/{} done", items.len()), Access::Reads, answering(output)))
}

fn item(item: &Arguments) -> Todo {
    let state = match item.text("state") {
        "active" => TodoState::Active,
        "done" => TodoState::Done,
        _ => TodoState::Pending,
    };
    Todo { text: item.text("text").to_owned(), state }
}
