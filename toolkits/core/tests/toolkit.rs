//! What `#[toolkit]` makes of a block: the declaration as whole values, and calls through it.

use std::time::Duration;

use fimble_toolkit::{
    Call, Declaration, ErrorKind, Operation, Paging, Parameter, Risk, SessionContext, ToolError, Toolkit, toolkit,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

struct Shelf;

/// A book.
#[derive(Serialize, JsonSchema)]
struct Book {
    /// The title.
    title: String,
    /// Who wrote it.
    author: Person,
}

#[derive(Serialize, JsonSchema)]
struct Person {
    name: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Node {
    children: Vec<Node>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Order {
    Title,
    Author,
}

/// Books on a shelf.
///
/// There is one shelf.
#[toolkit(name = "shelf_toolkit")]
impl Shelf {
    /// Books in some order.
    #[operation(risk = "read", timeout_s = 2.5)]
    async fn list(
        &self,
        /// Where it stands.
        shelf: String,
        #[default(20)]
        /// Most books to return.
        limit: u32,
        #[default(Order::Title)] order: Order,
        author: Option<String>,
        #[default("en")] language: String,
    ) -> Result<Vec<Book>, ToolError> {
        let order = match order {
            Order::Title => "title",
            Order::Author => "author",
        };
        let title = format!("{shelf} {limit} {order} {language}");
        Ok(vec![Book { title, author: Person { name: author } }])
    }

    /// Burns a book.
    #[operation(risk = "destructive", name = "burn", enabled = false)]
    async fn burn_book(&self) -> Result<(), ToolError> {
        self.plain().await
    }

    /// Who asks.
    #[operation(risk = "write", idempotent)]
    async fn who(&self, context: &SessionContext, r#type: Option<bool>, call: &Call) -> Result<String, ToolError> {
        Ok(format!("{} {} {type:?}", context.user, call.key))
    }

    /// A tree.
    #[operation(risk = "read", idempotent = false)]
    async fn tree(&self) -> Result<Vec<Node>, ToolError> {
        Ok(vec![Node { children: Vec::new() }])
    }

    /// Not an operation.
    async fn plain(&self) -> Result<(), ToolError> {
        Err(ToolError::failed("the book is damp"))
    }
}

fn call(operation: &str, arguments: Value) -> Call {
    Call {
        operation: operation.into(),
        arguments: arguments.as_object().cloned().unwrap_or_else(Map::new),
        key: "k1".into(),
        context: SessionContext { user: "ada".into(), ..SessionContext::default() },
        cancellation: tokio_util::sync::CancellationToken::new(),
    }
}

fn parameter(name: &str, description: &str, schema: Value, default: Option<Value>) -> Parameter {
    Parameter { name: name.into(), description: description.into(), schema, required: default.is_none(), default }
}

#[test]
fn declaration_holds_all_that_the_block_says() {
    let expected = Declaration {
        name: "shelf_toolkit".into(),
        description: "Books on a shelf.\n\nThere is one shelf.".into(),
        operations: vec![
            Operation {
                name: "list".into(),
                description: "Books in some order.".into(),
                parameters: vec![
                    parameter("shelf", "Where it stands.", json!({"type": "string"}), None),
                    parameter(
                        "limit",
                        "Most books to return.",
                        json!({"type": "integer", "format": "uint32", "minimum": 0}),
                        Some(json!(20)),
                    ),
                    parameter(
                        "order",
                        "",
                        json!({"type": "string", "enum": ["title", "author"]}),
                        Some(json!("title")),
                    ),
                    parameter("author", "", json!({"type": ["string", "null"]}), Some(Value::Null)),
                    parameter("language", "", json!({"type": "string"}), Some(json!("en"))),
                ],
                returns: json!({"type": "array", "items": {
                    "title": "Book",
                    "description": "A book.",
                    "type": "object",
                    "properties": {
                        "title": {"type": "string", "description": "The title."},
                        "author": {
                            "title": "Person",
                            "description": "Who wrote it.",
                            "type": "object",
                            "properties": {"name": {"type": ["string", "null"]}},
                            "required": ["name"],
                        },
                    },
                    "required": ["title", "author"],
                }}),
                risk: Risk::Read,
                idempotent: true,
                timeout: Some(Duration::from_millis(2_500)),
                enabled: true,
                paging: None,
            },
            Operation {
                name: "burn".into(),
                description: "Burns a book.".into(),
                parameters: Vec::new(),
                returns: json!({"type": "null"}),
                risk: Risk::Destructive,
                idempotent: false,
                timeout: None,
                enabled: false,
                paging: None,
            },
            Operation {
                name: "who".into(),
                description: "Who asks.".into(),
                parameters: vec![parameter("type", "", json!({"type": ["boolean", "null"]}), Some(Value::Null))],
                returns: json!({"type": "string"}),
                risk: Risk::Write,
                idempotent: true,
                timeout: None,
                enabled: true,
                paging: None,
            },
            Operation {
                name: "tree".into(),
                description: "A tree.".into(),
                parameters: Vec::new(),
                returns: json!({
                    "type": "array",
                    "items": {
                        "title": "Node",
                        "type": "object",
                        "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
                        "required": ["children"],
                    },
                    "$defs": {"Node": {
                        "type": "object",
                        "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
                        "required": ["children"],
                    }},
                }),
                risk: Risk::Read,
                idempotent: false,
                timeout: None,
                enabled: true,
                paging: None,
            },
        ],
    };
    assert_eq!(Shelf.declaration(), expected);
}

struct Pages;

/// Numbers, page by page.
#[toolkit(name = "pages_toolkit")]
impl Pages {
    /// Some numbers.
    #[operation(risk = "read", paging(argument = "cursor", token = "meta.next", items = "rows"))]
    async fn numbers(&self, cursor: Option<String>) -> Result<Value, ToolError> {
        Ok(json!({"rows": [cursor], "meta": {"next": null}}))
    }
}

#[tokio::test]
async fn an_operation_may_have_pages() {
    let operation = Pages.declaration().operations.remove(0);
    let path = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let expected = Paging { argument: "cursor".into(), token: path(&["meta", "next"]), items: path(&["rows"]) };
    assert_eq!(operation.paging, Some(expected));
    let written = serde_json::to_value(&operation).unwrap();
    assert_eq!(written["paging"], json!({"argument": "cursor", "token": ["meta", "next"], "items": ["rows"]}));
    assert_eq!(serde_json::from_value::<Operation>(written).unwrap().paging, operation.paging);
    let without = serde_json::to_value(&Shelf.declaration().operations[0]).unwrap();
    assert!(without.get("paging").is_none(), "{without}");
    let result = Pages.call(call("numbers", json!({"cursor": "b"}))).await;
    assert_eq!(result, Ok(json!({"rows": ["b"], "meta": {"next": null}})));
}

#[tokio::test]
async fn defaults_fill_what_was_not_given() {
    let result = Shelf.call(call("list", json!({"shelf": "top"}))).await.unwrap();
    assert_eq!(result, json!([{"title": "top 20 title en", "author": {"name": null}}]));
}

#[tokio::test]
async fn arguments_reach_the_method() {
    let arguments = json!({"shelf": "top", "limit": 3, "order": "author", "author": "Ada", "language": "fr"});
    let result = Shelf.call(call("list", arguments)).await.unwrap();
    assert_eq!(result, json!([{"title": "top 3 author fr", "author": {"name": "Ada"}}]));
}

#[tokio::test]
async fn call_and_context_are_handed_in() {
    assert_eq!(Shelf.call(call("who", json!({"type": true}))).await.unwrap(), json!("ada k1 Some(true)"));
}

#[tokio::test]
async fn failures_name_the_operation_and_the_parameter() {
    let wrong = Shelf.call(call("list", json!({"shelf": 5}))).await.unwrap_err();
    assert_eq!(
        wrong,
        ToolError::invalid_argument("list: argument `shelf`: invalid type: integer `5`, expected a string")
    );
    let unknown = Shelf.call(call("plain", json!({}))).await.unwrap_err();
    assert_eq!(
        unknown,
        ToolError::new(ErrorKind::UnknownOperation, "shelf_toolkit has no operation `plain`")
            .with_hint("it has list, burn, who, tree")
    );
    assert_eq!(Shelf.call(call("burn", json!({}))).await.unwrap_err(), ToolError::failed("the book is damp"));
}
