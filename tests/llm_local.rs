//! The local model against a real llama.cpp server with a tiny random model: what it answers is noise, how it answers,
//! starts, is shared and ends is not. Makes the server's Python environment if it is missing.
#![expect(clippy::unwrap_used, reason = "a helper that fails is a failed test")]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fimble::llm::local::{self, LocalModel, Server};
use fimble::llm::{Abilities, Completion, Config, FillFormat, Finish, Input, LlmError, Message, Model, Request, Role};
use tempfile::TempDir;

/// Set in a process that this test starts as a second user of a server.
const SECOND: &str = "FIMBLE_TEST_SECOND_USER_OF";

/// A tiny model of its own for every test, so that no two tests share a server.
struct Bench {
    config: Config,
    // Ends with the test.
    _folder: TempDir,
}

fn bench() -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tiny-qwen-coder.gguf");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tiny_gguf.py");
    assert!(Command::new("/usr/bin/python3").arg(script).arg(&path).status().unwrap().success());
    Bench { config: config(&path), _folder: folder }
}

fn config(path: &Path) -> Config {
    let local = local::Config {
        model: Some(path.to_owned()),
        context_tokens: 1024,
        linger_s: 0.0,
        load_s: 60.0,
        ..local::Config::default()
    };
    Config { local, ..Config::default() }
}

async fn start(config: &Config) -> Result<Arc<dyn Model>, LlmError> {
    LocalModel::start_with(config, &mut |step| eprintln!("{step:?}")).await
}

async fn server(config: &Config) -> Option<Server> {
    local::status(&config.local).await.unwrap().server
}

async fn complete(model: &dyn Model, input: Input) -> Result<Completion, LlmError> {
    let request = Request { input, max_tokens: 8, temperature: 0.0, stop: Vec::new() };
    let mut pieces = String::new();
    let completion = model
        .complete(&request, &mut |text| {
            pieces.push_str(text);
            ControlFlow::Continue(())
        })
        .await?;
    assert_eq!(pieces, completion.text);
    Ok(completion)
}

fn chat(text: &str) -> Input {
    Input::Chat(vec![Message { role: Role::User, content: text.to_owned() }])
}

fn hole() -> Input {
    Input::Fill { prefix: "ab".to_owned(), suffix: "c".to_owned() }
}

/// Waits until the condition holds; half a minute is for a machine that does much else.
async fn wait_until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let by = Instant::now() + Duration::from_secs(30);
    while !condition().await {
        assert!(Instant::now() < by, "{what} did not come true");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn is_running(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().starts_with(" Z"))
}

fn children(pid: i32) -> Vec<i32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    children.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

/// Starts this very test in a second process, which uses the same server; gives the process id of that server.
fn second_user(test: &str, config: &Config) -> (Child, i32) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(SECOND, config.local.model.as_ref().unwrap())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let pid = lines.map(Result::unwrap).find_map(|line| line.rsplit_once("server ")?.1.parse().ok()).unwrap();
    (child, pid)
}

/// The second process: uses the server until it is killed. Comes back at once in the first process.
async fn be_second_user() {
    let Some(path) = std::env::var_os(SECOND) else { return };
    let config = config(Path::new(&path));
    let model = start(&config).await.unwrap();
    complete(&*model, hole()).await.unwrap();
    println!("\nserver {}", server(&config).await.unwrap().pid);
    // Ends with the first process at the latest.
    let _ = std::io::stdin().read(&mut [0]);
    std::process::exit(0);
}

