//! Installing and removing hooks in configurations of every kind.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use retake_native::{Agent, Places, Program, Setup, SetupError, Status};
use tempfile::TempDir;

struct Home {
    scratch: TempDir,
    places: Places,
    receipts: PathBuf,
}

impl Home {
    fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let home = scratch.path().join("home");
        fs::create_dir(&home).unwrap();
        let places = Places::new([("HOME".into(), home.into_os_string())]).unwrap();
        let receipts = scratch.path().join("retake/hooks");
        Self { scratch, places, receipts }
    }

    fn setup<'a>(&'a self, agent: Agent, program: &'a Program) -> Setup<'a> {
        Setup { agent, places: &self.places, program, receipts: &self.receipts }
    }

    fn file(&self, path: &str) -> PathBuf {
        self.places.home().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.file(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.file(path)).unwrap()
    }

    /// Every file and directory of the home, with its content.
    fn tree(&self) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        fn walk(folder: &Path, tree: &mut BTreeMap<PathBuf, Option<Vec<u8>>>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    tree.insert(path.clone(), None);
                    walk(&path, tree);
                } else {
                    tree.insert(path.clone(), Some(fs::read(&path).unwrap()));
                }
            }
        }
        let mut tree = BTreeMap::new();
        walk(self.places.home(), &mut tree);
        tree
    }
}

/// Configurations as people have them, each a file of the agent's.
const CONFIGURATIONS: &[(Agent, &str, &str)] = &[
    (Agent::Claude, ".claude/settings.json", "{}"),
    (Agent::Claude, ".claude/settings.json", ""),
    (Agent::Claude, ".claude/settings.json", " \n\n"),
    (Agent::Claude, ".claude/settings.json", "// only words\n"),
    (Agent::Claude, ".claude/settings.json", "{ }\n"),
    (Agent::Claude, ".claude/settings.json", "{\r\n\t\"model\": \"opus\", // best\r\n}\r\n"),
    (Agent::Claude, ".claude/settings.json", "\u{feff}{\"model\":\"opus\"}"),
    (Agent::Claude, ".claude/settings.json", "{\"hooks\": {}}"),
    (Agent::Claude, ".claude/settings.json", "{\"hooks\": {\"Stop\": []}, \"model\": 1.0e3}"),
    (
        Agent::Claude,
        ".claude/settings.json",
        "{\n  // hooks of mine\n  \"hooks\": {\n    \"PreToolUse\": [\n      { \"matcher\": \"Bash\", \"hooks\": [{\"type\": \"command\", \"command\": \"mine.sh\"}] }, // why\n      /* and */\n    ],\n  },\n  \"z\": 1, \"a\": [1,2,\n3],\n}\n",
    ),
    (
        Agent::Codex,
        ".codex/hooks.json",
        "{\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"x\"}]}]}}",
    ),
    (Agent::Gemini, ".gemini/settings.json", "{\n    \"hooks\": { \"BeforeTool\": [ ] } // end\n}"),
    (Agent::Qwen, ".qwen/settings.json", "{\"a\": \"\\u00e4 } ] // no comment\", /* c */}"),
    (Agent::Kimi, ".kimi-code/config.toml", ""),
    (Agent::Kimi, ".kimi-code/config.toml", "# mine\nmodel = 'x'"),
    (Agent::Kimi, ".kimi-code/config.toml", "a = 1\r\n\r\n[b]\r\nc = 2 # d\r\n\r\n"),
    (
        Agent::Kimi,
        ".kimi-code/config.toml",
        "[[hooks]]\nevent = \"Stop\"\ncommand = \"mine\" # yes\n\n[x.y]\nz = [1,\n2]\n",
    ),
    (Agent::Kimi, ".kimi-code/config.toml", "hooks = []\n[a]\n"),
    (Agent::Kimi, ".kimi-code/config.toml", "hooks = [{ event = \"Stop\", command = \"mine\" } , # c\n]\n"),
];

