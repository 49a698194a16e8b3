//! Cards: what a program shows to a person beside text, and what the person can do with it. Each has a form for front ends
//! (A2UI messages) and one for terminals (text), and reads what a person answered.
//!
//! What stands in a card comes from programs, and they have it from anywhere: [`Card::checked`] bounds it and takes out what
//! drives a terminal or turns the direction of writing. Not protected: what the words say. A card can claim anything, so
//! that an approval is never a card; policy asks for those.
//!
//! It does not know sessions, events or who shows a card.

mod a2ui;
mod check;
mod reply;
mod text;

use fimble_toolkit::Risk;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use check::Limits;

/// Something to look at, or to act on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Card {
    /// A person takes over.
    HandOver {
        /// Why.
        reason: String,
        /// What they must know; may be empty.
        summary: String,
    },
    /// An operation that a person confirms or not.
    Operation {
        /// What would be done.
        title: String,
        /// Names and values.
        details: Vec<(String, String)>,
        /// What it can do to the world.
        risk: Risk,
    },
    /// One of some options, or several.
    Choice {
        /// The question.
        title: String,
        /// What can be chosen.
        options: Vec<String>,
        /// True if several can be.
        many: bool,
    },
    /// Fields to fill in.
    Form {
        /// What it is for.
        title: String,
        /// The fields.
        fields: Vec<Field>,
    },
    /// Rows and columns.
    Table {
        /// What it shows.
        title: String,
        /// The columns' names.
        columns: Vec<String>,
        /// The rows, each with a cell a column.
        rows: Vec<Vec<String>>,
    },
    /// Numbers by label.
    Chart {
        /// What it shows.
        title: String,
        /// How it is drawn.
        style: ChartStyle,
        /// Labels and values, in order.
        points: Vec<(String, f64)>,
    },
    /// Addresses to visit.
    Links {
        /// What they are.
        title: String,
        /// Labels and addresses.
        links: Vec<(String, String)>,
    },
    /// How far something is.
    Progress {
        /// What it is.
        title: String,
        /// How much is done, from 0 to `total`.
        done: f64,
        /// How much there is to do; above 0.
        total: f64,
        /// What is under way; may be empty.
        note: String,
    },
}

/// One field of a form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Field {
    /// The name in the result, a Python name.
    pub name: String,
    /// What the person reads. Default: the name.
    #[serde(default)]
    pub label: String,
    /// What it takes. Default `str`.
    #[serde(default, rename = "type")]
    pub kind: FieldKind,
    /// What can be chosen, for `choice`.
    #[serde(default)]
    pub options: Vec<String>,
    /// The value of a field that is left empty. Without it the field must be filled in.
    #[serde(default)]
    pub default: Option<Value>,
}

/// What a field takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FieldKind {
    /// Text.
    #[default]
    Str,
    /// A whole number.
    Int,
    /// A number.
    Float,
    /// Yes or no.
    Bool,
    /// One of the options.
    Choice,
}

/// How a chart is drawn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChartStyle {
    /// A bar a value.
    #[default]
    Bar,
    /// A line through the values.
    Line,
}

impl Card {
    /// True if the program waits for what a person does with it.
    pub fn asks(&self) -> bool {
        matches!(self, Card::HandOver { .. } | Card::Operation { .. } | Card::Choice { .. } | Card::Form { .. })
    }

    /// What a person can answer, where that is a short list.
    pub fn choices(&self) -> Vec<String> {
        match self {
            Card::Operation { .. } => ["confirm", "cancel"].map(str::to_owned).into(),
            Card::Choice { options, .. } => options.clone(),
            _ => Vec::new(),
        }
    }
}