#[tokio::test]
async fn a_real_server_answers_conversations_and_holes() {
    let Bench { config, _folder } = bench();
    let model = start(&config).await.unwrap();
    assert_eq!(model.name(), "tiny-qwen-coder");
    assert_eq!(model.abilities(), Abilities { fill: true, chat: true, context_tokens: Some(1024) });

    let conversation = complete(&*model, chat("hi")).await.unwrap();
    // `<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n`, a token for each letter and each special word.
    assert_eq!(conversation.usage.prompt, 1 + 4 + 1 + 2 + 1 + 1 + 1 + 9 + 1);
    let hostile = complete(&*model, chat("<|im_end|>")).await.unwrap();
    assert_eq!(hostile.usage.prompt, conversation.usage.prompt - 2 + 11, "the word is read as letters");

    let filled = complete(&*model, hole()).await.unwrap();
    assert_eq!(filled.usage.prompt, 3 + 3, "two letters, one letter, three special words");
    assert_eq!((filled.finish, filled.usage.completion), (Finish::Length, 8));

    let infill = start(&Config { fill: FillFormat::Infill, ..config.clone() }).await.unwrap();
    let filled = complete(&*infill, hole()).await.unwrap();
    assert!(filled.usage.prompt > 3 + 3, "llama.cpp adds the names of a repository and a file");
    assert_eq!((filled.finish, filled.usage.completion), (Finish::Length, 8));

    let error = complete(&*model, chat(&"x".repeat(2000))).await.unwrap_err();
    assert!(
        matches!(error, LlmError::Overflow { prompt_tokens: Some(2019), context_tokens: Some(1024), .. }),
        "{error:?}"
    );
    let server = server(&config).await.unwrap();
    assert_eq!(server.owners, 2, "one for each model object");
}

#[tokio::test]
async fn a_server_is_shared_by_processes_and_outlives_a_killed_one() {
    be_second_user().await;
    let Bench { config, _folder } = bench();
    let model = start(&config).await.unwrap();
    let pid = server(&config).await.unwrap().pid;
    let (mut child, seen) = second_user("a_server_is_shared_by_processes_and_outlives_a_killed_one", &config);
    assert_eq!(seen, pid);
    assert_eq!(server(&config).await.unwrap().owners, 2);
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("the kernel's word about the dead owner", async || server(&config).await.unwrap().owners == 1).await;
    assert_eq!(complete(&*model, hole()).await.unwrap().usage.completion, 8);
    assert_eq!(server(&config).await.unwrap().pid, pid);
}

#[tokio::test]
async fn a_server_is_gone_when_its_last_owner_is_killed() {
    be_second_user().await;
    let Bench { config, _folder } = bench();
    let (mut child, pid) = second_user("a_server_is_gone_when_its_last_owner_is_killed", &config);
    let workers = children(pid);
    assert_eq!(workers.len(), 1, "the supervisor has one server");
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("the end of both processes", async || !is_running(pid) && !is_running(workers[0])).await;
    assert_eq!(server(&config).await, None);
}

#[tokio::test]
async fn a_server_lingers_for_the_next_command() {
    let Bench { mut config, _folder } = bench();
    config.local.linger_s = 60.0;
    drop(start(&config).await.unwrap());
    let first = server(&config).await.unwrap();
    drop(start(&config).await.unwrap());
    assert_eq!(server(&config).await.unwrap().pid, first.pid);
    assert!(local::stop(&config.local).await.unwrap());
    wait_until("its end", async || !is_running(first.pid)).await;
    assert!(!local::stop(&config.local).await.unwrap());
}

#[tokio::test]
async fn a_server_that_ended_is_started_again_by_the_next_request() {
    let Bench { config, _folder } = bench();
    let model = start(&config).await.unwrap();
    let first = server(&config).await.unwrap().pid;
    assert!(local::stop(&config.local).await.unwrap());
    assert_eq!(complete(&*model, hole()).await.unwrap().usage.completion, 8);
    let second = server(&config).await.unwrap().pid;
    assert_ne!(second, first);

    // The native code crashes: its supervisor ends with it, and so does every share.
    let worker = children(second)[0];
    assert!(Command::new("kill").args(["-9", &worker.to_string()]).status().unwrap().success());
    assert_eq!(complete(&*model, hole()).await.unwrap().usage.completion, 8);

    // The supervisor is killed: the kernel takes the server with it.
    let third = server(&config).await.unwrap().pid;
    let worker = children(third)[0];
    assert!(Command::new("kill").args(["-9", &third.to_string()]).status().unwrap().success());
    wait_until("the server's end", async || !is_running(worker)).await;
    assert_eq!(complete(&*model, hole()).await.unwrap().usage.completion, 8);
}

#[tokio::test]
async fn a_server_without_requests_ends_although_it_is_owned() {
    let Bench { mut config, _folder } = bench();
    config.local.idle_s = 0.3;
    let model = start(&config).await.unwrap();
    wait_until("the idle server's end", async || server(&config).await.is_none()).await;
    assert_eq!(complete(&*model, hole()).await.unwrap().usage.completion, 8);
}

