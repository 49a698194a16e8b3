//! What a program must not be able to do, judged from outside where there is an outside.

use std::net::TcpListener;

use super::*;

/// Programs that must end with one of these exceptions.
async fn refused(attacks: &[(&str, &str, &[&str])]) {
    let interpreter = start().await;
    for (what, source, expected) in attacks {
        let finished = run(&interpreter, source).await;
        assert!(expected.contains(&&*exception(&finished)), "{what}: {finished:?}");
    }
    assert_eq!(output(&interpreter, "print('still here')").await, "still here\n");
}

const GONE: &[&str] = &["PermissionError", "FileNotFoundError", "NotADirectoryError"];
const DENIED: &[&str] = &["PermissionError"];

#[tokio::test]
async fn files_outside_cannot_be_read() {
    refused(&[
        ("passwords", "open('/etc/passwd').read()", GONE),
        ("by descriptor", "import os\nos.open('/etc/passwd', os.O_PATH | os.O_NOFOLLOW)", GONE),
        ("relative", "open('../../../etc/hosts').read()", GONE),
        ("a process's memory", "open('/proc/self/mem', 'rb').read(1)", GONE),
        ("the environment", "open('/proc/self/environ').read()", GONE),
        ("the zygote", "open('/proc/1/maps').read()", GONE),
        ("a device", "open('/dev/sda', 'rb').read()", GONE),
        ("the kernel", "open('/sys/kernel/notes', 'rb').read()", GONE),
        ("root's folder", "import os\nos.listdir('/')", GONE),
        ("other rounds", "import os\nos.listdir('..')", GONE),
        ("home folders", "import os\nos.listdir('/root')", GONE),
    ])
    .await;
}

