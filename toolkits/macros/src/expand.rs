//! The annotated block with the macro's attributes taken off, and the `Toolkit` implementation beside it.
//!
//! All names in the expansion are absolute, so that it means the same in every crate.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{ImplItem, ItemImpl};

use crate::complaints::Complaints;
use crate::declared::{Input, Operation, Parameter};
use crate::{method, options};

/// The whole expansion of `#[toolkit(…)]`.
pub(crate) fn toolkit(arguments: TokenStream, mut block: ItemImpl) -> TokenStream {
    let mut complaints = Complaints::default();
    let name = options::toolkit_name(arguments, &mut complaints);
    let inherent = match &block.trait_ {
        Some((path, _)) => {
            complaints.at(path, "`#[toolkit]` stands on an inherent `impl` block, not on the `impl` of a trait");
            false
        }
        None => true,
    };
    if !block.generics.params.is_empty() {
        complaints.at(&block.generics, "a toolkit is one concrete type: its schemas are made once");
    }
    let description = options::doc_comment(&block.attrs);
    if description.is_empty() {
        complaints.at(&block.self_ty, "missing doc comment: it is what the model reads about the toolkit");
    }
    let (annotated, operations) = read_operations(&mut block, &mut complaints);
    if annotated == 0 {
        complaints.at(&block.self_ty, "no operations: mark the methods with `#[operation(risk = \"read\")]`");
    }
    match (complaints.into_tokens(), name) {
        (None, Some(name)) => {
            let implementation = implementation(&block, &name, &description, &operations);
            quote!(#block #implementation)
        }
        // The user's own item stays, and so does a `Toolkit` implementation: one mistake must not become fifty.
        (errors, _) if inherent && block.generics.params.is_empty() => {
            let implementation = stand_in(&block);
            quote!(#block #implementation #errors)
        }
        (errors, _) => quote!(#block #errors),
    }
}

/// How many methods are annotated, and the operations that could be read.
fn read_operations(block: &mut ItemImpl, complaints: &mut Complaints) -> (usize, Vec<Operation>) {
    let mut annotated = 0;
    let mut operations: Vec<Operation> = Vec::new();
    for item in &mut block.items {
        let ImplItem::Fn(method) = item else { continue };
        annotated += usize::from(method.attrs.iter().any(|attribute| attribute.path().is_ident("operation")));
        let Some(operation) = method::operation(method, complaints) else { continue };
        // Two of the same name may exclude each other by `#[cfg]`; the registry refuses them if they do not.
        let taken = |other: &Operation| other.name == operation.name && other.conditions.is_empty();
        if operation.conditions.is_empty() && operations.iter().any(taken) {
            complaints.at(&operation.method, format!("there is already an operation `{}`", operation.name));
        }
        operations.push(operation);
    }
    (annotated, operations)
}

fn implementation(block: &ItemImpl, name: &str, description: &str, operations: &[Operation]) -> TokenStream {
    let kind = &block.self_ty;
    let declarations = operations.iter().map(declaration);
    let arms = operations.iter().map(arm);
    let preview = preview(operations);
    let conditions: Vec<_> = block.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg")).collect();
    quote! {
        #(#conditions)*
        #[::fimble_toolkit::expansion::async_trait]
        impl ::fimble_toolkit::Toolkit for #kind {
            fn declaration(&self) -> ::fimble_toolkit::Declaration {
                static DECLARATION: ::std::sync::OnceLock<::fimble_toolkit::Declaration> = ::std::sync::OnceLock::new();
                ::std::clone::Clone::clone(DECLARATION.get_or_init(|| {
                    let mut operations = ::std::vec::Vec::new();
                    #(#declarations)*
                    ::fimble_toolkit::Declaration {
                        name: ::std::string::String::from(#name),
                        description: ::std::string::String::from(#description),
                        operations,
                    }
                }))
            }

            async fn call(
                &self,
                call: ::fimble_toolkit::Call,
            ) -> ::core::result::Result<
                ::fimble_toolkit::expansion::serde_json::Value,
                ::fimble_toolkit::ToolError,
            > {
                match ::std::string::String::as_str(&call.operation) {
                    #(#arms)*
                    _ => ::core::result::Result::Err(::fimble_toolkit::expansion::unknown_operation(self, &call)),
                }
            }

            #preview
        }
    }
}

/// The trait's method where an operation has a preview; its default does where none has.
fn preview(operations: &[Operation]) -> TokenStream {
    let arms = operations.iter().filter_map(|operation| {
        let Operation { name, conditions, preview, .. } = operation;
        let preview = preview.as_ref()?;
        Some(quote!(#(#conditions)* #name => self.#preview(call).await,))
    });
    let arms: Vec<_> = arms.collect();
    if arms.is_empty() {
        return TokenStream::new();
    }
    quote! {
        async fn preview(
            &self,
            call: &::fimble_toolkit::Call,
        ) -> ::core::result::Result<::core::option::Option<::fimble_toolkit::Preview>, ::fimble_toolkit::ToolError> {
            match ::std::string::String::as_str(&call.operation) {
                #(#arms)*
                _ => ::core::result::Result::Ok(::core::option::Option::None),
            }
        }
    }
}

fn stand_in(block: &ItemImpl) -> TokenStream {
    let kind = &block.self_ty;
    quote! {
        #[::fimble_toolkit::expansion::async_trait]
        impl ::fimble_toolkit::Toolkit for #kind {
            fn declaration(&self) -> ::fimble_toolkit::Declaration {
                loop {}
            }
            async fn call(
                &self,
                _: ::fimble_toolkit::Call,
            ) -> ::core::result::Result<
                ::fimble_toolkit::expansion::serde_json::Value,
                ::fimble_toolkit::ToolError,
            > {
                loop {}
            }
        }
    }
}

fn declaration(operation: &Operation) -> TokenStream {
    let Operation { name, description, conditions, output, risk, idempotent, enabled, timeout, paging, .. } = operation;
    let parameters = operation.inputs.iter().filter_map(|input| match input {
        Input::Parameter(parameter) => Some(parameter_declaration(parameter)),
        Input::Call | Input::Context => None,
    });
    // A type without a schema is reported where the author wrote the type.
    let returns = quote_spanned!(output.span() => ::fimble_toolkit::expansion::result_schema::<#output>());
    quote! {
        #(#conditions)*
        operations.push(::fimble_toolkit::Operation {
            name: ::std::string::String::from(#name),
            description: ::std::string::String::from(#description),
            parameters: ::std::vec![#(#parameters),*],
            returns: #returns,
            risk: ::fimble_toolkit::Risk::#risk,
            idempotent: #idempotent,
            timeout: #timeout,
            enabled: #enabled,
            paging: #paging,
        });
    }
}

fn parameter_declaration(parameter: &Parameter) -> TokenStream {
    let Parameter { name, description, kind, optional, .. } = parameter;
    let schema = quote_spanned!(kind.span() => ::fimble_toolkit::expansion::argument_schema::<#kind>());
    let default = match default_value(parameter) {
        Some(value) => {
            quote!(::core::option::Option::Some(::fimble_toolkit::expansion::default_value::<#kind>(#value)))
        }
        None if *optional => {
            quote!(::core::option::Option::Some(::fimble_toolkit::expansion::serde_json::Value::Null))
        }
        None => quote!(::core::option::Option::None),
    };
    let required = !optional && parameter.default.is_none();
    quote! {
        ::fimble_toolkit::Parameter {
            name: ::std::string::String::from(#name),
            description: ::std::string::String::from(#description),
            schema: #schema,
            required: #required,
            default: #default,
        }
    }
}

fn arm(operation: &Operation) -> TokenStream {
    let Operation { method, name, conditions, inputs, .. } = operation;
    let arguments = inputs.iter().map(|input| match input {
        Input::Call => quote!(&call),
        Input::Context => quote!(&call.context),
        Input::Parameter(parameter) => argument(parameter),
    });
    quote! {
        #(#conditions)*
        #name => ::fimble_toolkit::expansion::result(#name, self.#method(#(#arguments),*).await?),
    }
}

fn argument(parameter: &Parameter) -> TokenStream {
    let Parameter { name, kind, .. } = parameter;
    match default_value(parameter) {
        Some(value) => {
            quote_spanned! { kind.span() =>
                ::fimble_toolkit::expansion::argument_or::<#kind>(&call, #name, || #value)?
            }
        }
        None => quote_spanned!(kind.span() => call.argument::<#kind>(#name)?),
    }
}

/// The default as an expression of the parameter's type. A string literal is `&str`, and the parameter an owned type.
fn default_value(parameter: &Parameter) -> Option<TokenStream> {
    let default = parameter.default.as_ref()?;
    Some(match default {
        syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => {
            quote_spanned!(default.span() => ::std::string::String::from(#text))
        }
        other => quote!(#other),
    })
}
