//! Named secrets: how they get in, who gets them, and that nobody sees them.

use std::os::unix::fs::PermissionsExt;

use super::*;

const VALUE: &str = "tr0ub4dor/&3 key";

/// `dHIwdWI0ZG9yLyYzIGtleQ==`, and percent-encoded.
const ENCODED: [&str; 2] = ["dHIwdWI0ZG9yLyYzIGtleQ", "tr0ub4dor%2F%263"];

const MANIFEST: &str = r#"
name = "keyed_toolkit"
description = "Says what it was given."
environment = ["SHOP_KEY"]

[[operation]]
name = "say"
description = "The key, plain, in Base64 and percent-encoded."
risk = "read"
command = ["sh", "-c", 'printf %s "$SHOP_KEY"; printf %s "x$SHOP_KEY" | base64; echo tr0ub4dor%2f%263%20key; test -n "$SHOP_KEY"']
"#;

const MASK: &str = "********";

fn is_clean(text: &str) -> bool {
    !text.contains("tr0ub4dor") && ENCODED.iter().all(|encoded| !text.contains(encoded))
}

#[test]
fn a_secret_is_kept_for_its_owner_and_never_shown() {
    let home = Home::new();
    let output = home.output(&["secrets", "set", "SHOP_KEY"], &format!("{VALUE}\n"));
    let file = home.path().join("config/fimble/secrets.toml");
    assert_eq!(described(&output), (Some(0), String::new(), format!("kept `SHOP_KEY` in {}\n", file.display())),);
    assert!(std::fs::read_to_string(&file).unwrap().contains(VALUE));
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let listed = stdout(&home.output(&["secrets", "list"], ""));
    assert_eq!(listed.split_whitespace().collect::<Vec<_>>(), ["SHOP_KEY", "file"]);
    let refused = home.output(&["secrets", "set", "2nd"], "value");
    assert!(refused.status.code() == Some(2) && stderr(&refused).contains("is no name of a secret"));
    let empty = home.output(&["secrets", "set", "EMPTY"], "\n");
    assert!(empty.status.code() == Some(2) && stderr(&empty).contains("the value is empty"));

    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let loose = home.output(&["run", "-"], "print(1)");
    assert!(loose.status.code() == Some(2) && stderr(&loose).contains("(mode 0644)"), "{}", stderr(&loose));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();

    assert_eq!(home.output(&["secrets", "remove", "SHOP_KEY"], "").status.code(), Some(0));
    let gone = home.output(&["secrets", "remove", "SHOP_KEY"], "");
    assert!(gone.status.code() == Some(2) && stderr(&gone).contains("there is no secret `SHOP_KEY`"));
}

#[test]
fn a_toolkit_gets_a_secret_by_name_and_nothing_that_is_shown_or_stored_has_it() {
    let home = Home::new();
    home.output(&["secrets", "set", "SHOP_KEY"], VALUE);
    let manifests = home.path().join("manifests");
    std::fs::create_dir(&manifests).unwrap();
    std::fs::write(manifests.join("keyed.toml"), MANIFEST).unwrap();
    let program = "
text = await keyed_toolkit.say()
print(text)
# What was guessed is masked too, however it is cut.
key = 'tr0ub' + '4dor/' + '&3 key'
print(key[:7], end='')
print(key[7:])
import base64, urllib.parse
for at in range(3):
    print(base64.b64encode(('-' * at + key).encode()).decode(), base64.urlsafe_b64encode((key + '-' * at).encode()))
print(urllib.parse.quote(key), urllib.parse.quote_plus(key), repr({'k': key}), key.encode().hex())
kept = 1
raise ValueError(key)
";
    let output = home.output(&["run", "-", "--json", "--toolkits", "manifests"], program);
    let (shown, told) = (stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(shown.contains("********") && is_clean(&shown) && is_clean(&told), "{shown}{told}");
    let hexadecimal: String = VALUE.bytes().map(|byte| format!("{byte:02x}")).collect();
    assert!(!shown.contains(&hexadecimal));
    assert!(shown.contains("`key`") || shown.contains("\"key\""), "{shown}");
    assert!(shown.contains("it holds the value of a secret"), "{shown}");
    let exported = stdout(&home.output(&["store", "export"], ""));
    assert!(exported.contains("\"end\"") && exported.contains("\"kept\"") && is_clean(&exported), "{exported}");
    let mut log = home.fimble(&["run", "-", "--toolkits", "manifests"]);
    log.env("RUST_LOG", "trace").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = log.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"print(await keyed_toolkit.say())").unwrap();
    let output = child.wait_with_output().unwrap();
    let (shown, told) = (stdout(&output), stderr(&output));
    assert!(output.status.code() == Some(0) && is_clean(&shown) && is_clean(&told), "{shown}{told}");
}

