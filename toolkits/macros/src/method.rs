//! One annotated method: what it declares, and what is wrong with it. Takes the macro's own attributes off.

use quote::ToTokens;
use syn::ext::IdentExt;
use syn::{
    Attribute, Expr, FnArg, GenericArgument, ImplItemFn, Pat, PatType, PathArguments, ReceiverKind, ReturnType, Type,
};

use crate::complaints::Complaints;
use crate::declared::{Input, Operation, Parameter};
use crate::name::python_name_problem;
use crate::options::{doc_comment, operation_options};

/// Reads a method. `None` if it is no operation, or after a complaint that leaves nothing to declare.
pub(crate) fn operation(method: &mut ImplItemFn, complaints: &mut Complaints) -> Option<Operation> {
    let attribute = take(&mut method.attrs, "operation", complaints)?;
    let options = operation_options(&attribute, complaints);
    let name = options.name.unwrap_or_else(|| {
        let name = method.sig.ident.unraw().to_string();
        if let Some(problem) = python_name_problem(&name) {
            complaints.at(&method.sig.ident, format!("{problem}; give the operation another: `name = \"…\"`"));
        }
        name
    });
    let description = doc_comment(&method.attrs);
    if description.is_empty() {
        complaints.at(&method.sig.ident, "missing doc comment: it is what the model reads about the operation");
    }
    if method.sig.asyncness.is_none() {
        complaints.at(method.sig.fn_token, "an operation is an `async fn`");
    }
    if !method.sig.generics.params.is_empty() {
        complaints.at(&method.sig.generics, "an operation cannot be generic: its schema has concrete types");
    }
    let output = result_type(&method.sig.output, &method.sig.ident, complaints);
    check_receiver(method, complaints);
    let mut inputs = Vec::new();
    for input in &mut method.sig.inputs {
        if let FnArg::Typed(argument) = input {
            inputs.extend(read_input(argument, complaints));
        }
    }
    refuse_required_after_optional(&inputs, complaints);
    Some(Operation {
        method: method.sig.ident.clone(),
        name,
        description,
        conditions: method.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg")).cloned().collect(),
        inputs,
        output: output?,
        risk: options.risk?,
        idempotent: options.idempotent,
        enabled: options.enabled,
        timeout: options.timeout,
        preview: options.preview,
        paging: options.paging,
    })
}

/// Takes the attribute of that name off; a second one is a complaint.
fn take(attributes: &mut Vec<Attribute>, name: &str, complaints: &mut Complaints) -> Option<Attribute> {
    let (mut taken, kept): (Vec<_>, Vec<_>) =
        attributes.drain(..).partition(|attribute| attribute.path().is_ident(name));
    *attributes = kept;
    if let Some(second) = taken.get(1) {
        complaints.at(second, format!("`#[{name}]` is given twice"));
    }
    (!taken.is_empty()).then(|| taken.swap_remove(0))
}

fn check_receiver(method: &ImplItemFn, complaints: &mut Complaints) {
    match method.sig.receiver() {
        None => complaints.at(&method.sig.ident, "an operation takes `&self` first"),
        Some(receiver) => {
            if !matches!(&receiver.kind, ReceiverKind::Reference(_, _, None)) {
                complaints.at(receiver, "an operation takes `&self`: calls run at the same time");
            }
        }
    }
}

/// The `T` of `Result<T, …>`.
fn result_type(output: &ReturnType, name: &impl ToTokens, complaints: &mut Complaints) -> Option<Type> {
    let message = "an operation returns `Result<T, ToolError>`";
    let ReturnType::Type(_, output) = output else {
        complaints.at(name, message);
        return None;
    };
    match first_argument(output, "Result") {
        Some(inner) => Some(inner.clone()),
        None => {
            complaints.at(output, message);
            None
        }
    }
}

fn read_input(argument: &mut PatType, complaints: &mut Complaints) -> Option<Input> {
    let default = take(&mut argument.attrs, "default", complaints);
    let description = doc_comment(&argument.attrs);
    argument.attrs.retain(|attribute| !attribute.path().is_ident("doc"));
    if let Type::Reference(reference) = &*argument.ty {
        let input = match last_word(&reference.elem).as_deref() {
            Some("Call") if reference.mutability.is_none() => Some(Input::Call),
            Some("SessionContext") if reference.mutability.is_none() => Some(Input::Context),
            _ => {
                complaints.at(
                    &argument.ty,
                    "a parameter is an owned type, e.g. `String`; only `&Call` and `&SessionContext` are references",
                );
                None
            }
        };
        if let (Some(_), Some(default)) = (&input, default) {
            complaints.at(default, "the call and its context have no default");
        }
        return input;
    }
    if let Type::ImplTrait(_) = &*argument.ty {
        complaints.at(&argument.ty, "an operation cannot be generic: its schema has concrete types");
        return None;
    }
    let ident = match &*argument.pat {
        Pat::Ident(pattern) if pattern.by_ref.is_none() && pattern.subpat.is_none() => pattern.ident.clone(),
        pattern => {
            complaints.at(pattern, "a parameter has a plain name: it is the Python name of the argument");
            return None;
        }
    };
    let name = ident.unraw().to_string();
    if let Some(problem) = python_name_problem(&name) {
        complaints.at(&ident, problem);
    }
    let default = default.and_then(|attribute| match attribute.parse_args::<Expr>() {
        Ok(value) => Some(value),
        Err(_) => {
            complaints.at(attribute, "a default is one value: `#[default(20)]`");
            None
        }
    });
    let optional = first_argument(&argument.ty, "Option").is_some();
    if let (true, Some(default)) = (optional, &default) {
        complaints.at(default, "an `Option` has the default `None`; for another, take the `Option` off the type");
    }
    let kind = (*argument.ty).clone();
    Some(Input::Parameter(Box::new(Parameter { ident, name, description, kind, optional, default })))
}

/// Python has no signature in which an argument that must be given follows one that need not.
fn refuse_required_after_optional(inputs: &[Input], complaints: &mut Complaints) {
    let mut optional = None;
    for input in inputs {
        let Input::Parameter(parameter) = input else { continue };
        match (&optional, parameter.optional || parameter.default.is_some()) {
            (_, true) => optional = Some(parameter.name.clone()),
            (Some(earlier), false) => complaints.at_span(
                parameter.ident.span(),
                format!(
                    "`{}` must be given but stands after `{earlier}`, which need not; move it forward",
                    parameter.name
                ),
            ),
            (None, false) => {}
        }
    }
}

/// The first type argument of a path that ends in `word`.
fn first_argument<'a>(kind: &'a Type, word: &str) -> Option<&'a Type> {
    let Type::Path(path) = kind else { return None };
    let last = path.path.segments.last().filter(|segment| segment.ident == word)?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(inner) => Some(inner),
        _ => None,
    })
}

fn last_word(kind: &Type) -> Option<String> {
    let Type::Path(path) = kind else { return None };
    path.path.segments.last().map(|segment| segment.ident.to_string())
}
