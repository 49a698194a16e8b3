//! The oldest Redis that sessions can be kept in: the contract, and what workers need.

use std::time::Duration;

use fimble::store::Store;
use fimble::store::redis::{Address, Settings, TurnKind, TurnRequest, Turns};
use jiff::Timestamp;

use crate::contract_tests;
use crate::examples::session;
use crate::server::Server;

crate::contract_names!(contract_tests!(Server::oldest()));

#[tokio::test]
async fn leases_places_and_turns_are_handed_out() {
    let server = Server::oldest();
    let version = server.run(&["INFO", "server"]).remove(0);
    assert!(version.contains("redis_version:6.2."), "{version}");
    let store = server.store().await;
    let record = session("s");
    store.create_session(&record).await.unwrap();
    let long = Duration::from_secs(60);
    assert!(store.take_lease("s", "owner", long).await.unwrap());
    assert!(!store.take_lease("s", "another", long).await.unwrap());
    assert!(store.take_place(&record, 1, Duration::from_secs(1)).await.unwrap());
    // A longer time counts, a shorter one takes nothing away from others.
    assert!(store.take_place(&record, 1, long).await.unwrap());
    assert!(store.take_place(&record, 1, Duration::from_secs(1)).await.unwrap());
    let places = server.run(&["KEYS", "*:places"]).remove(0);
    assert!(server.run(&["PTTL", &places])[0].parse::<i64>().unwrap() > 50_000);
    store.release_place(&record).await.unwrap();
    store.release_lease("s", "owner").await.unwrap();

    let turns = Turns::open(&Address::parse(&server.url()).unwrap(), &Settings::default()).await.unwrap();
    let request = |id: &str| TurnRequest {
        id: id.to_owned(),
        session: "s".to_owned(),
        tenant: record.tenant.clone(),
        user: record.user.clone(),
        kind: TurnKind::Resume,
    };
    turns.push(&request("one")).await.unwrap();
    turns.push_at(Timestamp::UNIX_EPOCH, &request("two")).await.unwrap();
    let (entry, taken) = turns.take("worker", long, long).await.unwrap().unwrap();
    assert_eq!(taken, request("one"));
    turns.put_off("worker", &entry, long, Duration::ZERO).await.unwrap();
    let (entry, taken) = turns.take("another", long, long).await.unwrap().unwrap();
    assert_eq!(taken, request("one"));
    let next = turns.end("another", &entry, "s").await.unwrap();
    let (_, taken) = match next {
        Some(next) => next,
        None => turns.take("another", long, long).await.unwrap().unwrap(),
    };
    assert_eq!(taken, request("two"));
}
