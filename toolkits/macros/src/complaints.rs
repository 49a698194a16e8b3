//! What is wrong with an annotated block: all of it, each at its own place, reported at once.
//!
//! It does not know what may be wrong.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;

/// Errors collected so far.
#[derive(Default)]
pub(crate) struct Complaints(Vec<syn::Error>);

impl Complaints {
    /// Adds an error at the tokens of `place`.
    pub(crate) fn at(&mut self, place: impl ToTokens, message: impl std::fmt::Display) {
        self.0.push(syn::Error::new_spanned(place, message));
    }

    /// Adds an error at `span`.
    pub(crate) fn at_span(&mut self, span: Span, message: impl std::fmt::Display) {
        self.0.push(syn::Error::new(span, message));
    }

    /// Adds an error of the parser.
    pub(crate) fn push(&mut self, error: syn::Error) {
        self.0.push(error);
    }

    /// All errors as `compile_error!` items, or `None` if there are none.
    pub(crate) fn into_tokens(self) -> Option<TokenStream> {
        let all = self.0.into_iter().reduce(|mut all, next| {
            all.combine(next);
            all
        })?;
        Some(all.to_compile_error())
    }
}