#[test]
fn removing_gives_back_every_byte_and_directory() {
    let program = Program::default();
    for agent in Agent::ALL {
        let texts = CONFIGURATIONS.iter().filter(|(of, ..)| *of == agent).map(|(_, path, text)| Some((path, text)));
        for case in texts.chain([None]) {
            let home = Home::new();
            if let Some((path, text)) = case {
                home.write(path, text);
            }
            let before = home.tree();
            let setup = home.setup(agent, &program);
            assert_eq!(setup.status().unwrap(), Status::Absent);
            setup.install().unwrap().apply().unwrap();
            assert_eq!(setup.status().unwrap(), Status::Installed, "{case:?}");
            assert!(setup.install().unwrap().is_empty(), "a second installation has nothing to do");
            setup.remove().unwrap().apply().unwrap();
            assert_eq!(home.tree(), before, "{agent} {case:?}");
            assert!(setup.remove().unwrap().is_empty());
            assert!(home.scratch.path().exists());
        }
    }
}

#[test]
fn what_the_user_has_stays_in_its_place() {
    let program = Program::default();
    for (agent, path, text) in CONFIGURATIONS {
        let home = Home::new();
        home.write(path, text);
        home.setup(*agent, &program).install().unwrap().apply().unwrap();
        let after = home.read(path);
        let mut rest = after.chars();
        assert!(text.chars().all(|wanted| rest.any(|c| c == wanted)), "{text:?} became {after:?}");
    }
}

#[test]
fn a_program_that_moved_replaces_our_entries_and_nothing_else() {
    let (old, new) = (Program::default(), Program::new("/opt/my tools/retake").unwrap());
    for (agent, path, text) in CONFIGURATIONS {
        let home = Home::new();
        home.write(path, text);
        let before = home.tree();
        home.setup(*agent, &old).install().unwrap().apply().unwrap();
        let setup = home.setup(*agent, &new);
        assert_eq!(setup.status().unwrap(), Status::Outdated);
        setup.install().unwrap().apply().unwrap();
        assert_eq!(setup.status().unwrap(), Status::Installed);
        assert!(!home.read(path).contains("command -v retake "), "no old entry is left in {path}");
        setup.remove().unwrap().apply().unwrap();
        assert_eq!(home.tree(), before, "{agent} {text:?}");
    }
}

#[test]
fn after_an_edit_by_the_user_exactly_our_entries_go() {
    let program = Program::default();
    let home = Home::new();
    let path = ".claude/settings.json";
    home.write(path, "{\n  // mine\n  \"model\": \"opus\"\n}\n");
    let setup = home.setup(Agent::Claude, &program);
    setup.install().unwrap().apply().unwrap();
    let edited = home.read(path).replace("\"opus\"", "\"sonnet\"").replacen(
        "\"Stop\": [",
        "\"Stop\": [\n      { \"hooks\": [{ \"type\": \"command\", \"command\": \"mine.sh\" }] },",
        1,
    );
    home.write(path, &edited);
    setup.remove().unwrap().apply().unwrap();
    assert_eq!(
        home.read(path),
        "{\n  // mine\n  \"model\": \"sonnet\",\n  \"hooks\": {\n    \"Stop\": [\n      { \"hooks\": [{ \"type\": \"command\", \"command\": \
         \"mine.sh\" }] }\n    ]\n  }\n}\n"
    );
    assert_eq!(setup.status().unwrap(), Status::Absent);
}

#[test]
fn without_a_receipt_our_entries_are_found() {
    let program = Program::default();
    for (agent, path, text) in CONFIGURATIONS {
        let home = Home::new();
        home.write(path, text);
        let setup = home.setup(*agent, &program);
        setup.install().unwrap().apply().unwrap();
        fs::remove_dir_all(&home.receipts).unwrap();
        setup.remove().unwrap().apply().unwrap();
        assert_eq!(setup.status().unwrap(), Status::Absent, "{text:?} became {:?}", home.read(path));
        assert!(!home.read(path).contains("retake"), "{}", home.read(path));
    }
}

#[test]
fn a_command_that_the_user_put_beside_ours_stays() {
    let program = Program::default();
    let home = Home::new();
    let path = ".claude/settings.json";
    let setup = home.setup(Agent::Claude, &program);
    setup.install().unwrap().apply().unwrap();
    let mine = "\"hooks\": [\n          { \"type\": \"command\", \"command\": \"mine.sh\" },";
    let text = home.read(path);
    let at = text.find("\"Stop\"").unwrap();
    let inner = text[at..].find("\"hooks\": [").unwrap() + at;
    let edited = format!("{}{mine}{}", &text[..inner], &text[inner + "\"hooks\": [".len()..]);
    home.write(path, &edited);
    setup.remove().unwrap().apply().unwrap();
    let left: serde_json::Value = serde_json::from_str(&home.read(path)).unwrap();
    assert_eq!(
        left,
        serde_json::json!({ "hooks": { "Stop": [{ "hooks": [{ "type": "command", "command": "mine.sh" }] }] } })
    );
}

