//! `card_toolkit`: what a program shows to a person beside text. One per round, like `system_toolkit`: it acts on nothing
//! outside the conversation, and an answer that takes long suspends the round.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use fimble_card::{Card, ChartStyle, Field, Limits};
use fimble_toolkit::{Call, Declaration, Operation, Parameter, Risk, ToolError, Toolkit};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::effects::{Effects, ShownCard};
use super::patience::{Patience, Suspension};
use super::replay::Teller;
use super::{Secrets, answer};
use crate::event::{Custom, EventKind};
use crate::record::{CallRecord, CallStatus};

/// The name that programs call it by.
pub const NAME: &str = "card_toolkit";

/// Answers that do not fit before a card is given up.
const TRIES: u32 = 5;

/// How long a person may take.
const PATIENCE: Duration = Duration::from_secs(86_400);

/// The toolkit of one round.
pub(super) struct Cards {
    pub(super) effects: Arc<Effects>,
    pub(super) teller: Teller,
    pub(super) patience: Arc<Patience>,
    pub(super) secrets: Secrets,
    /// Where progress is shown, by its title.
    pub(super) surfaces: Mutex<BTreeMap<String, String>>,
}

#[async_trait]
impl Toolkit for Cards {
    fn declaration(&self) -> Declaration {
        declaration()
    }

    async fn call(&self, call: Call) -> Result<Value, ToolError> {
        let card = card_of(&call.operation, &call.arguments, &self.secrets)?;
        self.tell(&call.key, &card);
        if !card.asks() {
            self.effects.add_card(shown(&card, None));
            return Ok(Value::Null);
        }
        let text = card.text();
        let mut question = text.clone();
        for _ in 0..TRIES {
            let said = match self.patience.answer(&question, &[]).await {
                Ok(said) => said,
                Err(end) => {
                    let suspension = Suspension { on: answer::CARD, call: call.key, text, end };
                    return self.patience.suspend(suspension).await;
                }
            };
            match reply(&card, &call.key, &said, &self.secrets) {
                Ok(result) => {
                    self.answered(&call.key, &card, &result);
                    return Ok(result);
                }
                Err(problem) => question = format!("{problem}\n{text}"),
            }
        }
        Err(ToolError::failed("the person gave no answer that fits the card")
            .with_hint("ask in another way, or go on without"))
    }
}

impl Cards {
    /// Does to the conversation what a call did that is answered from the journal.
    pub(super) fn repeat(&self, record: &CallRecord) {
        let CallStatus::Done { result } = &record.status else { return };
        let Ok(card) = card_of(&record.operation, &record.arguments, &self.secrets) else { return };
        self.tell(&record.key, &card);
        if card.asks() {
            self.answered(&record.key, &card, result);
        } else {
            self.effects.add_card(shown(&card, None));
        }
    }

    /// Shows the card to front ends.
    fn tell(&self, key: &str, card: &Card) {
        let mut surface = surface(key);
        let mut messages = None;
        if let Card::Progress { title, .. } = card {
            let mut surfaces = self.surfaces.lock().unwrap_or_else(PoisonError::into_inner);
            match surfaces.get(title) {
                Some(there) => {
                    surface.clone_from(there);
                    messages = Some(card.update(there));
                }
                None => drop(surfaces.insert(title.clone(), surface.clone())),
            }
        }
        self.teller.emit(EventKind::Custom(Custom::Card {
            id: key.to_owned(),
            messages: messages.unwrap_or_else(|| card.messages(&surface)),
            surface,
            card: serde_json::to_value(card).unwrap_or_default(),
            text: card.text(),
            asks: card.asks(),
        }));
    }

    fn answered(&self, key: &str, card: &Card, result: &Value) {
        self.teller.emit(EventKind::Custom(Custom::CardAnswered { id: key.to_owned(), answer: result.clone() }));
        self.effects.add_card(shown(card, Some(result)));
    }
}

/// What a card is in the conversation. What shows something is an answer to the user; progress is none.
fn shown(card: &Card, answer: Option<&Value>) -> ShownCard {
    ShownCard {
        text: card.text(),
        answer: answer.map(|answer| answer.as_str().map_or_else(|| answer.to_string(), str::to_owned)),
        replies: matches!(card, Card::Table { .. } | Card::Chart { .. } | Card::Links { .. }),
    }
}

/// What the program gets for an answer to the card of the call with that key.
pub(super) fn reply(card: &Card, key: &str, said: &str, secrets: &Secrets) -> Result<Value, String> {
    let mut result = card.reply(&surface(key), said)?;
    secrets.mask_value(&mut result);
    Ok(result)
}

/// Where the card of the call with that key is shown.
fn surface(key: &str) -> String {
    format!("card-{key}")
}

