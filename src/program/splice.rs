//! From the model's text, or a file, to a program that may run.

use std::collections::BTreeSet;

use ruff_python_ast::{Expr, ModModule, Stmt};
use ruff_python_parser::{ParseError, Parsed};
use ruff_text_size::Ranged;

use super::check::{check_structure, undefined_names};
use super::check_call::check_calls;
use super::check_result::check_results;
use super::edit::Edits;
use super::fix::{drop_toolkit_imports, missing_imports, rename_report, unwrap_last_return};
use super::lines::indent;
use super::names::Names;
use super::owner::move_to_owner;
use super::quotes::part_quotes;
use super::repair::{Repaired, is_prose, parses, repair};
use super::rewrite::await_calls;
use super::scaffold::{HOLE_INDENT, Scaffold};
use super::syntax::{check_syntax, finding, parse_module};
use super::toolkit_call::Toolkits;
use super::{Config, Finding, Known, Program, Refusal};
use crate::record::{Variable, VariableKind};

/// Puts the model's text into the scaffold: repairs it, checks it, and inserts the `await`s that it lacks.
///
/// # Errors
/// A [`Refusal`] whose text tells the model what to write instead.
pub fn splice(scaffold: &Scaffold, text: &str, known: &Known<'_>) -> Result<Program, Refusal> {
    bounded(text, known.config)?;
    on_large_stack(text.len(), || {
        let Repaired { hole, repairs } = repair(scaffold, text, known.finish_length)
            .map_err(|finding| Refusal { hole: text.trim().to_owned(), findings: vec![finding] })?;
        let mut program = Program {
            prefix: scaffold.prefix.clone(),
            hole,
            suffix: scaffold.suffix.clone(),
            repairs,
            warnings: Vec::new(),
            names: BTreeSet::new(),
        };
        complete(&mut program, known, Origin::Model)?;
        if is_body_of_try(&program.prefix, &program.hole, &program.suffix) || stays_in_bare_try(&program) {
            Ok(program)
        } else {
            let message = "the hole leaves the `try` around it: write plain statements, one below the other";
            Err(refusal(&program.hole, vec![Finding { line: 1, message: message.to_owned() }]))
        }
    })
}

/// A file as a program: checked as a hole is, but only refused for what cannot run.
///
/// # Errors
/// A [`Refusal`] for a syntax error, a name of a toolkit that is bound, or a wrong call.
pub fn from_file(source: &str, known: &Known<'_>) -> Result<Program, Refusal> {
    bounded(source, known.config)?;
    on_large_stack(source.len(), || {
        let mut program = Program {
            prefix: String::new(),
            hole: source.trim_start_matches('\u{feff}').replace("\r\n", "\n"),
            suffix: String::new(),
            repairs: Vec::new(),
            warnings: Vec::new(),
            names: BTreeSet::new(),
        };
        complete(&mut program, known, Origin::File)?;
        Ok(program)
    })
}

/// The program of a round that was opened before, as it stands in the store: nothing is changed or checked again. It takes its
/// part with the variables in `carried` as before.
pub fn reopened(prefix: &str, hole: &str, suffix: &str, known: &Known<'_>) -> Program {
    let names = on_large_stack(hole.len(), || match ruff_python_parser::parse_module(hole) {
        Ok(module) => reached(&Names::of(module.suite()), known),
        // What CPython reads and this parser does not may use anything.
        Err(_) => known.carried.iter().map(|variable| variable.name.clone()).collect(),
    });
    Program {
        prefix: prefix.to_owned(),
        hole: hole.to_owned(),
        suffix: suffix.to_owned(),
        repairs: Vec::new(),
        warnings: Vec::new(),
        names,
    }
}

/// Who wrote a program.
#[derive(Clone, Copy, PartialEq)]
enum Origin {
    Model,
    File,
}

