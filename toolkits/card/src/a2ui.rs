//! A card as A2UI 0.9 messages with the basic catalog, which is what most renderers read. What the catalog has no component
//! for (tables, charts) is made of rows and texts; a front end that has one takes the card itself.

use serde_json::{Value, json};

use crate::{Card, Field, FieldKind};

/// The catalog that the components are from.
const CATALOG: &str = "https://a2ui.org/specification/v0_9/catalogs/basic/catalog.json";

/// Characters of the longest bar of a chart.
const BAR: usize = 20;

impl Card {
    /// The messages that show the card on a surface of its own.
    pub fn messages(&self, surface: &str) -> Vec<Value> {
        let mut surface_of = Surface { components: Vec::new() };
        let (body, data) = self.body(&mut surface_of);
        let column = surface_of.add(json!({"component": "Column", "children": body}));
        let mut components = vec![json!({"id": "root", "component": "Card", "child": column})];
        components.append(&mut surface_of.components);
        vec![
            message("createSurface", json!({"surfaceId": surface, "catalogId": CATALOG})),
            message("updateComponents", json!({"surfaceId": surface, "components": components})),
            message("updateDataModel", json!({"surfaceId": surface, "path": "/", "value": data})),
        ]
    }

    /// The messages that bring a surface up to date which showed an earlier state of the same card.
    pub fn update(&self, surface: &str) -> Vec<Value> {
        let (_, data) = self.body(&mut Surface { components: Vec::new() });
        vec![message("updateDataModel", json!({"surfaceId": surface, "path": "/", "value": data}))]
    }

    /// The ids of the parts from top to bottom, and the data that they are bound to.
    fn body(&self, surface: &mut Surface) -> (Vec<String>, Value) {
        match self {
            Card::HandOver { reason, summary } => {
                let mut parts = vec![surface.text("A person must take over", "h3"), surface.text(reason, "body")];
                if !summary.is_empty() {
                    parts.push(surface.text(summary, "caption"));
                }
                let label = "What you did, or what is to be done";
                let note = json!({"component": "TextField", "label": label, "value": {"path": "/note"}, "variant": "longText"});
                parts.push(surface.add(note));
                parts.push(surface.button("Done", true, "submit", json!({"note": {"path": "/note"}})));
                (parts, json!({"note": ""}))
            }
            Card::Operation { title, details, risk } => {
                let mut parts = vec![surface.text(title, "h3"), surface.text(&format!("Risk: {risk}"), "caption")];
                parts.extend(details.iter().map(|(name, value)| surface.row(&[name.clone(), value.clone()])));
                let buttons = vec![
                    surface.button("Confirm", true, "confirm", json!({})),
                    surface.button("Cancel", false, "cancel", json!({})),
                ];
                parts.push(surface.add(json!({"component": "Row", "children": buttons})));
                (parts, json!({}))
            }
            Card::Choice { title, options, many } => {
                let picker = picker(title, options, *many, "/choice");
                let parts = vec![
                    surface.add(picker),
                    surface.button("Choose", true, "submit", json!({"choice": {"path": "/choice"}})),
                ];
                (parts, json!({"choice": []}))
            }
            Card::Form { title, fields } => {
                let mut parts = vec![surface.text(title, "h3")];
                let (mut data, mut context) = (serde_json::Map::new(), serde_json::Map::new());
                for field in fields {
                    let path = format!("/{}", field.name);
                    parts.push(surface.add(input(field, &path)));
                    data.insert(field.name.clone(), initial(field));
                    context.insert(field.name.clone(), json!({"path": path}));
                }
                parts.push(surface.button("Send", true, "submit", context.into()));
                (parts, data.into())
            }
            Card::Table { title, columns, rows } => {
                let mut parts = vec![surface.text(title, "h3"), surface.row(columns)];
                parts.push(surface.add(json!({"component": "Divider"})));
                parts.extend(rows.iter().map(|row| surface.row(row)));
                (parts, json!({}))
            }
            Card::Chart { title, points, .. } => {
                let mut parts = vec![surface.text(title, "h3")];
                let longest = points.iter().map(|(_, value)| value.abs()).fold(0.0, f64::max);
                for (label, value) in points {
                    let length = if longest > 0.0 { (value.abs() / longest * BAR as f64).round() as usize } else { 0 };
                    let bar = if *value < 0.0 { "░" } else { "█" }.repeat(length.min(BAR));
                    parts.push(surface.row(&[label.clone(), bar, value.to_string()]));
                }
                (parts, json!({}))
            }
            Card::Links { title, links } => {
                let mut parts = vec![surface.text(title, "h3")];
                for (label, address) in links {
                    let shown = surface.text(&format!("{label}: {address}"), "body");
                    let open = json!({"functionCall": {"call": "openUrl", "args": {"url": address}}});
                    parts.push(
                        surface.add(
                            json!({"component": "Button", "child": shown, "variant": "borderless", "action": open}),
                        ),
                    );
                }
                (parts, json!({}))
            }
            Card::Progress { title, done, total, note } => {
                let bound = json!({"component": "Text", "text": {"path": "/state"}, "variant": "body"});
                let parts = vec![surface.text(title, "h3"), surface.add(bound)];
                let filled = (done / total * BAR as f64).round() as usize;
                let bar = "█".repeat(filled) + &"░".repeat(BAR.saturating_sub(filled));
                let state = format!("{bar} {:.0} % {note}", done / total * 100.0);
                (parts, json!({"state": state.trim_end(), "done": done, "total": total}))
            }
        }
    }
}

