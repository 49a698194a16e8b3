//! An agent's card: where and how the agent is spoken to, and what it says of itself.

use serde_json::Value;
use url::Url;

use crate::Limits;
use crate::limits::line;

/// What is used of a card.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Card {
    /// What the agent calls itself; may be empty.
    pub(crate) name: String,
    /// Where requests go.
    pub(crate) url: Url,
    /// What to send as the interface's tenant, if it names one.
    pub(crate) tenant: Option<String>,
    /// True if it tells the steps of a task while it works.
    pub(crate) streaming: bool,
    /// The agent and its skills, a line each.
    pub(crate) description: String,
}

/// Where the card of the agent at that address is.
pub(crate) fn address(url: &Url) -> Url {
    if url.path().ends_with(".json") {
        return url.clone();
    }
    let mut card = url.clone();
    card.set_path(&format!("{}/.well-known/agent-card.json", url.path().trim_end_matches('/')));
    card
}

/// Reads a card that was found at `place`.
///
/// # Errors
/// The end of a sentence that begins with the agent's name.
pub(crate) fn read(card: &Value, place: &Url, limits: &Limits) -> Result<Card, String> {
    let text = |key: &str| card.get(key).and_then(Value::as_str).unwrap_or_default();
    let Some(Value::Array(interfaces)) = card.get("supportedInterfaces") else {
        let version = line(text("protocolVersion"), MOST_SHOWN);
        return Err(if version.is_empty() {
            "has a card that names no `supportedInterfaces`".to_owned()
        } else {
            format!("speaks A2A {version}, and only 1.0 is spoken here")
        });
    };
    let field =
        |interface: &Value, key: &str| interface.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let ours = interfaces.iter().find(|interface| {
        let version = field(interface, "protocolVersion");
        field(interface, "protocolBinding") == "JSONRPC" && (version.is_empty() || version.starts_with("1."))
    });
    let Some(ours) = ours else {
        let told = interfaces
            .iter()
            .take(5)
            .map(|one| format!("{} {}", field(one, "protocolBinding"), field(one, "protocolVersion")));
        let told = line(&told.collect::<Vec<_>>().join(", "), MOST_SHOWN);
        return Err(format!("offers no A2A 1.0 over JSON-RPC, but {told}"));
    };
    let url = place.join(&field(ours, "url")).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let url = url.ok_or("has a card whose JSON-RPC interface has no usable `url`")?;
    let capabilities = card.get("capabilities");
    let streaming = capabilities.and_then(|all| all.get("streaming")).and_then(Value::as_bool).unwrap_or(false);
    let tenant = Some(field(ours, "tenant")).filter(|tenant| !tenant.is_empty());
    let name = line(text("name"), MOST_SHOWN);
    Ok(Card { name, url, tenant, streaming, description: describe(card, limits) })
}

const MOST_SHOWN: usize = 100;

fn describe(card: &Value, limits: &Limits) -> String {
    let text = |value: &Value, key: &str| {
        line(value.get(key).and_then(Value::as_str).unwrap_or_default(), limits.description_characters)
    };
    let mut description = match (text(card, "description"), text(card, "name")) {
        (said, _) if !said.is_empty() => said,
        (_, name) if !name.is_empty() => format!("The agent {name}."),
        _ => "Another agent.".to_owned(),
    };
    let skills = card.get("skills").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let named: Vec<String> = skills
        .iter()
        .take(limits.skills)
        .filter_map(|skill| match (text(skill, "name"), text(skill, "description")) {
            (name, said) if name.is_empty() && said.is_empty() => None,
            (name, said) if said.is_empty() || said == name => Some(name),
            (name, said) => Some(format!("{name}: {said}")),
        })
        .collect();
    if !named.is_empty() {
        description.push_str(&format!(" It can: {}", named.join("; ")));
        if skills.len() > limits.skills {
            description.push_str("; …");
        }
    }
    description
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn place() -> Url {
        Url::parse("https://a.example/x/.well-known/agent-card.json").unwrap()
    }

    #[test]
    fn a_card_is_looked_for_where_it_belongs() {
        for (url, expected) in [
            ("https://a.example", "https://a.example/.well-known/agent-card.json"),
            ("https://a.example/x/", "https://a.example/x/.well-known/agent-card.json"),
            ("https://a.example/cards/one.json", "https://a.example/cards/one.json"),
        ] {
            assert_eq!(address(&Url::parse(url).unwrap()).as_str(), expected);
        }
    }

    #[test]
    fn a_card_says_how_the_agent_is_spoken_to() {
        let card = json!({
            "name": "Cook", "description": "Cooks.\nWell", "capabilities": {"streaming": true},
            "supportedInterfaces": [
                {"url": "https://a.example/grpc", "protocolBinding": "GRPC", "protocolVersion": "1.0"},
                {"url": "/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0", "tenant": "t"},
            ],
            "skills": [{"id": "b", "name": "Bake", "description": "Bakes bread"}, {"name": "Fry"}, 7],
        });
        let expected = Card {
            name: "Cook".to_owned(),
            url: Url::parse("https://a.example/rpc").unwrap(),
            tenant: Some("t".to_owned()),
            streaming: true,
            description: "Cooks. Well It can: Bake: Bakes bread; Fry".to_owned(),
        };
        assert_eq!(read(&card, &place(), &Limits::default()), Ok(expected));
    }

    #[test]
    fn a_card_that_cannot_be_used_says_why() {
        for (card, expected) in [
            (json!({}), "has a card that names no `supportedInterfaces`"),
            (json!([]), "has a card that names no `supportedInterfaces`"),
            (json!({"url": "https://a", "protocolVersion": "0.3.0"}), "speaks A2A 0.3.0, and only 1.0 is spoken here"),
            (
                json!({"supportedInterfaces": [{"url": "x", "protocolBinding": "GRPC", "protocolVersion": "1.0"}]}),
                "offers no A2A 1.0 over JSON-RPC, but GRPC 1.0",
            ),
            (
                json!({"supportedInterfaces": [{"url": "file:///etc", "protocolBinding": "JSONRPC"}]}),
                "has a card whose JSON-RPC interface has no usable `url`",
            ),
        ] {
            assert_eq!(read(&card, &place(), &Limits::default()), Err(expected.to_owned()));
        }
    }
}
