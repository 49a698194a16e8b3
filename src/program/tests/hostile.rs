//! Whatever the text, there is a program that keeps its promises, or a refusal.

use proptest::prelude::*;

use super::*;

/// Pieces of which models make their worst.
const PIECES: [&str; 47] = [
    "p = ops_toolkit.ports()\n",
    "print(p[0].port)\n",
    "for d in await ops_toolkit.disks()[0]:\n",
    "x = 1\n",
    "    x = 1\n",
    "\ty = 2\n",
    "except Exception as error:\n",
    "    report(error)\n",
    "try:\n",
    "finally:\n",
    "else:\n",
    "```python\n",
    "```\n",
    "Here is the code:\n",
    "git_toolkit.log(",
    "await ",
    "limit=5)",
    ")\n",
    "'''",
    "\"\"\"",
    "f'{",
    "}'",
    "\\\n",
    "# <hole>\n",
    "# comment\n",
    "def f():\n",
    "    return git_toolkit.log()[0]\n",
    "async def g():\n",
    "class K:\n",
    "lambda: ",
    "[a for a in ",
    "]\n",
    "(",
    "{",
    ":",
    "\n",
    "        ",
    "if x:\n",
    "    pass\n",
    "return x\n",
    "report = 1\n",
    "import git_toolkit\n",
    "é漢字",
    "\u{0}",
    "\r\n",
    "asyncio.run(main())\n",
    "<|fim_suffix|>",
];

fn keeps_its_promises(text: &str, cut: bool) {
    // The test parses too.
    stacker::grow(1 << 30, || keeps_them(text, cut));
}

fn keeps_them(text: &str, cut: bool) {
    hole_end(text);
    let Ok(program) = splice_text(text, cut) else { return };
    let module = ruff_python_parser::parse_module(&program.hole).unwrap();
    assert!(!module.suite().is_empty());
    let whole = program.text();
    let module = ruff_python_parser::parse_module(&whole).unwrap();
    let [ruff_python_ast::Stmt::Try(only)] = module.suite().iter().as_slice() else { panic!("{whole}") };
    let body = ruff_python_parser::parse_module(&program.hole).unwrap();
    assert_eq!((only.body.len(), only.handlers.len()), (body.suite().len(), 1), "{whole}");
    let handler = whole.len() - program.suffix.len();
    assert_eq!(&whole[handler..], "except Exception as error:\n    report(error)\n");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_text_never_breaks_out(text in "\\PC{0,200}|[\\s\\S]{0,80}", cut in any::<bool>()) {
        keeps_its_promises(&text, cut);
    }

    #[test]
    fn pieces_of_programs_never_break_out(pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..24), cut in any::<bool>()) {
        keeps_its_promises(&pieces.concat(), cut);
    }
}

#[test]
fn a_backslash_before_a_statement_does_not_move_it() {
    let hole = |text| splice_text(text, false).map(|program| program.hole).map_err(|refusal| refusal.to_string());
    let of_function = "def f():\n    y = 2\n\\\n    x = 1\n";
    keeps_its_promises(of_function, false);
    assert_eq!(hole(of_function).as_deref(), Ok("def f():\n    y = 2\n\n    x = 1\n"));
    assert_eq!(hole("def f():\n    y = 2\n    \\\n\\\nx = 1\n").as_deref(), Ok("def f():\n    y = 2\n\n\n    x = 1\n"));
    let inside = "x = 1 + \\\n\\\n  2\n";
    assert_eq!(hole(inside).as_deref(), Ok(inside));
}

#[test]
fn deep_and_long_texts_are_refused_or_run() {
    for unit in ["-", "(", "[", "{1:", "not ", "a.", "lambda:", "f(", "1+", "await ", "f'{", "if 1:\n"] {
        keeps_its_promises(&unit.repeat(20_000 / unit.len()), false);
        keeps_its_promises(&(unit.repeat(20_000 / unit.len()) + "1"), true);
    }
    let long = "x = 1\n".repeat(60_000);
    assert_eq!(
        message(&long),
        "The program was not run\n- line 1: the program is longer than 256 KiB: write a shorter one"
    );
}