/// The components of a surface, each with a number as its id.
struct Surface {
    components: Vec<Value>,
}

impl Surface {
    fn add(&mut self, mut component: Value) -> String {
        let id = format!("c{}", self.components.len() + 1);
        component["id"] = Value::from(id.as_str());
        self.components.push(component);
        id
    }

    fn text(&mut self, text: &str, variant: &str) -> String {
        self.add(json!({"component": "Text", "text": text, "variant": variant}))
    }

    fn row(&mut self, cells: &[String]) -> String {
        let children: Vec<String> = cells.iter().map(|cell| self.text(cell, "body")).collect();
        self.add(json!({"component": "Row", "children": children, "justify": "spaceBetween"}))
    }

    fn button(&mut self, label: &str, is_main: bool, name: &str, context: Value) -> String {
        let child = self.text(label, "body");
        let variant = if is_main { "primary" } else { "default" };
        let action = json!({"event": {"name": name, "context": context}});
        self.add(json!({"component": "Button", "child": child, "variant": variant, "action": action}))
    }
}

fn message(kind: &str, content: Value) -> Value {
    let mut message = json!({"version": "v0.9"});
    message[kind] = content;
    message
}

fn picker(label: &str, options: &[String], many: bool, path: &str) -> Value {
    let variant = if many { "multipleSelection" } else { "mutuallyExclusive" };
    let options: Vec<Value> = options.iter().map(|option| json!({"label": option, "value": option})).collect();
    json!({"component": "ChoicePicker", "label": label, "variant": variant, "options": options, "value": {"path": path}})
}

fn input(field: &Field, path: &str) -> Value {
    let bound = json!({ "path": path });
    match field.kind {
        FieldKind::Choice => picker(&field.label, &field.options, false, path),
        FieldKind::Bool => json!({"component": "CheckBox", "label": field.label, "value": bound}),
        FieldKind::Int | FieldKind::Float => {
            json!({"component": "TextField", "label": field.label, "value": bound, "variant": "number"})
        }
        FieldKind::Str => json!({"component": "TextField", "label": field.label, "value": bound}),
    }
}

fn initial(field: &Field) -> Value {
    match (field.kind, &field.default) {
        (FieldKind::Choice, default) => default.iter().cloned().collect(),
        (FieldKind::Bool, default) => default.clone().unwrap_or(Value::Bool(false)),
        (_, Some(Value::String(text))) => text.as_str().into(),
        (_, Some(default)) => default.to_string().into(),
        (_, None) => "".into(),
    }
}
