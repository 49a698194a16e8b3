//! The registry at its door: names, switches, hot plug.

use async_trait::async_trait;
use fimble_toolkit::{Call, ErrorKind, Parameter, Risk};
use serde_json::{Value, json};

use super::*;

/// A toolkit that declares what it is told.
struct Declared(Declaration);

#[async_trait]
impl Toolkit for Declared {
    fn declaration(&self) -> Declaration {
        self.0.clone()
    }

    async fn call(&self, _: Call) -> Result<Value, ToolError> {
        Ok(Value::Null)
    }
}

fn operation(name: &str) -> Operation {
    Operation {
        name: name.into(),
        description: format!("Does {name}."),
        parameters: Vec::new(),
        returns: json!(true),
        risk: Risk::Read,
        idempotent: true,
        timeout: None,
        enabled: true,
        paging: None,
    }
}

fn declaration(name: &str, operations: &[&str]) -> Declaration {
    let operations = operations.iter().map(|name| operation(name)).collect();
    Declaration { name: name.into(), description: "A toolkit.".into(), operations }
}

fn registry(toolkits: &[(&str, &[&str])]) -> Registry {
    let registry = Registry::new();
    for (name, operations) in toolkits {
        registry.register(Arc::new(Declared(declaration(name, operations)))).unwrap();
    }
    registry
}

fn not_found(registry: &Registry, toolkit: &str, operation: &str) -> String {
    let Err(error) = registry.find(toolkit, operation) else { panic!("{toolkit}.{operation} was found") };
    error.to_string()
}

#[test]
fn declarations_hold_what_is_on_in_registration_order() {
    let registry = registry(&[("b_toolkit", &["one"]), ("a_toolkit", &["two"]), ("c_toolkit", &[])]);
    let mut half_off = declaration("d_toolkit", &["shown", "hidden"]);
    half_off.operations[1].enabled = false;
    registry.register(Arc::new(Declared(half_off))).unwrap();
    assert!(registry.set_enabled("a_toolkit", false));
    assert_eq!(
        registry.declarations(),
        [declaration("b_toolkit", &["one"]), declaration("c_toolkit", &[]), declaration("d_toolkit", &["shown"])]
    );
    assert!(registry.set_enabled("a_toolkit", true));
    assert!(registry.remove("b_toolkit"));
    let names: Vec<String> = registry.declarations().into_iter().map(|declaration| declaration.name).collect();
    assert_eq!(names, ["a_toolkit", "c_toolkit", "d_toolkit"]);
    assert!(!registry.remove("b_toolkit"));
    assert!(!registry.set_enabled("b_toolkit", true));
}

#[test]
fn what_a_program_could_not_name_is_refused() {
    let mut twice = declaration("ok", &["one"]);
    let parameter =
        Parameter { name: "x".into(), description: String::new(), schema: json!(true), required: true, default: None };
    twice.operations[0].parameters = vec![parameter.clone(), parameter.clone()];
    let mut keyword = declaration("ok", &["one"]);
    keyword.operations[0].parameters = vec![Parameter { name: "class".into(), ..parameter }];
    for (declaration, message) in [
        (declaration("taken", &[]), "there is already a toolkit `taken`"),
        (declaration("two words", &[]), "`two words`, the name of a toolkit, is no Python name"),
        (declaration("import", &[]), "`import`, the name of a toolkit, is no Python name"),
        (declaration("", &[]), "``, the name of a toolkit, is no Python name"),
        (declaration("ok", &["one", "2nd"]), "`2nd`, the name of operation 2 of ok, is no Python name"),
        (declaration("ok", &["one", "two", "one"]), "ok declares `one` twice"),
        (twice, "ok.one declares `x` twice"),
        (keyword, "`class`, the name of parameter 1 of ok.one, is no Python name"),
    ] {
        let registry = registry(&[("taken", &[])]);
        let error = registry.register(Arc::new(Declared(declaration))).unwrap_err();
        assert_eq!(error.to_string(), message);
        assert_eq!(registry.names(), [("taken".to_owned(), true)]);
    }
}

