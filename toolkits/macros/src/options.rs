//! The words in `#[toolkit(…)]` and `#[operation(…)]`, and doc comments.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Attribute, Expr, ExprLit, Ident, Lit, LitStr, Meta, Token, parenthesized, token};

use crate::complaints::Complaints;
use crate::name::python_name_problem;

/// The toolkit's name. `None` after a complaint.
pub(crate) fn toolkit_name(arguments: TokenStream, complaints: &mut Complaints) -> Option<String> {
    let empty = arguments.is_empty();
    let words = match syn::parse2::<Words>(arguments) {
        Ok(words) => words.0,
        Err(error) => {
            complaints.push(error);
            return None;
        }
    };
    let mut name = None;
    for word in &words {
        match word.key.to_string().as_str() {
            "name" => name = word.string(complaints),
            other => complaints.at(&word.key, format!("unknown key `{other}`: `#[toolkit]` takes `name`")),
        }
    }
    refuse_repeated(&words, complaints);
    if empty || !words.iter().any(|word| word.key == "name") {
        complaints.at_span(Span::call_site(), "missing name: write `#[toolkit(name = \"…_toolkit\")]`");
    }
    checked_name(name?, complaints)
}

/// What `#[operation(…)]` says.
pub(crate) struct OperationOptions {
    /// The variant of `Risk`; `None` after a complaint.
    pub(crate) risk: Option<Ident>,
    /// The Python name, if it is not the method's.
    pub(crate) name: Option<String>,
    /// Whether repeating the call has no further effect.
    pub(crate) idempotent: bool,
    /// Whether it is shown and called.
    pub(crate) enabled: bool,
    /// An expression of type `Option<Duration>`.
    pub(crate) timeout: TokenStream,
    /// The method that says what a call would do.
    pub(crate) preview: Option<Ident>,
    /// An expression of type `Option<Paging>`.
    pub(crate) paging: TokenStream,
}

/// Reads `#[operation(…)]`.
pub(crate) fn operation_options(attribute: &Attribute, complaints: &mut Complaints) -> OperationOptions {
    let mut options = OperationOptions {
        risk: None,
        name: None,
        idempotent: false,
        enabled: true,
        timeout: quote!(::core::option::Option::None),
        preview: None,
        paging: quote!(::core::option::Option::None),
    };
    let words = match &attribute.meta {
        Meta::Path(_) => Vec::new(),
        _ => match attribute.parse_args::<Words>() {
            Ok(words) => words.0,
            Err(error) => {
                complaints.push(error);
                return options;
            }
        },
    };
    let mut idempotent = None;
    for word in &words {
        match word.key.to_string().as_str() {
            "risk" => options.risk = word.string(complaints).and_then(|risk| risk_variant(&risk, complaints)),
            "name" => options.name = word.string(complaints).and_then(|name| checked_name(name, complaints)),
            "idempotent" => idempotent = word.boolean(complaints),
            "enabled" => options.enabled = word.boolean(complaints).unwrap_or(true),
            "preview" => options.preview = word.string(complaints).and_then(|name| method_name(&name, complaints)),
            "timeout_s" => options.timeout = word.seconds(complaints).unwrap_or(options.timeout),
            "paging" => options.paging = word.paging(complaints).unwrap_or(options.paging),
            other => complaints.at(
                &word.key,
                format!(
                    "unknown key `{other}`: `#[operation]` takes `risk`, `idempotent`, `timeout_s`, `enabled`, `preview`, \
                     `paging` and `name`"
                ),
            ),
        }
    }
    refuse_repeated(&words, complaints);
    if !words.iter().any(|word| word.key == "risk") {
        complaints.at(
            attribute,
            "missing risk: write `#[operation(risk = \"read\")]`, or \"write\" or \"destructive\" if it changes something",
        );
    }
    // Looking twice changes nothing, so a read needs no word for it.
    options.idempotent = idempotent.unwrap_or_else(|| options.risk.as_ref().is_some_and(|risk| risk == "Read"));
    options
}

/// The doc comment of `attributes`: its lines, without the space after `///`, trimmed.
pub(crate) fn doc_comment(attributes: &[Attribute]) -> String {
    let mut lines = Vec::new();
    for attribute in attributes {
        let Meta::NameValue(pair) = &attribute.meta else { continue };
        let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &pair.value else { continue };
        if pair.path.is_ident("doc") {
            let text = text.value();
            lines.extend(text.lines().map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end().to_owned()));
            if text.is_empty() {
                lines.push(String::new());
            }
        }
    }
    lines.join("\n").trim().to_owned()
}

/// `key`, `key = value` or `key(…)`, separated by commas.
struct Words(Vec<Word>);

struct Word {
    key: Ident,
    value: Option<Lit>,
    inner: Option<Words>,
}

