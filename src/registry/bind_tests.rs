//! Refusals of the binder, message by message.

use fimble_toolkit::{ErrorKind, Risk};
use rstest::rstest;
use serde_json::json;

use super::*;

/// `log(path: str, limit: int = 20, ratio: float | None = None, order: …, tags: list[str] | None = None)`.
fn log() -> Operation {
    let parameter = |name: &str, schema: Value, default: Option<Value>| Parameter {
        name: name.into(),
        description: String::new(),
        schema,
        required: default.is_none(),
        default,
    };
    let order = json!({"oneOf": [
        {"const": "newest", "description": "Newest first."},
        {"const": "oldest", "description": "Oldest first."},
    ]});
    Operation {
        name: "log".into(),
        description: "Commits.".into(),
        parameters: vec![
            parameter("path", json!({"type": "string"}), None),
            parameter("limit", json!({"type": "integer", "minimum": 0, "maximum": 100}), Some(json!(20))),
            parameter("ratio", json!({"type": ["number", "null"]}), Some(Value::Null)),
            parameter("order", order, Some(json!("newest"))),
            parameter("tags", json!({"type": ["array", "null"], "items": {"type": "string"}}), Some(Value::Null)),
        ],
        returns: json!(true),
        risk: Risk::Read,
        idempotent: true,
        timeout: None,
        enabled: true,
        paging: None,
    }
}

const SIGNATURE: &str = "parameters: path: str, limit: int = 20, ratio: float | None = None, \
     order: Literal[\"newest\", \"oldest\"] = \"newest\", tags: list[str] | None = None";

fn bound(positional: Value, keyword: Value) -> Result<Value, ToolError> {
    let (Value::Array(positional), Value::Object(keyword)) = (positional, keyword) else { panic!("a list and a map") };
    bind_call("git_toolkit.log", &log(), positional, keyword).map(Value::Object)
}

#[rstest]
#[case::by_name(json!([]), json!({"limit": 5, "path": "a"}), json!({"path": "a", "limit": 5}))]
#[case::by_position(json!(["a", 5]), json!({}), json!({"path": "a", "limit": 5}))]
#[case::mixed(json!(["a"]), json!({"tags": ["x"]}), json!({"path": "a", "tags": ["x"]}))]
#[case::int_for_float(json!([]), json!({"path": "a", "ratio": 2}), json!({"path": "a", "ratio": 2.0}))]
#[case::whole_float_for_int(json!(["a", 5.0]), json!({}), json!({"path": "a", "limit": 5}))]
#[case::none_where_it_is_taken(json!(["a"]), json!({"ratio": null}), json!({"path": "a", "ratio": null}))]
#[case::none_means_the_default(json!(["a", null]), json!({"order": null}), json!({"path": "a"}))]
fn arguments_are_bound_by_the_signature(#[case] positional: Value, #[case] keyword: Value, #[case] expected: Value) {
    // Compared as text, because the order of the arguments and `5` against `5.0` matter.
    assert_eq!(bound(positional, keyword).unwrap().to_string(), expected.to_string());
}

#[rstest]
#[case(json!([]), json!({"path": "a", "count": 5}), r#"got an unexpected argument "count"; {}"#, Some(r#"did you mean "limit"?"#))]
#[case(json!([]), json!({"path": "a", "limits": 5}), r#"got an unexpected argument "limits"; {}"#, Some(r#"did you mean "limit"?"#))]
#[case(json!([]), json!({"path": "a", "zzz": 5}), r#"got an unexpected argument "zzz"; {}"#, None)]
#[case(json!([1, 2, 3, 4, 5, 6]), json!({}), "takes at most 5 arguments, got 6; {}", None)]
#[case(json!([]), json!({}), r#"is missing the argument "path"; {}"#, None)]
#[case(json!(["a"]), json!({"path": "b"}), r#"got "path" twice, as argument 1 and by name; {}"#, None)]
#[case(json!(["a", "5"]), json!({}), r#"argument "limit" must be int, not str "5"; {}"#, Some("write 5 without quotes"))]
#[case(json!(["a", 5.5]), json!({}), r#"argument "limit" must be int, not float 5.5; {}"#, None)]
#[case(json!(["a", true]), json!({}), r#"argument "limit" must be int, not bool True; {}"#, None)]
#[case(json!(["a", -1]), json!({}), r#"argument "limit" must be at least 0, not -1; {}"#, None)]
#[case(json!(["a", 101]), json!({}), r#"argument "limit" must be at most 100, not 101; {}"#, None)]
#[case(json!([null]), json!({}), r#"argument "path" must be str, not None; {}"#, None)]
#[case(json!([7]), json!({}), r#"argument "path" must be str, not int 7; {}"#, Some(r#"write "7""#))]
#[case(json!(["a"]), json!({"ratio": "0.5"}), r#"argument "ratio" must be float | None, not str "0.5"; {}"#, Some("write 0.5 without quotes"))]
#[case(json!(["a"]), json!({"order": "newst"}), r#"argument "order" must be one of "newest", "oldest", not "newst"; {}"#, Some(r#"did you mean "newest"?"#))]
#[case(json!(["a"]), json!({"tags": "x"}), r#"argument "tags" must be list[str] | None, not str "x"; {}"#, Some(r#"write ["x"]"#))]
#[case(json!(["a"]), json!({"tags": ["x", 1]}), r#"argument "tags"[1] must be str, not int 1; {}"#, Some(r#"write "1""#))]
fn what_does_not_fit_is_refused(
    #[case] positional: Value,
    #[case] keyword: Value,
    #[case] message: &str,
    #[case] hint: Option<&str>,
) {
    let expected = ToolError {
        kind: ErrorKind::InvalidArgument,
        message: format!("git_toolkit.log() {}", message.replace("{}", SIGNATURE)),
        hint: hint.map(str::to_owned),
    };
    assert_eq!(bound(positional, keyword), Err(expected));
}