#[test]
fn a_broken_configuration_is_refused_with_its_place() {
    let program = Program::default();
    let cases = [
        (Agent::Claude, ".claude/settings.json", "{\n  \"a\": 1\n  \"b\": 2\n}", "line 2, column 9: Expected comma"),
        (
            Agent::Claude,
            ".claude/settings.json",
            "{\"hooks\": {}, \"hooks\": {}}",
            "line 1, column 15: `hooks` stands here a second time",
        ),
        (
            Agent::Claude,
            ".claude/settings.json",
            "{\"hooks\": []}",
            "line 1, column 11: `hooks` is expected to be an object",
        ),
        (Agent::Codex, ".codex/hooks.json", "{\"hooks\": {\"Stop\": 3}}", "line 1, column 20: `Stop`"),
        (Agent::Gemini, ".gemini/settings.json", "[]", "line 1, column 1"),
        (Agent::Kimi, ".kimi-code/config.toml", "a = 1\nb = \n", "line 2"),
        (Agent::Kimi, ".kimi-code/config.toml", "[hooks]\na = 1\n", "`hooks` is expected to be an array"),
    ];
    for (agent, path, text, place) in cases {
        let home = Home::new();
        home.write(path, text);
        let before = home.tree();
        let setup = home.setup(agent, &program);
        let said = setup.install().unwrap_err().to_string();
        assert!(said.contains(place), "{said}");
        assert!(said.contains(path), "{said}");
        // Where nothing of ours can be, there is nothing to refuse.
        assert!(setup.remove().map_or(true, |plan| plan.is_empty()));
        assert_eq!(home.tree(), before);
    }
    let home = Home::new();
    fs::create_dir(home.file(".claude")).unwrap();
    fs::write(home.file(".claude/settings.json"), b"\xff").unwrap();
    assert!(matches!(home.setup(Agent::Claude, &program).install(), Err(SetupError::NotText(_))));
}

#[test]
fn a_file_of_the_users_in_the_place_of_one_of_ours_is_left_alone() {
    let program = Program::default();
    let home = Home::new();
    home.write(".copilot/hooks/retake.json", "{}");
    let setup = home.setup(Agent::Copilot, &program);
    assert!(matches!(setup.install(), Err(SetupError::Foreign(_))));
    assert!(matches!(setup.remove(), Err(SetupError::Foreign(_))));
    assert_eq!(home.read(".copilot/hooks/retake.json"), "{}");
}

#[test]
fn a_configuration_that_changed_since_the_plan_is_not_written() {
    let program = Program::default();
    let home = Home::new();
    home.write(".claude/settings.json", "{}");
    let plan = home.setup(Agent::Claude, &program).install().unwrap();
    home.write(".claude/settings.json", "{\"model\":\"opus\"}");
    let before = home.tree();
    plan.apply().unwrap_err();
    assert_eq!(home.tree(), before);
    assert!(!home.receipts.exists());
}

