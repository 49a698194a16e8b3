//! The same tests again as an ordinary user and with a part of the jail, in processes of their own; and what is said when
//! a layer is missing.

use std::os::unix::process::CommandExt;
use std::process::Command;

use fimble::interpreter::Error;

use super::life::until;
use super::*;

const ORDINARY: u32 = 12_345;

/// Runs some of this binary's tests again in another world.
fn again(change: impl FnOnce(&mut Command), tests: &[&str]) {
    let folder = tempfile::Builder::new().prefix("fimble-tests").tempdir_in("/tmp").unwrap();
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let copy = |from: &std::path::Path, name: &str| {
        let to = folder.path().join(name);
        std::fs::copy(from, &to).unwrap();
        to
    };
    let tests_copy = copy(&std::env::current_exe().unwrap(), "tests");
    let executable = copy(&config().executable.unwrap(), "fimble");
    let mut command = Command::new(tests_copy);
    command.args(["--test-threads", "1"]).args(tests).current_dir(folder.path());
    command.env_clear().env("FIMBLE_TEST_EXECUTABLE", executable);
    change(&mut command);
    let result = command.output().unwrap();
    let said = String::from_utf8_lossy(&result.stdout);
    assert!(result.status.success(), "{said}\n{}", String::from_utf8_lossy(&result.stderr));
    assert!(!said.contains("running 0 tests"), "{said}");
}

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// What is run again.
const AGAIN: &[&str] = &["attacks::", "limits::memory", "programs::"];

/// Tests run as root run them again as somebody; those of an ordinary user do so anyway.
fn ordinary(command: &mut Command) {
    if is_root() {
        command.uid(ORDINARY).gid(ORDINARY);
    }
}

#[test]
fn attacks_fail_as_an_ordinary_user() {
    if is_root() {
        again(ordinary, AGAIN);
    }
}

#[test]
fn attacks_fail_in_a_reduced_jail() {
    again(
        |command| {
            command.env("FIMBLE_TEST_ISOLATION", "reduced");
        },
        AGAIN,
    );
}

#[test]
fn attacks_fail_in_a_reduced_jail_as_an_ordinary_user() {
    if is_root() {
        again(
            |command| {
                ordinary(command.env("FIMBLE_TEST_ISOLATION", "reduced"));
            },
            AGAIN,
        );
    }
}

#[test]
fn attacks_fail_with_refusals_in_place_of_kills() {
    again(
        |command| {
            command.env("FIMBLE_TEST_SPARES", "1");
        },
        &["attacks::"],
    );
}

#[test]
fn attacks_succeed_without_a_jail() {
    again(
        |command| {
            ordinary(command.env("FIMBLE_TEST_ISOLATION", "none"));
        },
        &["attacks::without_a_jail"],
    );
}

#[tokio::test]
async fn in_a_reduced_jail_too_much_in_the_scratch_is_an_error_until_it_is_less() {
    let interpreter = Interpreter::start(&Config { isolation: Level::Reduced, ..config() }).await.unwrap();
    let mut run = program(
        "\
import os, time
def fill():
    for number in range(1_500):
        with open(f'file{number}', 'wb') as file:
            file.write(bytes(100_000))
        time.sleep(0.005)
try:
    fill()
except OSError as error:
    print(error.errno)
for name in os.listdir():
    os.remove(name)
for _ in range(2_000):
    try:
        with open('small', 'wb') as file:
            file.write(b'fits')
        break
    except OSError:
        time.sleep(0.005)
print(os.path.getsize('small'))
fill()
",
    );
    run.limits.scratch_mib = 8;
    let finished = finish(&interpreter, run, &Arc::default()).await;
    assert_eq!(finished.output, "27\n4\n", "{:?}", finished.ending);
    let Ending::Raised { traceback, .. } = finished.ending else { panic!("{:?}", finished.ending) };
    assert!(traceback.contains("the scratch folder holds 8 MiB and 4,096 files"), "{traceback}");

    let many = "\
import time
for number in range(100_000):
    open(str(number), 'x').close()
    if number > 4_096:
        time.sleep(0.005)
";
    let finished = super::run(&interpreter, many).await;
    assert_eq!(limit(&finished), "scratch");
    let Ending::Limit { message, .. } = &finished.ending else { panic!("{finished:?}") };
    assert!(message.contains("more than 32 MiB, or were too many"), "{message}");

    let mapped = "import mmap\nwith open('file', 'w+b') as file:\n    file.write(b'text')\n    file.flush()\n    mmap.mmap(file.fileno(), 0)";
    assert_eq!(exception(&super::run(&interpreter, mapped).await), "PermissionError");
}

