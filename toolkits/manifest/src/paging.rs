//! How the results of an operation follow one another, as its manifest says it.

use fimble_toolkit::Paging;

use crate::parameter::Parameter;
use crate::problem::Mistake;
use crate::written::{self, ResultKind};

/// The declared paging of an operation with those parameters.
///
/// # Errors
/// What makes no sense, at its place.
pub(crate) fn paging(
    written: &written::Paging,
    result: &ResultKind,
    parameters: &[Parameter],
) -> Result<Paging, Mistake> {
    let argument = written.argument.get_ref();
    let place = || written.argument.span();
    match parameters.iter().find(|parameter| parameter.declared.name == *argument) {
        None => {
            return Err(Mistake::at(place(), format!("`{argument}`, which asks for a page, is no parameter"))
                .with_hint("name the parameter that takes the token of a page"));
        }
        Some(parameter) if parameter.declared.required => {
            return Err(Mistake::at(place(), format!("parameter `{argument}` asks for a page and must be given"))
                .with_hint("say `required = false`: a call without it gets the first page"));
        }
        Some(_) => {}
    }
    if written.token.get_ref().is_empty() {
        return Err(Mistake::at(written.token.span(), "`token` is empty")
            .with_hint("name the field of a result that is the token of the next page"));
    }
    if *result != ResultKind::Json {
        return Err(Mistake::at(written.token.span(), "only a result of JSON has pages")
            .with_hint("say `result = \"json\"`, or leave `paging` out"));
    }
    Ok(Paging::new(argument, written.token.get_ref(), &written.items))
}
