//! The `#[toolkit]` attribute: reads an inherent `impl` block and writes the `Toolkit` implementation beside it.
//!
//! It does not know Python, the registry or the model; it writes what an author would have written by hand. Use it as
//! `fimble_toolkit::toolkit`, where it is documented.

mod complaints;
mod declared;
mod expand;
mod method;
mod name;
mod options;

use proc_macro::TokenStream;

/// Implements `Toolkit` for the type of an inherent `impl` block; documented where it is re-exported.
#[proc_macro_attribute]
pub fn toolkit(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let item = syn::parse_macro_input!(item as syn::ItemImpl);
    expand::toolkit(arguments.into(), item).into()
}
