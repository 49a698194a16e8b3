//! Toolkits that are configured: shipped ones, MCP servers, services elsewhere.

use super::*;

#[test]
fn mcp_servers_are_diagnosed_hop_by_hop_and_called() {
    let home = Home::new();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/toolkits/mcp/tests/servers/fixtures/scripted.py");
    let servers = format!(
        r#"{{"mcpServers": {{
            "git": {{"command": "/usr/bin/python3", "args": ["{script}"], "includeTools": ["echo", "get*"], "colour": 1}},
            "none": {{"command": "/nowhere/server"}},
            "keyed": {{"url": "http://127.0.0.1:1/mcp", "headers": {{"X-Key": "${{NO_SUCH_VARIABLE}}"}}}}
        }}}}"#
    );
    std::fs::write(home.path().join("mcp.json"), servers).unwrap();
    let output = home.output(&["doctor", "--mcp", "mcp.json"], "");
    let text = stdout(&output);
    // The times are the machine's.
    let told: Vec<&str> =
        text.lines().filter(|line| line.contains("mcp ")).map(|line| line.rsplit_once(", ").unwrap().0).collect();
    let expected = [
        "ok    mcp git spawn: `/usr/bin/python3` runs",
        "ok    mcp git version: 2025-11-25, scripted 1",
        "ok    mcp git list: 37 tools",
        "ok    mcp git filter: 30 tools left out by the settings, 4 unusable: tool 2: it has no name; tool 3: `strange` has \
         an `inputSchema` that is no schema; tool 4: it is no object; the tool `echo` is listed twice",
        "ok    mcp git name: git_mcp_toolkit with 3 operations; `get-sum` is get_sum(), `get.sum` is get_sum_2()",
        "FAIL  mcp none spawn: the MCP server `none` did not start: `/nowhere/server`: No such file or directory (os error 2)",
        "FAIL  mcp keyed spawn: the MCP server `keyed` needs the environment variable `NO_SUCH_VARIABLE`, which is not set",
    ];
    assert_eq!(told, expected, "{text}");
    let warning = "warning: mcp.json: the server `git` has an unknown key `colour`";
    assert!(stderr(&output).contains(warning), "{}", stderr(&output));

    let program = "print(await git_mcp_toolkit.echo(from_='x', content_type='y'))";
    let output = home.output(&["run", "-", "--yes", "--mcp", "mcp.json"], program);
    let expected = "{'tool': 'echo', 'arguments': {'from': 'x', 'content-type': 'y'}}\n";
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), expected), "{}", stderr(&output));
}

#[test]
fn toolkits_that_need_a_setting_are_there_only_with_it() {
    let home = Home::new();
    let names = |home: &Home| -> Vec<String> {
        let list = stdout(&home.output(&["toolkits", "list"], ""));
        list.lines().filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
    };
    let always = names(&home);
    let optional =
        ["prometheus", "postgres", "redis", "http", "shell", "nginx", "systemd"].map(|name| format!("{name}_toolkit"));
    assert!(always.len() >= 3 && optional.iter().all(|name| !always.contains(name)), "{always:?}");

    let folder = home.path().join("config/fimble");
    std::fs::create_dir_all(&folder).unwrap();
    let settings = "[toolkits.prometheus]\nurl = 'http://127.0.0.1:1'\n[toolkits.postgres]\nurl = 'postgres://me@127.0.0.1:1/x'\n\
                    [toolkits.redis]\nurl = 'redis://127.0.0.1:1'\n[toolkits.http]\n[toolkits.shell]\n[toolkits.nginx]\n\
                    [toolkits.systemd]\n";
    std::fs::write(folder.join("config.toml"), settings).unwrap();
    let configured = names(&home);
    assert!(optional.iter().all(|name| configured.contains(name)), "{configured:?}");

    let program = "result = await shell_toolkit.run(['pwd'])\nprint(result.exit_code, result.stdout.strip().endswith(cwd))\n\
                   try:\n    await prometheus_toolkit.query('up')\nexcept ToolError as error:\n    print(error)\n";
    let program = format!("cwd = '{}'\n{program}", home.path().file_name().unwrap().display());
    let output = home.output(&["run", "-", "--yes"], &program);
    let said = stdout(&output);
    assert!(
        said.starts_with("0 True\nthe Prometheus server at http://127.0.0.1:1 cannot be reached: "),
        "{said}{}",
        stderr(&output)
    );
    // A command is asked for, and nobody is there to answer.
    assert_eq!(home.output(&["run", "-"], &program).status.code(), Some(4));

    let output = home.output(&["-c", "toolkits.prometheus.url=nowhere", "toolkits", "list"], "");
    let expected =
        "error: the `url` of the Prometheus server is no address\n\nhint: write one such as http://127.0.0.1:9090\n";
    assert_eq!(described(&output), (Some(2), String::new(), expected.to_owned()));
}