/// The card of a call, as it may be shown.
pub(super) fn card_of(operation: &str, arguments: &Map<String, Value>, secrets: &Secrets) -> Result<Card, ToolError> {
    let mut shown = Value::Object(arguments.clone());
    secrets.mask_value(&mut shown);
    let title = || argument::<String>(&shown, "title");
    let card = match operation {
        "hand_over" => {
            let summary = argument::<Option<String>>(&shown, "summary")?.unwrap_or_default();
            Card::HandOver { reason: argument(&shown, "reason")?, summary }
        }
        "confirm" => {
            let risk = argument::<Option<Risk>>(&shown, "risk")?.unwrap_or(Risk::Write);
            Card::Operation { title: title()?, details: pairs(&shown["details"]), risk }
        }
        "choose" => Card::Choice { title: title()?, options: argument(&shown, "options")?, many: false },
        "choose_many" => Card::Choice { title: title()?, options: argument(&shown, "options")?, many: true },
        "form" => Card::Form { title: title()?, fields: argument::<Vec<Field>>(&shown, "fields")? },
        "table" => table(title()?, &shown)?,
        "chart" => {
            let style = argument::<Option<ChartStyle>>(&shown, "style")?.unwrap_or_default();
            let values: Map<String, Value> = argument(&shown, "values")?;
            let point = |(label, value): (String, Value)| match value.as_f64() {
                Some(value) => Ok((label, value)),
                None => Err(ToolError::invalid_argument(format!("the value of `{label}` is no number"))),
            };
            Card::Chart { title: title()?, style, points: values.into_iter().map(point).collect::<Result<_, _>>()? }
        }
        "links" => Card::Links { title: title()?, links: pairs(&shown["links"]) },
        _ => {
            let note = argument::<Option<String>>(&shown, "note")?.unwrap_or_default();
            Card::Progress { title: title()?, done: argument(&shown, "done")?, total: argument(&shown, "total")?, note }
        }
    };
    card.checked(&Limits::default())
}

fn table(title: String, shown: &Value) -> Result<Card, ToolError> {
    let rows: Vec<Map<String, Value>> = argument(shown, "rows")?;
    let columns = match argument::<Option<Vec<String>>>(shown, "columns")? {
        Some(columns) => columns,
        None => {
            let mut columns: Vec<String> = Vec::new();
            for name in rows.iter().flat_map(Map::keys) {
                if !columns.contains(name) {
                    columns.push(name.clone());
                }
            }
            columns
        }
    };
    let rows = rows.iter().map(|row| columns.iter().map(|name| cell(row.get(name).unwrap_or(&Value::Null))).collect());
    Ok(Card::Table { title, rows: rows.collect(), columns })
}

fn pairs(fields: &Value) -> Vec<(String, String)> {
    fields.as_object().into_iter().flatten().map(|(name, value)| (name.clone(), cell(value))).collect()
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

fn argument<T: DeserializeOwned>(arguments: &Value, name: &str) -> Result<T, ToolError> {
    serde_json::from_value(arguments[name].clone())
        .map_err(|error| ToolError::invalid_argument(format!("argument `{name}`: {error}")))
}

/// The declaration, which is the same in every round.
pub(super) fn declaration() -> Declaration {
    let text = || json!({"type": "string"});
    let texts = || json!({"type": "array", "items": {"type": "string"}});
    let object = |of: Value| json!({"type": "object", "additionalProperties": of});
    let required = |name: &str, schema: Value| parameter(name, schema, true);
    let optional = |name: &str, schema: Value| parameter(name, schema, false);
    let mut field = serde_json::to_value(schemars::schema_for!(Field)).unwrap_or_default();
    field["title"] = Value::from("Field");
    // What it refers to is looked for at the root of the parameter's schema.
    let parts = field["$defs"].take();
    let fields = json!({"type": "array", "items": field, "$defs": parts});
    let operations = vec![
        operation(
            "hand_over",
            "Let a person take over, and wait for what they say.",
            vec![required("reason", text()), optional("summary", text())],
            text(),
        ),
        operation(
            "confirm",
            "Ask a person to confirm what you are about to do.",
            vec![
                required("title", text()),
                optional("details", object(json!(true))),
                optional("risk", json!({"enum": ["read", "write", "destructive"]})),
            ],
            json!({"type": "boolean"}),
        ),
        operation(
            "choose",
            "Let a person choose one option.",
            vec![required("title", text()), required("options", texts())],
            text(),
        ),
        operation(
            "choose_many",
            "Let a person choose any number of options.",
            vec![required("title", text()), required("options", texts())],
            texts(),
        ),
        operation(
            "form",
            "Let a person fill in fields; returns their values by name.",
            vec![required("title", text()), required("fields", fields)],
            json!({"type": "object"}),
        ),
        operation(
            "table",
            "Show rows to the user.",
            vec![
                required("title", text()),
                required("rows", json!({"type": "array", "items": {"type": "object"}})),
                optional("columns", texts()),
            ],
            json!({"type": "null"}),
        ),
        operation(
            "chart",
            "Show numbers by label to the user.",
            vec![
                required("title", text()),
                required("values", object(json!({"type": "number"}))),
                optional("style", json!({"enum": ["bar", "line"]})),
            ],
            json!({"type": "null"}),
        ),
        operation(
            "links",
            "Show addresses by label to the user.",
            vec![required("title", text()), required("links", object(text()))],
            json!({"type": "null"}),
        ),
        operation(
            "progress",
            "Show how far something is; the same title again brings it up to date.",
            vec![
                required("title", text()),
                required("done", json!({"type": "number"})),
                required("total", json!({"type": "number"})),
                optional("note", text()),
            ],
            json!({"type": "null"}),
        ),
    ];
    let description = "Shows cards to the user: things to choose, fill in, confirm or look at.".to_owned();
    Declaration { name: NAME.to_owned(), description, operations }
}

fn operation(name: &str, description: &str, parameters: Vec<Parameter>, returns: Value) -> Operation {
    Operation {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters,
        returns,
        risk: Risk::Read,
        idempotent: true,
        timeout: Some(PATIENCE),
        enabled: true,
        paging: None,
    }
}

fn parameter(name: &str, schema: Value, required: bool) -> Parameter {
    Parameter { name: name.to_owned(), description: String::new(), schema, required, default: None }
}