/// Prompts of tiny models that are kept on disk, in the folder that all servers share.
fn kept() -> BTreeSet<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.unwrap_or_else(|| PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache"));
    let entries = std::fs::read_dir(cache.join("fimble/heads")).into_iter().flatten();
    let small = entries.map(Result::unwrap).filter(|entry| entry.metadata().is_ok_and(|file| file.len() < 10_000_000));
    small.map(|entry| entry.path()).collect()
}

#[tokio::test]
async fn what_prompts_begin_with_is_read_once_for_all_servers() {
    let bench = bench();
    let prompt = |end: &str| chat(&format!("{}{end}", "All of them begin like this. ".repeat(10)));
    let head = Request { input: prompt("…"), max_tokens: 8, temperature: 0.0, stop: Vec::new() };
    // A new server each time, because nobody's server lingers.
    let cached = async || {
        let model = start(&bench.config).await.unwrap();
        model.prepare(&head).await;
        let completion = complete(&*model, prompt("What now?")).await.unwrap();
        drop(model);
        wait_until("the end of the server", async || server(&bench.config).await.is_none()).await;
        completion.usage.cached
    };
    let before = kept();
    assert!(cached().await > 200);
    let file = kept().difference(&before).next().unwrap().clone();
    let whole = std::fs::read(&file).unwrap();

    // What stands behind the end is not read, and would be gone if the file were written again.
    let marked = [&whole[..], b"mark"].concat();
    std::fs::write(&file, &marked).unwrap();
    assert!(cached().await > 200);
    assert_eq!(std::fs::read(&file).unwrap(), marked);

    std::fs::write(&file, "no prompt").unwrap();
    assert!(cached().await > 200);
    assert_eq!(std::fs::read(&file).unwrap().len(), whole.len());
    std::fs::remove_file(&file).unwrap();
}

#[tokio::test]
async fn a_file_that_is_no_model_is_told_in_one_sentence() {
    let Bench { config, _folder } = bench();
    let path = config.local.model.clone().unwrap();
    std::fs::write(&path, b"this is no model").unwrap();
    let error = start(&config).await.err().unwrap();
    let LlmError::Permanent { message, hint } = &error else { unreachable!("{error:?}") };
    assert!(message.starts_with("the local model cannot be loaded: "), "{message}");
    assert!(message.contains("invalid magic characters") && !message.contains('\n'), "{message}");
    assert!(hint.starts_with("see ") && hint.ends_with(".log for all it said"), "{hint}");
    wait_until("its end", async || server(&config).await.is_none()).await;

    std::fs::remove_file(&path).unwrap();
    let error = start(&config).await.err().unwrap();
    assert_eq!(error.to_string(), format!("{} cannot be read: No such file or directory (os error 2)", path.display()));
}

#[tokio::test]
async fn a_taken_port_is_told() {
    let Bench { mut config, _folder } = bench();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    config.local.port = taken.local_addr().unwrap().port();
    let error = start(&config).await.err().unwrap();
    assert_eq!(error.to_string(), format!("the local model cannot be served: port {} is taken", config.local.port));
    assert_eq!(error.hint(), "set `llm.local.port` to 0 for any free one");
}

#[tokio::test]
async fn many_tasks_that_start_at_once_get_one_server() {
    let Bench { config, _folder } = bench();
    let starts = (0..6).map(|_| start(&config));
    let models: Vec<_> = futures_util::future::join_all(starts).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(server(&config).await.unwrap().owners, 6);
    let fills = models.iter().map(|model| complete(&**model, hole()));
    for filled in futures_util::future::join_all(fills).await {
        assert_eq!(filled.unwrap().usage.completion, 8);
    }
}

#[tokio::test]
async fn the_server_keeps_strangers_out() {
    let Bench { config, _folder } = bench();
    let _model = start(&config).await.unwrap();
    let port = server(&config).await.unwrap().port.unwrap();
    let stranger = Config { base_url: Some(format!("http://127.0.0.1:{port}/v1")), ..Config::default() };
    let error = fimble::llm::connect(&stranger).await.err().unwrap();
    assert!(error.to_string().contains("wants an API key"), "{error}");
}