fn complete(program: &mut Program, known: &Known<'_>, origin: Origin) -> Result<(), Refusal> {
    let module = parse(program, origin)?;

    let names = Names::of(module.suite());
    let mut edits = Edits::default();
    drop_toolkit_imports(&program.hole, module.suite(), known.declarations, &mut edits);
    let mut first_line = None;
    if origin == Origin::Model {
        part_quotes(&program.hole, &module, &mut edits);
        rename_report(&names, &mut edits);
        unwrap_last_return(&program.hole, module.suite(), &mut edits);
        let toolkits = Toolkits::new(known.declarations, &names, module.suite());
        move_to_owner(module.suite(), &toolkits, known.declarations, &mut edits);
        first_line = missing_imports(&program.hole, &names, |name| known.knows(name));
    }
    let toolkits = Toolkits::new(known.declarations, &names, module.suite());
    await_calls(&program.hole, module.suite(), &toolkits, async_definitions(known.carried), &mut edits);
    apply(program, edits);
    let Some(line) = first_line else { return check(program, known, origin, 4) };
    program.repairs.push(format!("added `{line}`"));
    program.hole = format!("{line}\n{}", program.hole);
    check(program, known, origin, 4).map_err(|refusal| without_first_line(refusal, &line))
}

/// The findings at the lines that the model wrote: it does not know of the one that was added.
fn without_first_line(mut refusal: Refusal, line: &str) -> Refusal {
    refusal.hole =
        refusal.hole.strip_prefix(line).map(|rest| rest.trim_start_matches('\n').to_owned()).unwrap_or_default();
    for finding in &mut refusal.findings {
        finding.line = finding.line.saturating_sub(1).max(1);
    }
    refusal
}

/// The statements of a program that has some.
fn parse(program: &Program, origin: Origin) -> Result<Parsed<ModModule>, Refusal> {
    let module = parse_module(&program.hole)
        .map_err(|error| refusal(&program.hole, vec![syntax_finding(&program.hole, &error, origin)]))?;
    if origin == Origin::Model && module.suite().iter().all(is_nothing) {
        return Err(refusal(&program.hole, vec![nothing()]));
    }
    Ok(module)
}

/// Checks what will run. Results that are used as lists are put right first, in at most so many turns.
fn check(program: &mut Program, known: &Known<'_>, origin: Origin, turns: u32) -> Result<(), Refusal> {
    let module = parse(program, origin)?;
    let names = Names::of(module.suite());
    let toolkits = Toolkits::new(known.declarations, &names, module.suite());
    let mut edits = Edits::default();
    let (findings, hints) = check_results(&program.hole, module.suite(), &names, &toolkits, known, &mut edits);
    if !edits.is_empty() && findings.is_empty() {
        // What is written now may show what is wrong further on; each turn writes at least one name of a schema.
        apply(program, edits);
        if turns > 0 {
            return check(program, known, origin, turns - 1);
        }
    }
    let no_imports = Config { forbidden_imports: Default::default(), ..known.config.clone() };
    let rules = Known { config: if origin == Origin::File { &no_imports } else { known.config }, ..*known };
    let mut findings = findings;
    findings.extend(check_syntax(&program.hole, &module));
    findings.extend(check_structure(&program.hole, module.suite(), &names, &rules));
    findings.extend(check_calls(&program.hole, module.suite(), &toolkits));
    findings.sort();
    findings.dedup();
    if !findings.is_empty() {
        return Err(refusal(&program.hole, findings));
    }
    program.warnings = undefined_names(&program.hole, &names, known);
    program.warnings.extend(hints);
    program.names = reached(&names, known);
    Ok(())
}

/// What the program may read, through carried definitions too.
fn reached(names: &Names, known: &Known<'_>) -> BTreeSet<String> {
    let mut reached: BTreeSet<String> = names.read.keys().cloned().collect();
    if names.dynamic {
        reached.extend(known.carried.iter().map(|variable| variable.name.clone()));
    }
    let mut waiting: Vec<String> = reached.iter().cloned().collect();
    while let Some(name) = waiting.pop() {
        for variable in known.carried.iter().filter(|variable| variable.name == name) {
            let new = variable.references.iter().filter(|reference| reached.insert((*reference).clone()));
            waiting.extend(new.cloned().collect::<Vec<_>>());
        }
    }
    reached
}

