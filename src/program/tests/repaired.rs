//! What models add to a hole is taken away, and said.

use super::*;

fn check(text: &str, expected: &str, repairs: &[&str]) {
    let (hole, said) = hole(text);
    assert_eq!(
        (hole.as_str(), said.iter().map(String::as_str).collect::<Vec<_>>()),
        (expected, repairs.to_vec()),
        "from {text}"
    );
}

#[test]
fn fences_and_prose_are_taken_away() {
    let fence = "took the code out of its fence";
    let prose = "took away prose around the code";
    check("```python\nx = 1\n```", "x = 1\n", &[fence]);
    check("```\n    x = 1\n    y = 2\n```\nThis sets x and y.", "x = 1\ny = 2\n", &[fence]);
    check("Sure! Here is the code:\n\n```python\nx = 1\n```\n", "x = 1\n", &[fence]);
    check("```python\nx = 1", "x = 1\n", &[fence]);
    check("x = 1\n```\n", "x = 1\n", &[fence]);
    check("Here is the code that you need:\nx = 1\ny = 2", "x = 1\ny = 2\n", &[prose]);
    check("x = 1\n\nThis code sets the variable to one.", "x = 1\n", &[prose]);
    // Fences inside a string are content.
    let text = "await system_toolkit.send_message('''\n```\nx\n```\n''')\n";
    check(text, text, &[]);
}

#[test]
fn the_hosts_own_lines_are_taken_away() {
    let wrapper = "took away the `try` and `except` that were repeated";
    let prefix = "took away lines of the prefix that were repeated";
    check("try:\n    x = 1\nexcept Exception as error:\n    report(error)\n", "x = 1\n", &[wrapper]);
    check(
        "# goal: do it\ntry:\n    x = 1\nexcept Exception as error:\n    report(error)",
        "x = 1\n",
        &[prefix, wrapper],
    );
    check("try:\n    x = 1\n    y = 2\n", "x = 1\ny = 2\n", &[wrapper]);
    let suffix = "took away the `except` that was repeated after the hole";
    check("    x = 1\nexcept Exception as error:\n    report(error)\n", "x = 1\n", &[suffix]);
    check("x = 1\nexcept Exception as e:\n    print(e)\nfinally:\n    pass\n", "x = 1\n", &[suffix]);
    check("    # <hole>\n    x = 1", "x = 1\n", &[]);
    check("x = 1<|endoftext|>print(2)", "x = 1\n", &[]);
}

#[test]
fn a_try_of_the_models_own_stays() {
    let text = "try:\n    x = 1\nexcept ValueError as error:\n    print(error)\n";
    check(text, text, &[]);
}

#[test]
fn indentation_is_brought_to_the_level_of_the_hole() {
    check("    x = 1\n    if x:\n        y = 2", "x = 1\nif x:\n    y = 2\n", &[]);
    check("x = 1\n    y = 2\n    z = 3", "x = 1\ny = 2\nz = 3\n", &["moved the first line to the level of the others"]);
    check("    x = 1\ny = 2\n", "x = 1\ny = 2\n", &["moved the first line to the level of the others"]);
    check("        x = 1\n        y = 2", "x = 1\ny = 2\n", &["moved the lines to the level of the hole"]);
    check("if rows:\n\tx = 1\n\ty = 2\r\n", "if rows:\n    x = 1\n    y = 2\n", &[]);
    check("    # thought\n    x = 1", "# thought\nx = 1\n", &[]);
}

#[test]
fn a_statement_that_the_length_limit_broke_is_cut() {
    let cut = |text: &str| {
        splice_text(text, true).map(|program| (program.hole, program.repairs)).map_err(|refusal| refusal.to_string())
    };
    let said = vec!["cut the last statement, which the length limit had broken".to_owned()];
    assert_eq!(cut("x = 1\ny = [1,\n  2,"), Ok(("x = 1\n".to_owned(), said.clone())));
    assert_eq!(
        cut("x = 1\nfor a in rows:\n    print(a)\n    pri"),
        Ok(("x = 1\nfor a in rows:\n    print(a)\n".to_owned(), said.clone()))
    );
    assert_eq!(cut("x = 1\nprint(f'{x"), Ok(("x = 1\n".to_owned(), said)));
    assert_eq!(cut("x = 1\ny = 2\n"), Ok(("x = 1\ny = 2\n".to_owned(), Vec::new())));
    assert!(cut("x = [1,").unwrap_err().contains("ends in the middle of a statement"));
}

#[test]
fn names_and_imports_of_the_host_are_put_right() {
    let imports = "line 1: took an import away, as the toolkits are there without one";
    check("from fimble import git_toolkit\nx = 1", "pass\nx = 1\n", &[imports]);
    check("import git_toolkit, json\nx = json", "import json\nx = json\n", &[imports]);
    check("from toolkits.git_toolkit import *\nx = 1", "pass\nx = 1\n", &[imports]);
    check(
        "report = [1]\nprint(f'{report}', len(report))",
        "the_report = [1]\nprint(f'{the_report}', len(the_report))\n",
        &["renamed `report`, which is the host's, to `the_report`"],
    );
    check("x = 1\nreturn x", "x = 1\nx\n", &["line 2: took `return` away, as the program is no function"]);
    check(
        "print(json.dumps({}), Counter([1]), datetime.now(), os.sep)",
        "from collections import Counter; from datetime import datetime; import json; import os\n\
         print(json.dumps({}), Counter([1]), datetime.now(), os.sep)\n",
        &["added `from collections import Counter; from datetime import datetime; import json; import os`"],
    );
    check(
        "print(datetime.datetime.now())",
        "import datetime\nprint(datetime.datetime.now())\n",
        &["added `import datetime`"],
    );
}

#[test]
fn statements_that_ran_are_not_run_again() {
    let done = ["commits = await git_toolkit.log(limit=5)".to_owned(), "print(len(commits))".to_owned()];
    let scaffold = Scaffold::new(&ScaffoldInput { goal: "g", done: &done, ..ScaffoldInput::default() });
    let (declarations, carried, config) = (declarations(), carried(), Config::default());
    let known = Known {
        declarations: &declarations,
        carried: &carried,
        shapes: &NO_SHAPES,
        not_kept: &NOTHING_LOST,
        finish_length: false,
        config: &config,
    };
    let text = "    commits = git_toolkit.log(limit=5)\n    print(len(commits))\n    print(commits[0].sha)\n";
    let program = splice(&scaffold, text, &known).unwrap();
    assert_eq!(program.hole, "print(commits[0].sha)\n");
    assert_eq!(program.repairs, ["took away statements that were already done"]);
}
