//! MCP servers that the client names: they are there after a cut too, or the user is told that they may not be.

use serde_json::{Value, json};

use super::world::{Client, World};

fn servers() -> Value {
    json!([{ "type": "stdio", "name": "files", "command": "/bin/true", "args": [], "env": [] }])
}

/// Two turns in a session with an MCP server, and the second is taken back.
async fn rewound(world: &World, version: u64) -> (Client, String, Value) {
    let mut client = world.start();
    client.initialize(version, true).await;
    let params = json!({ "cwd": world.project(), "mcpServers": servers() });
    let begun = client.ask("session/new", params).await.expect("it begins");
    let session = begun["sessionId"].as_str().expect("it has an id").to_owned();
    client.prompt(&session, "say one").await;
    client.prompt(&session, "say two").await;
    let rewound = client.rewind(&session, 0).await.expect("it goes back");
    (client, session, rewound)
}

/// What the agent says of its tools now.
async fn tools(client: &mut Client, session: &str) -> String {
    client.told.clear();
    client.prompt(session, "tools").await;
    let said = client.said().into_iter().map(|(_, _, text)| text);
    said.filter(|text| text.starts_with("tools:")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_that_drops_the_mcp_servers_gets_them_back() {
    for habits in ["air,drops_tools,close", "fork,drops_tools,close"] {
        for version in [1, 2] {
            let world = World::new(habits);
            let (mut client, session, rewound) = rewound(&world, version).await;
            assert_ne!(rewound["_meta"]["retake"]["strategy"], "transcript", "{habits} {version}: {rewound}");
            assert_eq!(rewound["_meta"]["retake"].get("warnings"), None, "{habits} {version}: {rewound}");
            assert_eq!(tools(&mut client, &session).await, "tools: files", "{habits} {version}");
            let saw = world.model_saw();
            assert_eq!(saw, ["user: say one", "agent: one", "user: tools"], "{habits} {version}");
            // The turn that was cut off is there again, with its tools.
            client.ask("_session/undo", json!({ "sessionId": session })).await.expect("the last turn is undone");
            client.ask("_session/undo", json!({ "sessionId": session })).await.expect("the rewind is undone");
            assert_eq!(tools(&mut client, &session).await, "tools: files", "{habits} {version}");
            assert!(world.model_saw().contains(&"user: say two".to_owned()), "{habits} {version}");
            client.hang_up().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nothing_brings_the_mcp_servers_back_that_is_said() {
    for habits in [
        "air,drops_tools,no_load",
        "air,drops_tools,close,unsaved_forks",
        "fork,drops_tools,close,unsaved_forks",
        "air,drops_tools",
        "fork,drops_tools",
    ] {
        let world = World::new(habits);
        let (mut client, session, rewound) = rewound(&world, 1).await;
        assert_ne!(rewound["_meta"]["retake"]["strategy"], "transcript", "{habits}: {rewound}");
        let warning = rewound["_meta"]["retake"]["warnings"][0].as_str().unwrap_or_default().to_owned();
        assert!(warning.contains("`files`"), "{habits}: {rewound}");
        assert_eq!(tools(&mut client, &session).await, "tools: ", "{habits}");
        assert_eq!(world.model_saw(), ["user: say one", "agent: one", "user: tools"], "{habits}");
        // So it is in the chat.
        client.prompt(&session, "/rewind").await;
        client.told.clear();
        client.prompt(&session, "/rewind 2").await;
        let said: String = client.said().into_iter().map(|(_, _, text)| text).collect();
        assert!(said.contains(&warning), "{habits}: {said}");
        client.hang_up().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_without_mcp_servers_is_asked_nothing_more() {
    let world = World::new("air,close");
    let mut client = world.client().await;
    let session = client.new_session().await;
    client.prompt(&session, "say one").await;
    client.prompt(&session, "say two").await;
    client.rewind(&session, 0).await.expect("it goes back");
    let asked = std::fs::read_to_string(world.path("inner/in")).expect("it was asked something");
    assert!(!asked.contains("session/close") && !asked.contains("session/load"), "{asked}");
    client.hang_up().await;
}