#[test]
fn services_elsewhere_are_toolkits() {
    use wiremock::matchers::{header, method, path};
    use wiremock::{Mock, MockServer, ResponseTemplate};

    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(MockServer::start());
    let url = server.uri();
    let answers = |json: serde_json::Value| ResponseTemplate::new(200).set_body_json(json);
    let document = serde_json::json!({
        "openapi": "3.1.0", "info": {"title": "Pets"}, "servers": [{"url": "/v1"}],
        "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}}, "security": [{"key": []}],
        "paths": {"/pets/{id}": {"get": {"operationId": "get_pet", "parameters": [
            {"name": "id", "in": "path", "schema": {"type": "integer"}}]}}, "/broken": []},
    });
    let card = serde_json::json!({"name": "Cook", "supportedInterfaces": [
        {"url": format!("{url}/rpc"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]});
    let said = serde_json::json!({"result": {"message": {"parts": [{"text": "Bread."}]}}});
    let pet = answers(serde_json::json!({"name": "Tom"}));
    let asked = Mock::given(path("/v1/pets/7")).and(header("authorization", "Bearer top-secret")).respond_with(pet);
    runtime.block_on(async {
        asked.mount(&server).await;
        Mock::given(path("/openapi.json")).respond_with(answers(document)).mount(&server).await;
        Mock::given(path("/.well-known/agent-card.json")).respond_with(answers(card)).mount(&server).await;
        Mock::given(method("POST")).and(path("/rpc")).respond_with(answers(said)).mount(&server).await;
    });
    let home = Home::new();
    std::fs::create_dir_all(home.path().join("config/fimble")).unwrap();
    let written = format!("[[toolkits.openapi]]\nname = 'pets'\ndocument = '{url}/openapi.json'\ntoken = 'PETS_KEY'\n");
    std::fs::write(home.path().join("config/fimble/config.toml"), written).unwrap();
    std::fs::write(
        home.path().join("program.py"),
        "pet = await pets_toolkit.get_pet(7)\nanswer = await cook_toolkit.send('Bake')\nprint(pet.name, answer.text)\n",
    )
    .unwrap();
    let arguments = ["--a2a", &url, "run", "program.py", "--yes"];
    let output = home.fimble(&arguments).env("PETS_KEY", "top-secret").output().unwrap();
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), "Tom Bread.\n"), "{}", stderr(&output));
    let warning =
        format!("warning: {url}/openapi.json: /broken: the path cannot be read: there is no object where one must be");
    assert!(stderr(&output).contains(&warning), "{}", stderr(&output));

    let output = home.fimble(&["toolkits", "list"]).output().unwrap();
    let warning =
        format!("warning: {url}/openapi.json is left out: there is no secret and no environment variable `PETS_KEY`");
    assert!(stderr(&output).contains(&warning) && !stdout(&output).contains("pets_toolkit"), "{}", stderr(&output));
}

