//! Ordinary programs pass as they are.

use super::*;

/// Programs that are right, parted by lines of `---`.
const PROGRAMS: &str = include_str!("accepted.py");

#[test]
fn ordinary_programs_pass_unchanged() {
    let programs: Vec<&str> = PROGRAMS.split("# ---\n").map(|program| program.trim_matches('\n')).collect();
    assert!(programs.len() >= 60, "{}", programs.len());
    for program in programs {
        let expected = (format!("{program}\n"), Vec::new(), Vec::new());
        for text in [program.to_owned(), lines::indent(program, HOLE_INDENT)] {
            let Program { hole, repairs, warnings, .. } =
                splice_text(&text, false).unwrap_or_else(|refusal| panic!("{text}\n{refusal}"));
            assert_eq!((hole, repairs, warnings), expected);
        }
        assert_eq!(file(program).unwrap().hole, program);
    }
}

#[test]
fn the_whole_program_has_the_hole_in_its_try() {
    let program = splice_text("x = '''\n a\n'''\nfor y in x:\n    print(y)", false).unwrap();
    let expected = "# goal: do it\ntry:\n    x = '''\n a\n'''\n    for y in x:\n        print(y)\n\
        except Exception as error:\n    report(error)\n";
    assert_eq!(program.text(), expected);
}

#[test]
fn only_names_that_may_be_read_are_sent() {
    let names = |text: &str| splice_text(text, false).unwrap().names.into_iter().collect::<Vec<_>>().join(" ");
    assert_eq!(names("print(count([1]))"), "count helper limit print rows");
    assert_eq!(names("rows = []\nx = 1"), "");
    assert_eq!(names("def f(rows):\n    return rows"), "");
    assert_eq!(names("rows += [1]"), "rows");
    assert_eq!(names("print(eval('rows'))"), "count eval fetch helper limit print rows services");
}

#[test]
fn a_name_that_nothing_defines_is_told_and_not_refused() {
    let program = splice_text("x = 1\nprint(servces, x)", false).unwrap();
    let warning = Finding { line: 2, message: "nothing defines `servces`; did you mean `services`".to_owned() };
    assert_eq!(program.warnings, [warning]);
}