#[test]
fn a_call_finds_its_toolkit_and_operation() {
    let registry = registry(&[("git_toolkit", &["log", "diff"])]);
    let (toolkit, found) = registry.find("git_toolkit", "diff").unwrap();
    assert_eq!((toolkit.declaration().name.as_str(), found), ("git_toolkit", operation("diff")));
}

#[test]
fn a_call_that_means_nothing_is_told_what_there_is() {
    let registry = registry(&[("git_toolkit", &["log", "diff"]), ("host_toolkit", &["memory"])]);
    assert_eq!(
        not_found(&registry, "git_tools", "log"),
        r#"there is no toolkit "git_tools"; toolkits: git_toolkit, host_toolkit (hint: did you mean "git_toolkit"?)"#
    );
    assert_eq!(
        not_found(&registry, "system", "memory"),
        r#"there is no toolkit "system"; toolkits: git_toolkit, host_toolkit (hint: host_toolkit has memory())"#
    );
    assert_eq!(
        not_found(&registry, "git_toolkit", "logs"),
        r#"git_toolkit has no operation "logs"; operations: log, diff (hint: did you mean "log"?)"#
    );
    assert_eq!(
        not_found(&registry, "git_toolkit", "memory"),
        r#"git_toolkit has no operation "memory"; operations: log, diff (hint: host_toolkit has memory())"#
    );
    assert_eq!(
        not_found(&registry, "git_toolkit", "quit"),
        r#"git_toolkit has no operation "quit"; operations: log, diff"#
    );
    assert_eq!(not_found(&Registry::new(), "x", "y"), r#"there is no toolkit "x"; there are no toolkits"#);
}

#[test]
fn long_lists_are_cut_to_the_nearest() {
    let names: Vec<String> = (0..40).map(|number| format!("operation_{number:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let message = not_found(&registry(&[("t", &names)]), "t", "operation_3");
    assert!(message.contains("and 28 more"), "{message}");
    let long = "é".repeat(100_000);
    assert!(not_found(&registry(&[("t", &names)]), "t", &long).len() < 500);
}

#[test]
fn what_is_switched_off_is_denied() {
    let registry = registry(&[("git_toolkit", &["log"])]);
    let mut off = declaration("host_toolkit", &["reboot"]);
    off.operations[0].enabled = false;
    registry.register(Arc::new(Declared(off))).unwrap();
    registry.set_enabled("git_toolkit", false);
    for (toolkit, operation, message) in [
        ("git_toolkit", "log", "git_toolkit is switched off"),
        ("host_toolkit", "reboot", "host_toolkit.reboot() is switched off"),
    ] {
        let Err(error) = registry.find(toolkit, operation) else { panic!("{message}") };
        assert_eq!(error, ToolError::new(ErrorKind::Denied, message).with_hint("do it another way, or tell the user"));
    }
}

#[test]
fn what_is_outside_of_a_scope_reads_as_if_it_were_not_there() {
    let all =
        registry(&[("git_toolkit", &["log", "show"]), ("host_toolkit", &["cpu", "reboot"]), ("empty_toolkit", &[])]);
    let view = View { only: vec!["git_toolkit".into(), "empty_toolkit".into()], without: vec!["*.show".into()] };
    let scope = Scope::of([view]);
    let less = registry(&[("git_toolkit", &["log"]), ("empty_toolkit", &[])]);
    assert_eq!(*all.declarations_in(&scope), less.declarations());
    for (toolkit, operation) in [
        ("git_toolkit", "show"),
        ("host_toolkit", "cpu"),
        ("host_toolkit", "log"),
        ("hosts", "reboot"),
        ("git_toolkit", "cpu"),
        ("empty_toolkit", "show"),
    ] {
        let Err(hidden) = all.find_in(&scope, toolkit, operation) else { panic!("{toolkit}.{operation} was found") };
        assert_eq!(hidden.to_string(), not_found(&less, toolkit, operation));
    }
    assert!(all.find_in(&scope, "git_toolkit", "log").is_ok());
    // Nor does a switch tell what is outside.
    all.set_enabled("host_toolkit", false);
    let Err(hidden) = all.find_in(&scope, "host_toolkit", "cpu") else { panic!("it was found") };
    assert_eq!(hidden.to_string(), not_found(&less, "host_toolkit", "cpu"));
}

#[test]
fn operations_and_kinds_of_toolkits_have_switches() {
    let registry = registry(&[("git_toolkit", &["log", "show"])]);
    registry.register_from(Origin::Dynamic, Arc::new(Declared(declaration("mcp_toolkit", &["tool"])))).unwrap();
    let shown = || -> Vec<String> {
        let declarations = registry.declarations();
        let names =
            declarations.iter().flat_map(|one| one.operations.iter().map(|two| format!("{}.{}", one.name, two.name)));
        names.collect()
    };
    assert!(registry.set_operation_enabled("git_toolkit", "show", false));
    assert!(!registry.set_operation_enabled("none", "show", false));
    assert_eq!(shown(), ["git_toolkit.log", "mcp_toolkit.tool"]);
    assert_eq!(
        not_found(&registry, "git_toolkit", "show"),
        "git_toolkit.show() is switched off (hint: do it another way, or tell the user)"
    );
    registry.replace(Arc::new(Declared(declaration("git_toolkit", &["show", "blame"])))).unwrap();
    assert_eq!(shown(), ["git_toolkit.blame", "mcp_toolkit.tool"]);
    registry.set_operation_enabled("git_toolkit", "show", true);
    registry.set_origin_enabled(Origin::Dynamic, false);
    registry.register_from(Origin::Dynamic, Arc::new(Declared(declaration("later_toolkit", &["tool"])))).unwrap();
    assert_eq!(shown(), ["git_toolkit.show", "git_toolkit.blame"]);
    registry.set_origin_enabled(Origin::Dynamic, true);
    registry.set_origin_enabled(Origin::Declared, false);
    assert_eq!(shown(), ["mcp_toolkit.tool", "later_toolkit.tool"]);
}

#[test]
fn a_refreshed_toolkit_shows_its_new_operations() {
    struct Changing(std::sync::Mutex<Declaration>);
    #[async_trait]
    impl Toolkit for Changing {
        fn declaration(&self) -> Declaration {
            self.0.lock().unwrap().clone()
        }
        async fn call(&self, _: Call) -> Result<Value, ToolError> {
            Ok(Value::Null)
        }
    }
    let changing = Arc::new(Changing(std::sync::Mutex::new(declaration("remote", &["old"]))));
    let registry = registry(&[]);
    registry.register(Arc::clone(&changing) as Arc<dyn Toolkit>).unwrap();
    *changing.0.lock().unwrap() = declaration("remote", &["new"]);
    assert_eq!(registry.declarations(), [declaration("remote", &["old"])]);
    registry.refresh("remote").unwrap();
    assert_eq!(registry.declarations(), [declaration("remote", &["new"])]);
    *changing.0.lock().unwrap() = declaration("remote", &["new", "new"]);
    let twice = RegistryError::Duplicate { within: "remote".into(), name: "new".into() };
    assert_eq!(registry.refresh("remote"), Err(twice));
    assert_eq!(registry.declarations(), [declaration("remote", &["new"])]);
    assert_eq!(registry.refresh("gone"), Err(RegistryError::Unknown("gone".into())));
}

#[test]
fn toolkits_come_and_go_while_calls_are_routed() {
    let registry = registry(&[("stays", &["one"])]);
    std::thread::scope(|scope| {
        for number in 0..4 {
            let registry = &registry;
            scope.spawn(move || {
                let name = format!("toolkit_{number}");
                for _ in 0..200 {
                    registry.register(Arc::new(Declared(declaration(&name, &["one"])))).unwrap();
                    assert!(registry.find(&name, "one").is_ok() && registry.find("stays", "one").is_ok());
                    assert!(registry.remove(&name));
                }
            });
        }
    });
    assert_eq!(registry.names(), [("stays".to_owned(), true)]);
}

#[test]
fn the_shipped_toolkits_can_be_registered_and_bound() {
    let registry = Registry::new();
    registry.register(Arc::new(fimble_git::Git::new(".".into()))).unwrap();
    registry.register(Arc::new(fimble_host::Host::new())).unwrap();
    registry.register(Arc::new(fimble_files::Files::new(vec![".".into()], fimble_files::Limits::default()))).unwrap();
    let refused = |toolkit: &str, name: &str, keyword: Value| {
        let (_, operation) = registry.find(toolkit, name).unwrap();
        let Value::Object(keyword) = keyword else { panic!("a map") };
        bind_call(&format!("{toolkit}.{name}"), &operation, Vec::new(), keyword).unwrap_err().to_string()
    };
    assert_eq!(
        refused("git_toolkit", "log", json!({"count": 5})),
        "git_toolkit.log() got an unexpected argument \"count\"; parameters: limit: int = 20, path: str | None = None, \
         author: str | None = None, since: str | None = None, until: str | None = None, branch: str | None = None, \
         repository: str | None = None (hint: did you mean \"limit\"?)"
    );
    assert_eq!(
        refused("git_toolkit", "diff", json!({"from": "v1"})),
        "git_toolkit.diff() got an unexpected argument \"from\"; parameters: from_revision: str = \"HEAD\", \
         to_revision: str | None = None, path: str | None = None, repository: str | None = None \
         (hint: did you mean \"from_revision\"?)"
    );
    assert_eq!(
        refused("host_toolkit", "processes", json!({"sort_by": "mem"})),
        "host_toolkit.processes() argument \"sort_by\" must be one of \"cpu\", \"memory\", not \"mem\"; \
         parameters: limit: int = 10, sort_by: Literal[\"cpu\", \"memory\"] = \"cpu\", name: str | None = None \
         (hint: did you mean \"memory\"?)"
    );
    assert_eq!(
        refused("files_toolkit", "read", json!({"file": "a"})),
        "files_toolkit.read() got an unexpected argument \"file\"; parameters: path: str, start_line: int = 1, \
         end_line: int | None = None (hint: did you mean \"path\"?)"
    );
    assert_eq!(
        refused("files_toolkit", "search", json!({"pattern": "x", "limit": "5"})),
        "files_toolkit.search() argument \"limit\" must be int, not str \"5\"; parameters: pattern: str, \
         path: str = \".\", glob: str | None = None, limit: int = 200, ignore_case: bool = False \
         (hint: write 5 without quotes)"
    );
}

/// A toolkit whose operations change.
struct Growing(std::sync::Mutex<Vec<&'static str>>);

#[async_trait]
impl Toolkit for Growing {
    fn declaration(&self) -> Declaration {
        declaration("growing_toolkit", &self.0.lock().unwrap())
    }

    fn revision(&self) -> u64 {
        self.0.lock().unwrap().len() as u64
    }

    async fn call(&self, _: Call) -> Result<Value, ToolError> {
        Ok(Value::Null)
    }
}

#[test]
fn a_toolkit_that_changed_is_read_again_by_itself() {
    let registry = Registry::new();
    let growing = Arc::new(Growing(vec!["one"].into()));
    registry.register(Arc::clone(&growing) as Arc<dyn Toolkit>).unwrap();
    registry.set_enabled("growing_toolkit", true);
    assert!(registry.find("growing_toolkit", "two").is_err());
    growing.0.lock().unwrap().push("two");
    assert!(registry.find("growing_toolkit", "two").is_ok());
    growing.0.lock().unwrap().push("three");
    assert_eq!(registry.declarations(), [declaration("growing_toolkit", &["one", "two", "three"])]);
    // What cannot be used is passed over.
    growing.0.lock().unwrap().push("no name");
    assert_eq!(registry.declarations(), [declaration("growing_toolkit", &["one", "two", "three"])]);
}