#[tokio::test]
async fn the_active_layers_are_told() {
    let interpreter = Interpreter::start(&Config { isolation: Level::Full, ..config() }).await.unwrap();
    let layers = &interpreter.isolation().layers;
    for layer in ["namespaces", "root", "seccomp", "limits"] {
        assert!(layers.iter().any(|one| one == layer), "{layers:?}");
    }
    assert!(layers.iter().any(|one| one.starts_with("landlock ")), "{layers:?}");
    assert_eq!(interpreter.isolation().level, Level::Full);

    let interpreter = Interpreter::start(&Config { isolation: Level::None, ..config() }).await.unwrap();
    assert_eq!(interpreter.isolation().layers, vec!["limits"]);
    assert_eq!(output(&interpreter, "import os\nprint(os.path.exists('/proc/self'))").await, "True\n");
}

#[tokio::test]
async fn a_control_group_holds_all_programs_of_a_zygote_together() {
    let config = Config { zygote_memory_mib: 96, ..config() };
    let interpreter = Interpreter::start(&config).await.unwrap();
    let group = || {
        let own = std::fs::read_to_string("/proc/self/cgroup").unwrap();
        let groups = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        let folders =
            groups.lines().filter(|line| line.contains(" - cgroup")).map(|line| line.split(' ').nth(4).unwrap());
        let name = format!("fimble-{}-", std::process::id());
        let places: Vec<std::path::PathBuf> = folders
            .flat_map(|folder| own.lines().map(move |line| format!("{folder}{}", line.rsplit(':').next().unwrap())))
            // In version 2, beside the own one.
            .flat_map(|folder| [format!("{folder}/.."), folder])
            .flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten())
            .map(|entry| entry.path())
            .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(&name))
            .collect();
        places
    };
    // Where none can be made, the layer is not named, and there is none.
    let is_held = interpreter.isolation().layers.first().is_some_and(|layer| layer.starts_with("cgroup"));
    if !is_held {
        assert_eq!(group(), Vec::<std::path::PathBuf>::new());
        return;
    }
    let greedy = run(&interpreter, "held = bytearray(200 << 20)").await;
    assert!(matches!(greedy.ending, Ending::Crashed { .. }), "{:?}", greedy.ending);
    assert_eq!(output(&interpreter, "print(len(bytearray(8 << 20)) >> 20)").await, "8\n");
    drop(interpreter);
    until("the group is gone", || group().is_empty()).await;
}

#[tokio::test]
async fn a_control_group_holds_processors_where_that_controller_is_there() {
    let interpreter = Interpreter::start(&Config { zygote_cpus: Some(0.2), ..config() }).await.unwrap();
    if interpreter.isolation().layers.first().is_none_or(|layer| layer != "cgroup cpu") {
        return;
    }
    let source = "\
begun, computed = time.monotonic(), time.process_time()
while time.process_time() - computed < 0.4:
    pass
print((time.process_time() - computed) / (time.monotonic() - begun))
";
    // At most two periods' shares beyond its own; whatever else the machine does, it is less.
    let share: f64 = output(&interpreter, source).await.trim().parse().unwrap();
    assert!(share < 0.3, "{share}");
}

