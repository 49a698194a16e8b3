//! An author's argument vector with its placeholders, and what it becomes with a call's arguments in it.
//!
//! It starts nothing. A value is never read by a shell: it becomes an argument or a part of one, or, in the script of
//! `sh -c`, the content of a variable that the script names within double quotes.

use std::ops::Range;

use fimble_toolkit::ToolError;
use toml::Spanned;

use crate::parameter::{Argument, Parameter, Text};
use crate::problem::Mistake;
use crate::script::{Quotes, script_places};
use crate::template::{self, Piece};
use crate::written::Kind;

/// The argument vector, read.
#[derive(Debug)]
pub(crate) struct Command {
    program: String,
    words: Vec<Word>,
}

/// A command that can be started.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Filled {
    pub(crate) program: String,
    pub(crate) arguments: Vec<String>,
    /// Variables that scripts refer to.
    pub(crate) variables: Vec<(String, String)>,
}

#[derive(Debug)]
struct Word {
    pieces: Vec<Piece>,
    /// The word is a shell's program text.
    is_script: bool,
}

impl Command {
    /// # Errors
    /// An empty vector, a placeholder without parameter or in a wrong place, a parameter without placeholder.
    pub(crate) fn new(
        operation: &str,
        vector: &Spanned<Vec<Spanned<String>>>,
        parameters: &[Parameter],
        places: &[Range<usize>],
    ) -> Result<Self, Mistake> {
        let texts: Vec<&str> = vector.get_ref().iter().map(|word| word.get_ref().as_str()).collect();
        let Some(program) = texts.first().filter(|program| !program.is_empty()) else {
            return Err(Mistake::at(vector.span(), format!("the command of `{operation}` names no program")));
        };
        let scripts = script_places(&texts);
        let mut words = Vec::new();
        for (index, text) in vector.get_ref().iter().enumerate() {
            let is_script = scripts.contains(&index);
            let word = template::pieces(text.get_ref(), is_script, parameters)
                .and_then(|pieces| Word { pieces, is_script }.checked(index == 0, parameters))
                .map_err(|(reason, hint)| {
                    let mistake = Mistake::at(text.span(), format!("the command of `{operation}` {reason}"));
                    if hint.is_empty() { mistake } else { mistake.with_hint(hint) }
                })?;
            words.push(word);
        }
        let used: Vec<usize> = words.iter().flat_map(|word| template::values(&word.pieces)).collect();
        template::all_used(&used, &format!("the command of `{operation}`"), parameters, places)?;
        words.remove(0);
        Ok(Self { program: (*program).to_owned(), words })
    }

    /// The command with the arguments in place. An argument vector's word that mentions an absent argument is left
    /// out; a script gets an empty text in its place.
    ///
    /// # Errors
    /// `InvalidArgument`: a value that the program would take for an option.
    pub(crate) fn fill(&self, parameters: &[Parameter], arguments: &[Option<Argument>]) -> Result<Filled, ToolError> {
        let mut filled = Filled { program: self.program.clone(), arguments: Vec::new(), variables: Vec::new() };
        let value = |index: usize| arguments.get(index).and_then(Option::as_ref);
        let refused = |index: usize| option_refused(&parameters[index].declared.name);
        for word in &self.words {
            if word.is_script {
                let script = word.script(&value, &refused, &mut filled.variables)?;
                filled.arguments.push(script);
            } else {
                word.fill(&value, &refused, &mut filled.arguments)?;
            }
        }
        Ok(filled)
    }
}

impl Word {
    fn checked(self, is_program: bool, parameters: &[Parameter]) -> Result<Self, (String, &'static str)> {
        if is_program && template::values(&self.pieces).next().is_some() {
            return Err(("takes its program from a parameter".to_owned(), "name the program itself"));
        }
        let mut quotes = Quotes::default();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) if text.contains('\0') => {
                    return Err(("has a NUL character in it".to_owned(), ""));
                }
                Piece::Text(text) => quotes.read(text),
                Piece::Value(index) => {
                    let parameter = &parameters[*index];
                    let name = &parameter.declared.name;
                    if self.is_script && quotes.open() {
                        let reason = format!("has `{{{name}}}` within quotes of its script");
                        return Err((reason, "take the quotes away: the value is passed quoted"));
                    }
                    if !self.is_script && parameter.kind == Kind::List && self.pieces.len() > 1 {
                        let reason = format!("has the list `{{{name}}}` within a longer argument");
                        return Err((reason, "let the list be an argument alone: each item becomes one"));
                    }
                }
            }
        }
        Ok(self)
    }

    fn fill<'a>(
        &self,
        value: &impl Fn(usize) -> Option<&'a Argument>,
        refused: &impl Fn(usize) -> ToolError,
        arguments: &mut Vec<String>,
    ) -> Result<(), ToolError> {
        let mut whole = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => whole.push_str(text),
                Piece::Value(index) => match value(*index) {
                    None => return Ok(()),
                    Some(Argument { text: Text::One(text), may_be_option, .. }) => {
                        // Only the first character decides, whether it is the first piece's or a later one's.
                        if whole.is_empty() && text.starts_with('-') && !may_be_option {
                            return Err(refused(*index));
                        }
                        whole.push_str(text);
                    }
                    Some(Argument { text: Text::Many(items), may_be_option, .. }) => {
                        if items.iter().any(|item| item.starts_with('-')) && !may_be_option {
                            return Err(refused(*index));
                        }
                        arguments.extend(items.iter().cloned());
                        return Ok(());
                    }
                },
            }
        }
        arguments.push(whole);
        Ok(())
    }

    /// The script with a quoted variable for each value. A variable, because a value's text within the script would be
    /// code as soon as the author's quoting is not what it seems; a variable's content never is.
    fn script<'a>(
        &self,
        value: &impl Fn(usize) -> Option<&'a Argument>,
        refused: &impl Fn(usize) -> ToolError,
        variables: &mut Vec<(String, String)>,
    ) -> Result<String, ToolError> {
        let mut script = String::new();
        for piece in &self.pieces {
            let index = match piece {
                Piece::Text(text) => {
                    script.push_str(text);
                    continue;
                }
                Piece::Value(index) => *index,
            };
            let Some(argument) = value(index) else {
                script.push_str("''");
                continue;
            };
            let texts = match &argument.text {
                Text::One(text) => std::slice::from_ref(text),
                Text::Many(items) => items.as_slice(),
            };
            for (position, text) in texts.iter().enumerate() {
                // Where words begin only the shell knows, so no value in a script begins with a dash unasked.
                if text.starts_with('-') && !argument.may_be_option {
                    return Err(refused(index));
                }
                let name = format!("FIMBLE_ARGUMENT_{}", variables.len() + 1);
                script.push_str(&format!("{}\"${{{name}}}\"", if position == 0 { "" } else { " " }));
                variables.push((name, text.clone()));
            }
        }
        Ok(script)
    }
}

fn option_refused(name: &str) -> ToolError {
    ToolError::invalid_argument(format!("argument `{name}` begins with `-`, which the program would read as an option"))
        .with_hint("give a value without the dash; of a file in the current folder, write `./-name`")
}
