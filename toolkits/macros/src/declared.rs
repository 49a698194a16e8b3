//! What was read from an annotated block, ready to be written out. Holds no errors: those are in `Complaints`.

use proc_macro2::TokenStream;
use syn::{Attribute, Expr, Ident, Type};

/// One operation.
pub(crate) struct Operation {
    /// The method.
    pub(crate) method: Ident,
    /// The Python name.
    pub(crate) name: String,
    /// The doc comment.
    pub(crate) description: String,
    /// The method's `#[cfg]` attributes.
    pub(crate) conditions: Vec<Attribute>,
    /// What the method takes after `&self`, in order.
    pub(crate) inputs: Vec<Input>,
    /// The `T` of its `Result<T, ToolError>`.
    pub(crate) output: Type,
    /// The variant of `Risk`.
    pub(crate) risk: Ident,
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

/// Something that a method takes.
pub(crate) enum Input {
    /// The call itself.
    Call,
    /// The call's context.
    Context,
    /// A parameter of the operation.
    Parameter(Box<Parameter>),
}

/// A parameter of an operation.
pub(crate) struct Parameter {
    /// The Rust name; its span is where type errors are reported.
    pub(crate) ident: Ident,
    /// The Python name.
    pub(crate) name: String,
    /// The doc comment, or empty.
    pub(crate) description: String,
    /// Its type.
    pub(crate) kind: Type,
    /// True for `Option<…>`.
    pub(crate) optional: bool,
    /// The value of `#[default(…)]`.
    pub(crate) default: Option<Expr>,
}