/// What `fimble doctor` says of the interpreter.
fn doctor(isolation: &str) -> String {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(config().executable.unwrap());
    command.arg("doctor").env_clear().env("HOME", home.path()).env("FIMBLE_INTERPRETER__ISOLATION", isolation);
    let said = String::from_utf8(command.current_dir("/").output().unwrap().stdout).unwrap();
    let start = said.find("interpreter: ").unwrap_or_else(|| panic!("{said}"));
    said[start..].lines().take(3).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_doctor_names_the_active_layers() {
    let said = doctor("full");
    assert!(said.contains("isolation full ("), "{said}");
    assert!(said.contains("namespaces, root, seccomp, landlock "), "{said}");
    let said = doctor("reduced");
    assert!(said.contains("isolation reduced (") && said.contains("not there: namespaces, root)"), "{said}");
}

/// A process that may make no user namespaces, as in many containers.
#[test]
fn a_missing_layer_is_named_and_nothing_runs() {
    if std::env::var_os("FIMBLE_TEST_NO_NAMESPACES").is_none() {
        again(
            |command| {
                command.env("FIMBLE_TEST_NO_NAMESPACES", "1");
            },
            &["users::a_missing_layer_is_named_and_nothing_runs"],
        );
        return;
    }
    forbid_namespaces();
    let said = doctor("full");
    assert!(said.contains("the interpreter's jail is not complete: layer `namespaces`"), "{said}");
    assert!(said.contains("set `interpreter.isolation = \"reduced\"`"), "{said}");
    assert!(doctor("reduced").contains("isolation reduced ("));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        match Interpreter::start(&config()).await.unwrap_err() {
            Error::Isolation { layer, hint, .. } => {
                assert_eq!(layer, "namespaces");
                assert!(hint.contains("interpreter.isolation = \"reduced\""), "{hint}");
            }
            other => panic!("{other:?}"),
        }
        let interpreter = Interpreter::start(&Config { isolation: Level::Reduced, ..config() }).await.unwrap();
        assert_eq!(output(&interpreter, "print(1)").await, "1\n");
    });
}

/// This process and those it starts get EPERM for new namespaces.
fn forbid_namespaces() {
    use seccompiler::{SeccompAction, SeccompFilter};
    let rules = [(libc::SYS_unshare, Vec::new())].into_iter().collect();
    let target = std::env::consts::ARCH.try_into().unwrap();
    let filter =
        SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(libc::EPERM as u32), target).unwrap();
    let program: seccompiler::BpfProgram = filter.try_into().unwrap();
    seccompiler::apply_filter_all_threads(&program).unwrap();
}

/// Folders below the mounts of control groups whose names begin so.
fn groups(prefix: &str) -> Vec<std::path::PathBuf> {
    fn search(folder: &std::path::Path, prefix: &str, found: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.file_name().to_str().is_some_and(|name| name.starts_with(prefix)) {
                    found.push(entry.path());
                }
                search(&entry.path(), prefix, found);
            }
        }
    }
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mut found = Vec::new();
    for folder in mounts.lines().filter(|line| line.contains(" - cgroup")).filter_map(|line| line.split(' ').nth(4)) {
        search(folder.as_ref(), prefix, &mut found);
    }
    found
}

#[tokio::test]
async fn a_process_that_ended_leaves_no_control_group() {
    for isolation in [Level::Full, Level::Reduced] {
        let looked = Interpreter::start(&Config { isolation, ..config() }).await.unwrap();
        if looked.isolation().layers.first().is_none_or(|layer| !layer.starts_with("cgroup")) {
            return;
        }
        assert!(!groups(&format!("fimble-{}-", std::process::id())).is_empty(), "{isolation:?}");
        let home = tempfile::tempdir().unwrap();
        let program = "held = bytearray(100 << 20)\nopen('file', 'w').close()\n";
        std::fs::write(home.path().join("program.py"), program).unwrap();
        let mut command = Command::new(config().executable.unwrap());
        command.args(["run", "program.py"]).current_dir(home.path()).env_clear().env("HOME", home.path());
        command.env("FIMBLE_INTERPRETER__ISOLATION", format!("{isolation:?}").to_lowercase());
        let mut process = command.stdin(std::process::Stdio::null()).spawn().unwrap();
        assert!(process.wait().unwrap().success());
        assert_eq!(groups(&format!("fimble-{}-", process.id())), Vec::<std::path::PathBuf>::new(), "{isolation:?}");
    }
}
