//! Which operations fit some words. It knows no meaning: words that are rare among the operations weigh most.

use std::collections::{BTreeMap, BTreeSet};

use fimble_toolkit::{Declaration, Operation};

use super::stubs::enabled;

/// Words that fit every request.
const EMPTY: &str = "a an and are as at be by can do does for from get give has have how i in into is it its list me my new of \
    on or please show tell that the their them this to use was what when where which who with you your";

/// Bytes of a request and of a description that are looked at.
const LOOKED_AT: usize = 600;

/// What a word weighs in an operation's name, in its description and in its toolkit's name.
const WEIGHTS: [f64; 3] = [3.0, 1.0, 1.5];

/// The operations that fit the words, the best first; none if no word is there.
pub(super) fn relevant<'a>(
    declarations: impl Iterator<Item = &'a Declaration>,
    request: &str,
) -> Vec<(&'a Declaration, &'a Operation)> {
    let mut wanted: BTreeSet<String> = words(head(request)).collect();
    wanted.retain(|word| !EMPTY.split_whitespace().any(|empty| empty == word));
    if wanted.is_empty() {
        return Vec::new();
    }
    let mut found: Vec<Hits<'_, '_>> = Vec::new();
    let mut total = 0_usize;
    let mut having: BTreeMap<&str, usize> = BTreeMap::new();
    for declaration in declarations {
        let of_toolkit: BTreeSet<String> = words(&declaration.name).collect();
        for operation in enabled(declaration) {
            total += 1;
            let name: Vec<String> = words(&operation.name).collect();
            let described: BTreeSet<String> = words(head(&operation.description)).collect();
            // A long name says more than was asked for.
            let length = 1.0 + name.len() as f64 / 10.0;
            let weigh = |word: &String| {
                let places = [name.contains(word), described.contains(word), of_toolkit.contains(word)];
                places.iter().zip(WEIGHTS).filter(|(is_there, _)| **is_there).map(|(_, weight)| weight / length).sum()
            };
            let hits: Vec<(&str, f64)> =
                wanted.iter().map(|word| (word.as_str(), weigh(word))).filter(|(_, weight)| *weight > 0.0).collect();
            for (word, _) in &hits {
                *having.entry(word).or_default() += 1;
            }
            if !hits.is_empty() {
                found.push(Hits { declaration, operation, words: hits });
            }
        }
    }
    let rarity = |word: &str| (1.0 + total as f64 / having.get(word).copied().unwrap_or(1) as f64).ln();
    let score = |hits: &[(&str, f64)]| hits.iter().map(|(word, weight)| weight * rarity(word)).sum::<f64>();
    let mut scored: Vec<(f64, &Declaration, &Operation)> =
        found.iter().map(|hits| (score(&hits.words), hits.declaration, hits.operation)).collect();
    // Stable: what fits alike stays in the order of the declarations.
    scored.sort_by(|(one, ..), (other, ..)| other.total_cmp(one));
    scored.into_iter().map(|(_, declaration, operation)| (declaration, operation)).collect()
}

/// An operation with those of the wanted words that it has, and what they weigh there.
struct Hits<'d, 'w> {
    declaration: &'d Declaration,
    operation: &'d Operation,
    words: Vec<(&'w str, f64)>,
}

fn head(text: &str) -> &str {
    &text[..text.floor_char_boundary(LOOKED_AT)]
}

/// The words of a text in lower case, without the endings of the plural.
fn words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(|word| {
        let word = word.to_lowercase();
        match word.strip_suffix("ies") {
            Some(stem) if stem.len() > 1 => format!("{stem}y"),
            _ => {
                word.strip_suffix('s').filter(|stem| stem.len() > 2 && !stem.ends_with('s')).unwrap_or(&word).to_owned()
            }
        }
    })
}
