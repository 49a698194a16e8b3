//! Every misuse of `#[toolkit]` is reported at the token that is wrong. `TRYBUILD=overwrite` writes the texts anew.

#[test]
fn every_misuse_is_reported_at_its_own_place() {
    trybuild::TestCases::new().compile_fail("tests/misuse/*.rs");
}