#[tokio::test]
async fn nothing_outside_the_scratch_can_be_written() {
    let canary = tempfile::Builder::new().prefix("canary").tempfile_in("/tmp").unwrap();
    std::fs::set_permissions(canary.path(), std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
    let path = canary.path().display();
    refused(&[
        ("a file of all users", &format!("open('{path}', 'w').write('x')"), GONE),
        ("appending", &format!("open('{path}', 'a').write('x')"), GONE),
        ("truncating", &format!("import os\nos.truncate('{path}', 0)"), GONE),
        ("removing", &format!("import os\nos.remove('{path}')"), GONE),
        ("a new file", "open('/tmp/new-file-of-a-program', 'w')", GONE),
        ("the library", "import json\nopen(json.__file__, 'a')", &["PermissionError", "OSError"]),
        ("the scratch's folder", "open('../x', 'w')", DENIED),
        ("a symbolic link", "import os\nos.symlink('/etc', 'etc')", DENIED),
        ("a hard link", "import os\nopen('a', 'w')\nos.link('a', 'b')", DENIED),
        ("a device", "import os\nos.mknod('device')", DENIED),
        ("a queue", "import os\nos.mkfifo('queue')", DENIED),
        ("an owner", "import os\nopen('a', 'w')\nos.chown('a', 0, 0)", DENIED),
        ("a mount", "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\nif libc.mount(b'x', b'.', b'tmpfs', 0, 0): raise OSError(ctypes.get_errno(), '')", DENIED),
    ])
    .await;
    assert_eq!(std::fs::read(canary.path()).unwrap(), b"");
    assert!(!std::path::Path::new("/tmp/new-file-of-a-program").exists());
}

#[tokio::test]
async fn there_is_no_network() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let connect = format!("import socket\nsocket.create_connection(('{}', {}), 1)", address.ip(), address.port());
    refused(&[
        ("connecting", &connect, DENIED),
        ("a datagram", "import socket\nsocket.socket(socket.AF_INET, socket.SOCK_DGRAM)", DENIED),
        ("a named socket", "import socket\nsocket.socket(socket.AF_UNIX)", DENIED),
        ("a raw socket", "import socket\nsocket.socket(socket.AF_PACKET, socket.SOCK_RAW)", DENIED),
        ("netlink", "import socket\nsocket.socket(socket.AF_NETLINK, socket.SOCK_RAW)", DENIED),
        ("a pair of datagrams", "import socket\nsocket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)", DENIED),
        (
            "resolving",
            "import socket\nsocket.getaddrinfo('localhost', 80)",
            &["gaierror", "PermissionError", "OSError"],
        ),
        ("passing descriptors", "import socket\na, b = socket.socketpair()\nsocket.send_fds(a, [b'x'], [0])", DENIED),
    ])
    .await;
    assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[tokio::test]
async fn processes_cannot_be_made_or_touched() {
    let mut bystander = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    let pid = bystander.id();
    let kill = format!("import os\nos.kill({pid}, 9)");
    refused(&[
        ("fork", "import os\nos.fork()", DENIED),
        ("a fork bomb", "import os\nwhile True: os.fork()", DENIED),
        ("a command", "import subprocess\nsubprocess.run(['true'])", &["PermissionError", "FileNotFoundError"]),
        ("the shell", "import os\nif os.system('true') != 0: raise PermissionError", DENIED),
        ("spawn", "import os\nos.posix_spawn('/bin/true', ['true'], {})", GONE),
        ("executing", "import os\nos.execv('/bin/true', ['true'])", GONE),
        ("killing", &kill, &["PermissionError", "ProcessLookupError"]),
        ("killing the zygote", "import os\nos.kill(os.getppid(), 9)", DENIED),
        ("killing all", "import os\nos.kill(-1, 9)", DENIED),
        ("a process's descriptor", "import os\nos.pidfd_open(os.getppid())", DENIED),
        ("priority", "import os\nos.nice(-5)", DENIED),
        ("the core", "import os\nos.sched_setaffinity(0, {0})", DENIED),
        ("limits", "import resource\nresource.setrlimit(resource.RLIMIT_CPU, (1, 1))", &["PermissionError", "ValueError"]),
        ("namespaces", "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nif libc.unshare(0x10000000): raise OSError(ctypes.get_errno(), '')", DENIED),
        ("code in memory", "import mmap\nmmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_EXEC | mmap.PROT_READ)", DENIED),
        ("a user", "import os\nos.setuid(0)", DENIED),
    ])
    .await;
    assert_eq!(bystander.try_wait().unwrap(), None);
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

#[tokio::test]
async fn deadly_calls_end_only_the_program() {
    let interpreter = start().await;
    let by_number = |number: i64| format!("import ctypes\nctypes.CDLL(None).syscall({number}, 0, 0, 0, 0, 0, 0)");
    for (what, source) in [
        ("exit", "import os\nos._exit(0)".to_owned()),
        ("a crash", "import ctypes\nctypes.string_at(0)".to_owned()),
        ("abort", "import os\nos.abort()".to_owned()),
        ("ptrace", by_number(libc::SYS_ptrace)),
        ("bpf", by_number(libc::SYS_bpf)),
        ("io_uring", by_number(libc::SYS_io_uring_setup)),
        ("keyctl", by_number(libc::SYS_keyctl)),
        ("execveat", by_number(libc::SYS_execveat)),
        ("the socket closed", "import os, time\nos.close(3)\ntime.sleep(100)".to_owned()),
    ] {
        let finished = run(&interpreter, &source).await;
        assert!(!crash(&finished).is_empty(), "{what}");
        assert_eq!(output(&interpreter, "print(1)").await, "1\n", "{what}");
    }
}

#[tokio::test]
async fn a_program_knows_nothing_of_its_host() {
    let interpreter = start().await;
    let source = "\
import os, sys
print(dict(os.environ), sys.argv, os.getuid() == 0, sorted(int(fd) for fd in range(64) if not _closed(fd)))
";
    let helper =
        "def _closed(fd):\n    import os\n    try: os.fstat(fd)\n    except OSError: return True\n    return False\n";
    let printed = output(&interpreter, &format!("{helper}{source}")).await;
    assert!(printed.starts_with("{} ['']") || printed.starts_with("{} []"), "{printed}");
    assert!(printed.contains("False [0, 1, 2, 3"), "{printed}");
}