impl Parse for Words {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        Ok(Self(Punctuated::<Word, Token![,]>::parse_terminated(input)?.into_iter().collect()))
    }
}

impl Parse for Word {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let key: Ident = input.parse()?;
        if key == "paging" && input.peek(token::Paren) {
            let inner;
            parenthesized!(inner in input);
            return Ok(Self { key, value: None, inner: Some(inner.parse()?) });
        }
        let value = match input.parse::<Option<Token![=]>>()? {
            Some(_) => Some(input.parse()?),
            None => None,
        };
        Ok(Self { key, value, inner: None })
    }
}

impl Word {
    fn string(&self, complaints: &mut Complaints) -> Option<LitStr> {
        if let Some(Lit::Str(text)) = &self.value {
            return Some(text.clone());
        }
        complaints.at_span(self.place(), format!("`{0}` takes a string: `{0} = \"…\"`", self.key));
        None
    }

    fn boolean(&self, complaints: &mut Complaints) -> Option<bool> {
        match &self.value {
            None => Some(true),
            Some(Lit::Bool(value)) => Some(value.value),
            Some(other) => {
                complaints.at(other, format!("`{}` takes `true` or `false`", self.key));
                None
            }
        }
    }

    fn seconds(&self, complaints: &mut Complaints) -> Option<TokenStream> {
        let seconds = match &self.value {
            Some(Lit::Int(value)) => value.base10_parse::<f64>().ok(),
            Some(Lit::Float(value)) => value.base10_parse::<f64>().ok(),
            _ => None,
        };
        // Beyond a day it is a mistake of unit, and `Duration` must not overflow.
        match seconds {
            Some(seconds) if seconds > 0.0 && seconds <= 86_400.0 => {
                Some(quote!(::core::option::Option::Some(::core::time::Duration::from_secs_f64(#seconds))))
            }
            _ => {
                complaints.at_span(
                    self.place(),
                    format!("`{}` takes a number of seconds above 0 and up to 86400: `{} = 10`", self.key, self.key),
                );
                None
            }
        }
    }

    /// `paging(argument = "cursor", token = "next", items = "rows")`
    fn paging(&self, complaints: &mut Complaints) -> Option<TokenStream> {
        let Some(Words(words)) = &self.inner else {
            complaints.at_span(
                self.place(),
                "`paging` takes three names: `paging(argument = \"cursor\", token = \"next\", items = \"rows\")`",
            );
            return None;
        };
        let names = ["argument", "token", "items"];
        for word in words.iter().filter(|word| !names.contains(&word.key.to_string().as_str())) {
            complaints
                .at(&word.key, format!("unknown key `{}`: `paging` takes `argument`, `token` and `items`", word.key));
        }
        refuse_repeated(words, complaints);
        let mut said = |name: &str| match words.iter().find(|word| word.key == name) {
            Some(word) => word.string(complaints),
            None => {
                complaints.at(&self.key, format!("missing {name}: write `{name} = \"…\"` in `paging(…)`"));
                None
            }
        };
        let (argument, token, items) = (said("argument"), said("token"), said("items"));
        let (argument, token, items) = (argument?, token?, items?);
        Some(quote!(::core::option::Option::Some(::fimble_toolkit::Paging::new(#argument, #token, #items))))
    }

    fn place(&self) -> Span {
        self.value.as_ref().map_or_else(|| self.key.span(), Spanned::span)
    }
}

fn refuse_repeated(words: &[Word], complaints: &mut Complaints) {
    for (index, word) in words.iter().enumerate() {
        if words.iter().take(index).any(|earlier| earlier.key == word.key) {
            complaints.at(&word.key, format!("`{}` is given twice", word.key));
        }
    }
}

fn risk_variant(risk: &LitStr, complaints: &mut Complaints) -> Option<Ident> {
    let variant = match risk.value().as_str() {
        "read" => "Read",
        "write" => "Write",
        "destructive" => "Destructive",
        other => {
            complaints.at(risk, format!("unknown risk `{other}`: it is \"read\", \"write\" or \"destructive\""));
            return None;
        }
    };
    Some(Ident::new(variant, risk.span()))
}

fn method_name(name: &LitStr, complaints: &mut Complaints) -> Option<Ident> {
    match name.parse::<Ident>() {
        Ok(ident) => Some(ident),
        Err(_) => {
            complaints.at(name, "`preview` takes the name of a method: `preview = \"preview_set\"`");
            None
        }
    }
}

fn checked_name(name: LitStr, complaints: &mut Complaints) -> Option<String> {
    if let Some(problem) = python_name_problem(&name.value()) {
        complaints.at(&name, problem);
        return None;
    }
    Some(name.value())
}
