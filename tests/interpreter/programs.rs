//! What ordinary programs get.

use fimble::interpreter::{Captured, Carried, Ending};
use fimble::record::VariableKind;

use super::*;

#[tokio::test]
async fn a_program_prints_while_it_runs() {
    let interpreter = start().await;
    let host = Arc::<Recorder>::default();
    let finished = finish(&interpreter, program("print('hello')\nprint('world')"), &host).await;
    assert_eq!(finished.ending, Ending::Returned { value: None });
    assert_eq!(finished.output, "hello\nworld\n");
    assert_eq!(host.prints.lock().unwrap().concat(), "hello\nworld\n");
    assert_eq!(*host.statements.lock().unwrap(), vec![(1, 2), (2, 2)]);
    assert_eq!((finished.statements_done, finished.statements), (2, 2));
    assert!(finished.usage.peak_rss_kib > 1_000, "{:?}", finished.usage);
    assert!(!finished.usage.cpu.is_zero() && !finished.usage.wall.is_zero(), "{:?}", finished.usage);
}

#[tokio::test]
async fn variables_go_in_and_come_out() {
    let interpreter = start().await;
    let mut first = program("total = count + 1\ndel count");
    let value = |name: &str, content: &str| Carried {
        name: name.to_owned(),
        kind: VariableKind::Value,
        content: content.to_owned(),
    };
    first.variables = vec![value("count", "41")];
    let finished = finish(&interpreter, first, &Arc::default()).await;
    assert_eq!(finished.ending, Ending::Returned { value: None });
    let written: Vec<(&str, &str, &str)> =
        finished.written.iter().map(|one| (&*one.name, &*one.content, &*one.type_name)).collect();
    assert_eq!(written, vec![("total", "42", "int")]);
    assert_eq!(finished.removed, vec!["count".to_owned()]);

    let mut second = program("print(total * 2)");
    second.variables = finished
        .written
        .into_iter()
        .map(|Captured { name, kind, content, .. }| Carried { name, kind, content })
        .collect();
    assert_eq!(finish(&interpreter, second, &Arc::default()).await.output, "84\n");
}

#[tokio::test]
async fn types_are_known_whose_modules_the_program_alone_has_imported() {
    // The very first child, which has imported little.
    let interpreter = start().await;
    let first = run(
        &interpreter,
        "import fractions, ipaddress, uuid, zoneinfo, datetime\n\
         u = uuid.UUID(int=7)\nf = fractions.Fraction(1, 3)\ni = ipaddress.ip_address('::1')\n\
         z = zoneinfo.ZoneInfo('Europe/Berlin')\nd = {f: [datetime.datetime(2024, 7, 1, tzinfo=z)], u: i}",
    )
    .await;
    let (kept, shown): (Vec<Carried>, Vec<String>) = first
        .written
        .into_iter()
        .filter(|one| one.kind == VariableKind::Value)
        .map(|Captured { name, kind, content, preview, .. }| (Carried { name, kind, content }, preview))
        .unzip();
    assert_eq!(first.not_carried, Vec::new());
    let expected = ["UUID('00000000-0000-0000-0000-000000000007')", "Fraction(1, 3)", "IPv6Address('::1')"];
    assert_eq!(shown.iter().take(3).collect::<Vec<_>>(), expected.iter().collect::<Vec<_>>());
    let second = start().await;
    let source = "print(u.int, f + 1, i.packed[-1], z.key, d[f][0].utcoffset(), d[u] == i)";
    let finished = finish(&second, Run { variables: kept, ..program(source) }, &Arc::default()).await;
    assert_eq!(finished.output, "7 4/3 1 Europe/Berlin 2:00:00 True\n");
}

#[tokio::test]
async fn an_exception_keeps_what_was_written_before() {
    let interpreter = start().await;
    let finished = run(&interpreter, "kept = 1\nprint(1 / 0)\nnever = 2").await;
    assert_eq!(exception(&finished), "ZeroDivisionError");
    assert_eq!(finished.written.iter().map(|one| &*one.name).collect::<Vec<_>>(), vec!["kept"]);
    assert_eq!((finished.statements_done, finished.statements), (1, 3));
}

#[tokio::test]
async fn the_standard_library_is_there() {
    let interpreter = start().await;
    let source = "\
import asyncio, csv, ctypes, dataclasses, datetime, decimal, fractions, hashlib, io, json, math, pathlib, random, re
import sqlite3, statistics, struct, tempfile, threading, unicodedata, uuid, xml.etree.ElementTree, zipfile, zlib, zoneinfo
print(hashlib.sha256(b'').hexdigest()[:8])
print(zoneinfo.ZoneInfo('Europe/Berlin').utcoffset(datetime.datetime(2024, 7, 1)))
print(decimal.Decimal(1) / 3, len(uuid.uuid4().hex), sqlite3.connect(':memory:').execute('select 6 * 7').fetchone())
found = []
threads = [threading.Thread(target=found.append, args=(n,)) for n in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(sorted(found))
await asyncio.sleep(0.001)
";
    let expected = "e3b0c442\n2:00:00\n0.3333333333333333333333333333 32 (42,)\n[0, 1, 2, 3, 4, 5, 6, 7]\n";
    assert_eq!(output(&interpreter, source).await, expected);
}

#[tokio::test]
async fn a_program_has_a_scratch_folder_of_its_own() {
    let interpreter = start().await;
    let write = "\
import os, pathlib, shutil, tempfile
pathlib.Path('a.txt').write_text('hello')
os.mkdir('folder')
os.rename('a.txt', 'folder/b.txt')
with tempfile.TemporaryDirectory() as folder:
    shutil.copy('folder/b.txt', folder + '/c.txt')
    print(pathlib.Path(folder, 'c.txt').read_text(), sorted(os.listdir()) == sorted(['folder', os.path.basename(folder)]))
print(os.listdir())
";
    assert_eq!(output(&interpreter, write).await, "hello True\n['folder']\n");
    assert_eq!(output(&interpreter, "import os\nprint(os.listdir())").await, "[]\n");
}

#[tokio::test]
async fn rounds_run_side_by_side() {
    let interpreter = start().await;
    let rounds = (0..12).map(|number| {
        let interpreter = interpreter.clone();
        async move { output(&interpreter, &format!("await demo.wait()\nprint({number})")).await }
    });
    let outputs = futures_util::future::join_all(rounds).await;
    assert_eq!(outputs, (0..12).map(|number| format!("{number}\n")).collect::<Vec<_>>());
}

#[tokio::test]
async fn however_deep_a_scratch_is_nothing_is_left_of_it() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o1777)).unwrap();
    let mut config = Config { scratch_folder: folder.path().to_owned(), ..config() };
    config.isolation = Level::Reduced;
    let interpreter = Interpreter::start(&config).await.unwrap();
    let source = "\
import os
for depth in range(1_900):
    open('file', 'w').close()
    os.mkdir('d')
    os.chdir('d')
os.chmod('.', 0)
print('deep')
";
    assert_eq!(output(&interpreter, source).await, "deep\n");
    drop(interpreter);
    let begun = std::time::Instant::now();
    while std::fs::read_dir(folder.path()).unwrap().next().is_some() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", std::fs::read_dir(folder.path()).unwrap().next());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
