//! The toolbox as the model sees it.

use serde_json::json;

use super::bench::Bench;

#[tokio::test]
async fn every_tool_has_a_strict_schema_and_the_order_never_changes() {
    let bench = Bench::new();
    let specs = bench.toolbox.specs();
    let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
    let wanted = "read_file write_file edit_file multi_edit move_file delete_file list_dir glob grep bash job_output job_end todo";
    assert_eq!(names.join(" "), wanted);
    for spec in &specs {
        assert_eq!(spec.schema["additionalProperties"], json!(false), "{}", spec.name);
        assert!(spec.description.len() > 100, "{}", spec.name);
    }
    assert_eq!(specs, bench.toolbox.specs());
}

#[tokio::test]
async fn an_unknown_tool_is_answered_with_those_there_are() {
    let told = Bench::new().failed("shell", json!({})).await;
    assert!(told.contains("no tool `shell`") && told.contains("`bash`"), "{told}");
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_answered_with_those_that_do() {
    let bench = Bench::new();
    let told = bench.failed("read_file", json!({ "file": "a" })).await;
    assert!(
        told.contains("`path` is missing") && told.contains("`offset` (integer of at least 1, optional)"),
        "{told}"
    );
    let told = bench.toolbox.prepare("edit_file", "{\"path\": \"a\"").err().unwrap().text();
    assert!(told.contains("not valid JSON") && told.contains("`replace_all`"), "{told}");
}

#[tokio::test]
async fn the_todo_list_is_replaced_as_a_whole() {
    let bench = Bench::new();
    let items = json!([{ "text": "one", "state": "done" }, { "text": "two", "state": "active" }]);
    let output = bench.call("todo", json!({ "items": items })).await;
    let todos = output.todos.unwrap();
    assert_eq!(serde_json::to_value(&todos).unwrap(), items);
    assert!(
        bench
            .failed("todo", json!({ "items": [{ "text": "x", "state": "later" }] }))
            .await
            .contains("one of pending, active, done")
    );
}