/// Kills the process when it goes out of scope.
struct Killed(std::process::Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server that wants [`VALUE`], and its port.
fn redis_with_password() -> (Killed, u16) {
    // Between here and the server's start another process may take the port; then the server says so and the test fails.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = std::process::Command::new("redis-server");
    command.args(["--port", &port.to_string(), "--requirepass", VALUE, "--save", ""]).stdout(Stdio::piped());
    // `scripts/setup tests` installs it.
    let mut server = Killed(command.spawn().unwrap());
    let said = std::io::BufRead::lines(std::io::BufReader::new(server.0.stdout.take().unwrap()));
    let is_ready = said.map_while(Result::ok).any(|line| line.contains("Ready to accept connections"));
    assert!(is_ready);
    (server, port)
}

#[test]
fn an_address_names_a_secret() {
    let home = Home::new();
    let ask = ["run", "-", "-c", "toolkits.redis.url=redis://:${WALLET_PHRASE}@127.0.0.1:1/"];
    let output = home.output(&ask, "print(1)");
    let expected = "error: `toolkits.redis.url` names the secret `WALLET_PHRASE`, which has no value\n\n\
                    hint: `fimble secrets set WALLET_PHRASE` keeps it, or an environment variable of this name\n";
    assert_eq!(described(&output), (Some(2), String::new(), expected.to_owned()));

    let (_server, port) = redis_with_password();
    let url = format!("toolkits.redis.url=redis://:${{WALLET_PHRASE}}@127.0.0.1:{port}/");
    let mut run = home.fimble(&["run", "-", "-c", &url]);
    run.env("WALLET_PHRASE", VALUE).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = run.spawn().unwrap();
    let program = "print((await redis_toolkit.memory()).used_bytes > 0, 'tr0ub' + '4dor/&3 key')";
    child.stdin.take().unwrap().write_all(program.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), "True ********\n"), "{}", stderr(&output));
}

#[test]
fn a_command_may_know_a_secret_and_its_silence_is_told() {
    let home = Home::new();
    let manifests = home.path().join("manifests");
    std::fs::create_dir(&manifests).unwrap();
    std::fs::write(manifests.join("keyed.toml"), MANIFEST).unwrap();
    let run = |command: &str| {
        let command = format!("secrets.command={command}");
        let settings = ["-c", &command, "-c", "secrets.names=[\"SHOP_KEY\"]", "-c", "secrets.command_s=5.0"];
        let arguments = [&settings[..], &["run", "-", "--toolkits", "manifests"]].concat();
        home.output(&arguments, "print(await keyed_toolkit.say())")
    };
    let output = run(&format!(r#"["sh", "-c", "test $1 = SHOP_KEY && echo '{VALUE}'", "-", "{{name}}"]"#));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).starts_with("********") && is_clean(&stdout(&output)), "{}", stdout(&output));
    for (command, expected) in [
        (
            r#"["sh", "-c", "echo locked >&2; exit 1"]"#,
            "the secret `SHOP_KEY` cannot be had: `sh` ended with exit status: 1: locked",
        ),
        (r#"["true"]"#, "the secret `SHOP_KEY` cannot be had: the command printed nothing"),
        ("[]", "the secret `SHOP_KEY` cannot be had: the command is empty"),
        (r#"["sh", "-c", "cat /dev/zero"]"#, "`sh` wrote more than 65536 bytes and was killed"),
    ] {
        let output = run(command);
        assert_eq!(output.status.code(), Some(2), "{command}");
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
}

#[test]
fn what_was_stored_before_a_secret_was_one_is_neither_shown_nor_exported() {
    let home = Home::new();
    let program = "key = 'tr0ub' + '4dor/&3 key'\nlong = [key]\nkept = 7\nprint(key)\n";
    assert!(stdout(&home.output(&["run", "-"], program)).contains(VALUE));
    home.output(&["secrets", "set", "SHOP_KEY"], VALUE);
    let id = stdout(&home.output(&["sessions", "list"], "")).split_whitespace().next().unwrap().to_owned();
    for command in [vec!["sessions", "show", &id], vec!["sessions", "vars", &id]] {
        let output = home.output(&command, "");
        assert!(is_clean(&stdout(&output)) && is_clean(&stderr(&output)), "{command:?}: {}", stdout(&output));
    }
    let export = home.output(&["store", "export", "--to", "all.jsonl"], "");
    assert_eq!(export.status.code(), Some(0), "{}", stderr(&export));
    let file = std::fs::read_to_string(home.path().join("all.jsonl")).unwrap();
    assert!(file.contains(MASK) && is_clean(&file), "{file}");
    let import = home.output(&["-c", "store=other.db", "store", "import", "all.jsonl"], "");
    assert_eq!(import.status.code(), Some(0), "{}", stderr(&import));
    let carried =
        home.output(&["-c", "store=other.db", "run", "-", "--session", &id], "print(kept, 'key' in globals())");
    assert_eq!(stdout(&carried), "7 False\n", "{}", stderr(&carried));
}
