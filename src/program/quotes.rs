//! Writes f-strings as Python before 3.12 reads them: without the outer quotes and without backslashes inside the braces.

use ruff_python_ast::str::Quote;
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, FStringPart, InterpolatedStringElement, ModModule, StringFlags, StringLiteral};
use ruff_python_parser::{Parsed, UnsupportedSyntaxErrorKind};

use super::edit::{Edits, line_of, slice};

/// Changes the strings within the braces of f-strings, if the version that runs them needs that.
pub(super) fn part_quotes(source: &str, module: &Parsed<ModModule>, edits: &mut Edits) {
    let errors = module.unsupported_syntax_errors().iter();
    if errors.into_iter().any(|error| matches!(error.kind, UnsupportedSyntaxErrorKind::Pep701FString(_))) {
        Nested { source, outer: Vec::new(), edits }.visit_body(module.suite());
    }
}

struct Nested<'a, 'e> {
    source: &'a str,
    /// The quotes of the f-strings around.
    outer: Vec<Quote>,
    edits: &'e mut Edits,
}

impl Nested<'_, '_> {
    fn literal(&mut self, literal: &StringLiteral) {
        let text = slice(self.source, literal.range);
        let quote = literal.flags.quote_style();
        let other = if quote == Quote::Single { '"' } else { '\'' };
        let Some(content) = text.strip_prefix(quote.as_char()).and_then(|rest| rest.strip_suffix(quote.as_char()))
        else {
            return;
        };
        let changed = match control(content) {
            Some(text) => text,
            None if self.outer.contains(&quote)
                && !literal.flags.is_triple_quoted()
                && !content.contains([other, '\\'])
                && !self.outer.iter().any(|outer| outer.as_char() == other) =>
            {
                format!("{other}{content}{other}")
            }
            None => return,
        };
        self.edits
            .say(format!("line {}: wrote `{changed}` for `{text}` within an f-string", line_of(self.source, literal)));
        self.edits.replace(literal.range, changed);
    }
}

/// `chr(10)` for the text of a string that is nothing but line ends or nothing but tabs.
fn control(content: &str) -> Option<String> {
    let (escape, code) = [("\\n", 10), ("\\t", 9)].into_iter().find(|(escape, _)| content.starts_with(escape))?;
    let count = content.len() / 2;
    (content == escape.repeat(count)).then(|| match count {
        1 => format!("chr({code})"),
        _ => format!("(chr({code}) * {count})"),
    })
}

impl<'a> Visitor<'a> for Nested<'_, '_> {
    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::FString(text) => {
                for part in &text.value {
                    let FStringPart::FString(part) = part else { continue };
                    if part.flags.is_triple_quoted() {
                        continue;
                    }
                    self.outer.push(part.flags.quote_style());
                    for element in &part.elements {
                        if let InterpolatedStringElement::Interpolation(field) = element {
                            self.visit_expr(&field.expression);
                        }
                    }
                    self.outer.pop();
                }
            }
            Expr::StringLiteral(text) if !self.outer.is_empty() => {
                text.value.iter().for_each(|literal| self.literal(literal));
            }
            _ => visitor::walk_expr(self, expression),
        }
    }
}