/// JSON values as text, with the liberties that comments and trailing commas give.
fn json_text() -> impl Strategy<Value = String> {
    let blank = prop_oneof![
        4 => Just(String::new()),
        2 => "[ \t]{1,3}",
        2 => Just("\n".to_owned()),
        1 => Just("\r\n  ".to_owned()),
        1 => "// [a-z,\\]}\"]{0,5}\n",
        1 => "/\\*[a-z,\n\\]}\"]{0,5}\\*/",
    ];
    let leaf = prop_oneof![
        Just("null".to_owned()),
        "-?[1-9][0-9]{0,3}(\\.[0-9]{1,2})?",
        "\"[a-z/*,ä\\]}]{0,6}\"",
        Just("[]".to_owned()),
        Just("{}".to_owned()),
    ];
    let command = "\\{ \"hooks\": \\[ \\{\"command\": \"[a-z. ]{1,8}\"\\},? ?\\] \\}";
    let list = |item: BoxedStrategy<String>, blank: BoxedStrategy<String>| {
        (prop::collection::vec((blank.clone(), item, blank.clone()), 0..4), any::<bool>(), blank).prop_map(
            |(items, has_comma, end)| {
                let count = items.len();
                let mut text = String::new();
                for (index, (before, item, after)) in items.into_iter().enumerate() {
                    text.push_str(&format!("{before}{item}{after}"));
                    if index + 1 < count || has_comma {
                        text.push(',');
                    }
                }
                text + &end
            },
        )
    };
    let blank = blank.boxed();
    let event = prop_oneof![Just("Stop"), Just("PreToolUse"), Just("Other")];
    let array = list(prop_oneof![leaf.clone(), command].boxed(), blank.clone()).prop_map(|items| format!("[{items}]"));
    let member = (event, blank.clone(), array).prop_map(|(event, blank, array)| format!("\"{event}\"{blank}: {array}"));
    let hooks = list(member.boxed(), blank.clone()).prop_map(|members| format!("\"hooks\": {{{members}}}"));
    let other = ("[a-z]{1,4}", leaf).prop_map(|(key, value)| format!("\"{key}\": {value}"));
    let root = list(prop_oneof![3 => other, 1 => hooks].boxed(), blank.clone());
    (blank.clone(), root, blank).prop_map(|(before, members, after)| format!("{before}{{{members}}}{after}"))
}

fn toml_text() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        Just(String::new()),
        "# [a-z\\]\"]{0,6}",
        "[a-z]{3} = [0-9]{1,3} ?(# [a-z]{0,4})?"
            .prop_filter("digits without a leading zero", |line| !line.contains("= 0")),
    ];
    let hook = "\\[\\[hooks\\]\\] ?(# [a-z]{0,3})?\nevent = \"Stop\"\n\n?command = '[a-z ]{1,5}' ?(# c)?";
    let end = prop_oneof![Just("\n"), Just("\r\n")];
    let parts = prop::collection::vec(prop_oneof![4 => line.boxed(), 1 => hook.prop_map(|text| text).boxed()], 0..8);
    (parts, end, any::<bool>()).prop_map(|(parts, end, has_end)| {
        let text = parts.join("\n") + if has_end { "\n" } else { "" };
        text.replace('\n', end)
    })
}

fn goes_and_comes_back(agent: Agent, path: &str, text: &str) -> Result<(), TestCaseError> {
    let program = Program::default();
    let home = Home::new();
    home.write(path, text);
    let before = home.tree();
    let setup = home.setup(agent, &program);
    let Ok(plan) = setup.install() else { return Ok(()) };
    plan.apply().unwrap();
    prop_assert_eq!(setup.status().unwrap(), Status::Installed, "{:?}", home.read(path));
    // Without the receipt only the meaning comes back.
    let receipt = home.receipts.join(format!("{agent}.json"));
    let kept = fs::read(&receipt).unwrap();
    fs::remove_file(&receipt).unwrap();
    if !matches!(setup.remove(), Err(SetupError::Foreign(_))) {
        let plan = setup.remove().unwrap();
        let edit = plan.edits.iter().find(|edit| edit.path.ends_with(path)).unwrap();
        let after = String::from_utf8(edit.after.clone().unwrap()).unwrap();
        prop_assert!(!after.contains("retake hook"), "{}", after);
    }
    fs::write(&receipt, kept).unwrap();
    setup.remove().unwrap().apply().unwrap();
    prop_assert_eq!(home.tree(), before);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: retake_testkit::cases(48), ..ProptestConfig::default() })]

    #[test]
    fn any_json_configuration_comes_back_byte_for_byte(text in json_text()) {
        goes_and_comes_back(Agent::Claude, ".claude/settings.json", &text)?;
    }

    #[test]
    fn any_toml_configuration_comes_back_byte_for_byte(text in toml_text()) {
        goes_and_comes_back(Agent::Kimi, ".kimi-code/config.toml", &text)?;
    }

    #[test]
    fn no_configuration_makes_it_panic(json in "[\\[\\]{},:\"/*a\n\u{feff}ä hoks1-]{0,40}", toml in "[\\[\\]{},=\"'#a\n\rä hoks1.-]{0,40}") {
        for (agent, path, text) in [(Agent::Codex, ".codex/hooks.json", &json), (Agent::Kimi, ".kimi-code/config.toml", &toml)] {
            goes_and_comes_back(agent, path, text)?;
        }
    }
}