#[test]
fn an_operation_without_parameters_says_so() {
    let operation = Operation { parameters: Vec::new(), ..log() };
    let error = bind(&operation, vec![json!(1)], Map::new()).unwrap_err();
    assert_eq!(error.to_string(), "log() takes at most 0 arguments, got 1; it takes no arguments");
}

#[test]
fn objects_are_checked_by_their_declared_keys() {
    let schema = json!({"type": "object", "properties": {"port": {"type": "integer"}}, "required": ["port"]});
    let parameter = Parameter { schema, ..log().parameters.swap_remove(0) };
    let operation = Operation { parameters: vec![parameter], ..log() };
    let refused = |value: Value| bind(&operation, vec![value], Map::new()).unwrap_err().to_string();
    assert_eq!(refused(json!({})), r#"log() argument "path" has no key "port"; parameters: path: dict"#);
    assert_eq!(
        refused(json!({"port": "80"})),
        r#"log() argument "path"["port"] must be int, not str "80"; parameters: path: dict (hint: write 80 without quotes)"#
    );
    let kept = bind(&operation, vec![json!({"port": 80, "host": "a"})], Map::new()).unwrap();
    assert_eq!(Value::Object(kept), json!({"path": {"port": 80, "host": "a"}}));
}

#[test]
fn a_schema_that_says_nothing_takes_everything() {
    for schema in [json!(true), json!({}), json!({"$ref": "#/$defs/Node"}), json!({"type": "unheard-of"})] {
        let parameter = Parameter { schema: schema.clone(), ..log().parameters.swap_remove(0) };
        let operation = Operation { parameters: vec![parameter], ..log() };
        let bound = bind(&operation, vec![json!([1, "a"])], Map::new()).unwrap();
        assert_eq!(Value::Object(bound), json!({"path": [1, "a"]}), "{schema}");
    }
}

#[test]
fn bytes_are_base64_where_that_is_declared_and_themselves_where_anything_goes() {
    let bytes = || json!({"$": "bytes", "v": "AAE="});
    for schema in [json!({"type": "string", "contentEncoding": "base64"}), json!({"type": "string", "format": "byte"})]
    {
        assert_eq!(fit(bytes(), &schema).unwrap(), json!("AAE="));
    }
    let nullable = json!({"anyOf": [{"type": "string", "format": "byte"}, {"type": "null"}]});
    assert_eq!(fit(bytes(), &nullable).unwrap(), json!("AAE="));
    let image = json!({"type": "object", "properties": {"data": {"type": "string", "format": "byte"}}});
    assert_eq!(fit(json!({"data": bytes()}), &image).unwrap(), json!({"data": "AAE="}));
    for schema in [json!(true), json!({}), json!({"type": "object"})] {
        assert_eq!(fit(bytes(), &schema).unwrap(), bytes());
    }
    let misfit = fit(bytes(), &json!({"type": "string"})).unwrap_err();
    assert_eq!(misfit.problem, "must be str, not bytes");
    assert!(misfit.hint.unwrap().contains("base64.b64encode(value).decode()"));
}