#[test]
fn a_view_is_the_same_for_the_prompt_the_checker_and_the_gate() {
    let home = Home::new();
    let folder = home.path().join("config/fimble");
    std::fs::create_dir_all(&folder).unwrap();
    let settings = "[toolkits.view]\nwithout = ['*.memory']\n[toolkits.tenants.local]\nonly = ['host_toolkit', 'files_toolkit.read*']\n\
                    [toolkits.tenants.other]\nonly = ['nothing']\n";
    std::fs::write(folder.join("config.toml"), settings).unwrap();
    let list = stdout(&home.output(&["toolkits", "list"], ""));
    let names: Vec<&str> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["system_toolkit", "host_toolkit", "files_toolkit"], "{list}");
    let prompt = stdout(&home.output(&["prompt", "show", "Hello"], ""));
    assert!(prompt.contains("async def cpu(") && !prompt.contains("async def memory("), "{prompt}");
    assert!(!prompt.contains("class git_toolkit"), "{prompt}");
    // The checker says the same of a hidden and of an unknown operation, and so does the gate, to a program that it cannot read.
    let refused = |program: &str, name: &str| {
        let output = home.output(&["run", "-"], program);
        assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
        stderr(&output).replace(name, "NAME")
    };
    let checked = |name: &str| refused(&format!("await host_toolkit.{name}()\n"), name);
    assert_eq!(checked("memory"), checked("memozy"));
    let called = |name: &str| {
        let program = format!(
            "named = getattr(host_toolkit, '{name}')\ntry:\n    await named()\nexcept ToolError as error:\n    print(error)\n"
        );
        let output = home.output(&["run", "-"], &program);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output).replace(name, "NAME")
    };
    let said = called("memory");
    assert_eq!(said, called("memozy"));
    assert!(said.starts_with("host_toolkit has no operation \"NAME\"; operations: "), "{said}");
    let by_hand = home.output(&["toolkits", "call", "host_toolkit", "memory"], "");
    assert!(stderr(&by_hand).starts_with("error: host_toolkit has no operation \"memory\""), "{}", stderr(&by_hand));
    // What a session leaves of it.
    let output = home.output(&["--only", "*.cpu", "run", "-"], "print(await system_toolkit.describe('host_toolkit'))");
    assert_eq!(stdout(&output).matches("async def ").count(), 1, "{}", stderr(&output));
    let output = home.output(&["--only", "*.cpu", "prompt", "show", "Hello"], "");
    let shown = stdout(&output);
    assert!(shown.contains("class host_toolkit") && !shown.contains("class files_toolkit"), "{shown}");
    let output = home.output(&["--only", "*.cpu", "run", "-"], "print(await files_toolkit.read('x'))");
    assert!(stderr(&output).contains("files_toolkit"), "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_project_cannot_widen_what_is_seen() {
    let home = Home::new();
    std::fs::create_dir_all(home.path().join(".fimble")).unwrap();
    for (text, key) in [
        ("[toolkits]\ndisabled = []\n", "toolkits.disabled"),
        ("[toolkits.view]\nonly = []\n", "toolkits.view"),
        ("[toolkits.tenants.local]\n", "toolkits.tenants"),
        ("[toolkits]\ndynamic = true\n", "toolkits.dynamic"),
    ] {
        std::fs::write(home.path().join(".fimble/config.toml"), text).unwrap();
        let output = home.output(&["toolkits", "list"], "");
        assert!(stderr(&output).contains(&format!("a project may not set `{key}`")), "{}", stderr(&output));
    }
}

#[test]
fn what_is_learnt_at_run_time_is_not_asked_for_where_it_is_switched_off() {
    let home = Home::new();
    let service = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    service.set_nonblocking(true).unwrap();
    let address = format!("http://{}", service.local_addr().unwrap());
    let server = "{\"mcpServers\": {\"own\": {\"command\": \"touch\", \"args\": [\"started\"]}}}";
    std::fs::write(home.path().join("mcp.json"), server).unwrap();
    std::fs::create_dir(home.path().join("kits")).unwrap();
    std::fs::write(home.path().join("kits/broken.toml"), "name = 5\n").unwrap();
    let more = ["--toolkits", "kits", "--mcp", "mcp.json", "--openapi", &address, "--a2a", &address];
    let off = ["-c", "toolkits.dynamic=false", "toolkits", "list"];
    let output = home.output(&[&more[..], &off].concat(), "");
    assert_eq!((output.status.code(), &*stderr(&output)), (Some(0), ""));
    let names: Vec<String> =
        stdout(&output).lines().filter_map(|line| Some(line.split_whitespace().next()?.to_owned())).collect();
    assert_eq!(names, ["system_toolkit", "git_toolkit", "host_toolkit", "files_toolkit"]);
    assert!(service.accept().is_err(), "somebody asked for a document or an agent");
    assert!(!home.path().join("started").exists(), "the server was started");
}
