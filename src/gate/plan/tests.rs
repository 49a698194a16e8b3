//! What a plan is told by, how it is answered, and what of it the journal keeps.

use serde_json::json;

use super::*;

fn effect(number: u64, text: &str) -> PlannedEffect {
    let Value::Object(arguments) = json!({"text": text}) else { unreachable!() };
    PlannedEffect {
        number,
        key: format!("key {number}"),
        toolkit: "count_toolkit".to_owned(),
        operation: "add".to_owned(),
        arguments,
        risk: Risk::Write,
        preview: None,
        answer: Ok(json!("")),
        reason: None,
        struck: false,
    }
}

fn plan() -> Plan {
    Plan { effects: vec![effect(2, "a"), effect(3, "b"), effect(7, "c")], ..Plan::default() }
}

#[test]
fn a_hash_tells_what_is_called_in_which_order_and_what_is_struck_out() {
    let hash = plan().hash();
    assert_eq!((hash.len(), plan().hash()), (HASH, hash.clone()));
    let mut others = [plan().striking(&BTreeSet::from([2])).unwrap(), plan(), plan(), Plan::default()];
    others[1].effects.swap(0, 1);
    others[2].effects[0].arguments["text"] = json!("z");
    assert!(others.iter().all(|other| other.hash() != hash));
    // The same calls of another round are the same plan.
    let mut again = plan();
    again.effects[0].key = "another".to_owned();
    assert_eq!(again.hash(), hash);
}

#[test]
fn an_answer_approves_exactly_the_plan_that_was_seen() {
    let whole = plan();
    let some = whole.striking(&BTreeSet::from([1, 3])).unwrap();
    for (said, expected) in [
        ("yes".to_owned(), PlanConsent::Yes(whole.clone())),
        (whole.approving_words(), PlanConsent::Yes(whole.clone())),
        ("Strike 1, 3".to_owned(), PlanConsent::Yes(some.clone())),
        (some.approving_words(), PlanConsent::Yes(some.clone())),
        ("no".to_owned(), PlanConsent::No),
    ] {
        assert_eq!(whole.read(&said), Ok(expected), "{said}");
    }
    for (said, wrong) in [
        (format!("yes {}", some.hash()), "look at it again"),
        (format!("strike 1 {}", some.hash()), "look at it again"),
        ("strike 4".to_owned(), "there is no effect 4; the plan has 3"),
        ("strike 0".to_owned(), "there is no effect 0"),
        ("strike two".to_owned(), "`two` is no number of an effect"),
        ("strike".to_owned(), "is none of yes, no"),
        ("perhaps".to_owned(), "`perhaps` is none of yes, no"),
        (String::new(), "is none of"),
    ] {
        let error = whole.read(&said).unwrap_err();
        assert!(error.contains(wrong), "{said}: {error}");
    }
}

#[test]
fn the_journal_gives_back_the_plan_that_its_hash_is_of() {
    let mut kept = record("session", 1);
    assert!(is_plan(&kept) && matches!(Mode::of(std::slice::from_ref(&kept)), Mode::Draw(_)));
    keep(&mut kept, &plan(), CallStatus::Approved);
    assert_eq!(of_record(&kept), Some(plan()));
    assert!(matches!(Mode::of(std::slice::from_ref(&kept)), Mode::Carry(carried) if *carried == plan()));
    kept.arguments["plan"]["effects"][0]["arguments"]["text"] = json!("other");
    assert_eq!(of_record(&kept), None);
    assert!(matches!(Mode::of(&[kept]), Mode::Rejected(_)));
    assert!(matches!(Mode::of(&[]), Mode::Act));
}

#[test]
fn a_preview_is_masked_before_it_is_cut() {
    let secrets = Secrets::new(["hunter2-secret".to_owned()]);
    let long = format!("{}hunter2-secret", "x".repeat(PREVIEW_BYTES - 8));
    let kept = kept_preview(json!({"text": long}), &secrets);
    let kept = kept.as_str().unwrap();
    assert!(!kept.contains("hunter2") && kept.ends_with(" bytes in all)") && kept.len() < PREVIEW_BYTES + 40, "{kept}");
    assert_eq!(kept_preview(json!({"a": "hunter2-secret"}), &secrets), json!({"a": "********"}));
}

#[test]
fn a_person_reads_one_effect_a_line_with_what_it_would_do() {
    let mut shown = plan();
    shown.effects.truncate(2);
    shown.effects[0].preview = Some(json!({"lines": 1}));
    shown.effects[1].struck = true;
    shown.ends = Some("it raised".to_owned());
    let expected = format!(
        "plan {}: 2 effects, 1 struck out\n  1. write       count_toolkit.add({{\"text\":\"a\"}})\n       {{\"lines\":1}}\n  2. \
         struck out: write       count_toolkit.add({{\"text\":\"b\"}})\n       unknown: the toolkit does not say what it would \
         do\n     what comes after that is not known: it raised",
        shown.hash()
    );
    assert_eq!(shown.text(), expected);
    assert_eq!(shown.notes().len(), 1);
}