fn async_definitions(carried: &[Variable]) -> BTreeSet<String> {
    let is_async = |variable: &&Variable| {
        variable.kind == VariableKind::Definition && variable.preview.trim_start().starts_with("async def")
    };
    carried.iter().filter(is_async).map(|variable| variable.name.clone()).collect()
}

fn is_nothing(statement: &Stmt) -> bool {
    match statement {
        Stmt::Pass(_) => true,
        Stmt::Expr(expression) => matches!(&*expression.value, Expr::EllipsisLiteral(_)),
        _ => false,
    }
}

/// The proof: with the hole in its place, the whole is one `try` after the declarations, with the hole's statements.
fn is_body_of_try(prefix: &str, hole: &str, suffix: &str) -> bool {
    let text = format!("{prefix}{}{suffix}", indent(hole, HOLE_INDENT));
    let (Ok(hole), Ok(module)) = (ruff_python_parser::parse_module(hole), ruff_python_parser::parse_module(&text))
    else {
        return false;
    };
    let tries = module.suite().iter().filter(|statement| matches!(statement, Stmt::Try(_))).count();
    let Some(Stmt::Try(last)) = module.suite().last() else { return false };
    // Statements that ran in an earlier try of the round stand before the hole.
    let of_hole = last.body.iter().filter(|statement| statement.start().to_usize() >= prefix.len()).count();
    tries == 1 && last.handlers.len() == 1 && last.orelse.is_empty() && of_hole == hole.suite().len()
}

/// The proof where the host's own prefix is no program: that is never the hole's fault. Only the hole runs.
fn stays_in_bare_try(program: &Program) -> bool {
    !is_body_of_try(&program.prefix, "pass\n", &program.suffix)
        && is_body_of_try("try:\n", &program.hole, &program.suffix)
}

fn syntax_finding(source: &str, error: &ParseError, origin: Origin) -> Finding {
    let said = source.lines().filter(|line| !line.trim().is_empty());
    let (prose, code): (Vec<&str>, Vec<&str>) = said.partition(|line| is_prose(line));
    if origin == Origin::Model && prose.len() > code.len() {
        let message = "this is prose, not Python: write statements only; to speak to the user, \
            `await system_toolkit.send_message(\"…\")`";
        return Finding { line: 1, message: message.to_owned() };
    }
    let reason = error.error.to_string();
    let end = source.trim_end();
    if error.location.start().to_usize() >= end.len() {
        let line = u32::try_from(end.lines().count()).unwrap_or(u32::MAX).max(1);
        return Finding { line, message: format!("the program ends in the middle of a statement: {reason}") };
    }
    finding(source, error.location, &reason)
}

fn nothing() -> Finding {
    Finding { line: 1, message: "there is nothing to run: write at least one statement".to_owned() }
}

/// Changes the hole, unless that would break it: its own error is found later.
fn apply(program: &mut Program, edits: Edits) {
    if edits.is_empty() {
        return;
    }
    let repairs = edits.repairs.clone();
    let changed = edits.apply(&program.hole);
    if parses(&changed) {
        program.hole = changed;
        program.repairs.extend(repairs);
    }
}

fn refusal(hole: &str, findings: Vec<Finding>) -> Refusal {
    Refusal { hole: hole.to_owned(), findings }
}

fn bounded(source: &str, config: &Config) -> Result<(), Refusal> {
    if source.len() <= config.max_source_kib * 1024 {
        return Ok(());
    }
    let message = format!("the program is longer than {} KiB: write a shorter one", config.max_source_kib);
    Err(refusal("", vec![Finding { line: 1, message }]))
}

/// Runs with a stack on which a tree as deep as the text can make it is walked and dropped.
pub(super) fn on_large_stack<T>(bytes: usize, run: impl FnOnce() -> T) -> T {
    // Every level takes one byte of text at least, and less than 2 KiB of stack. Pages that are not used are not taken.
    stacker::grow((bytes * 2 * 1024).clamp(1 << 20, 1 << 30), run)
}
