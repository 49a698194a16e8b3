//! The contract suite of `fimble::store::Store`, run against every implementation, and what each of them promises beyond it.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail by panicking")]

#[path = "stores/branches.rs"]
mod branches;
#[path = "stores/cluster.rs"]
mod cluster;
#[path = "stores/contract.rs"]
mod contract;
#[path = "stores/examples.rs"]
mod examples;
#[path = "stores/faults.rs"]
mod faults;
#[path = "stores/migration.rs"]
mod migration;
#[path = "stores/oldest.rs"]
mod oldest;
#[path = "stores/proxy.rs"]
mod proxy;
#[path = "stores/redis.rs"]
mod redis_store;
#[path = "stores/replicas.rs"]
mod replicas;
#[path = "stores/server.rs"]
mod server;
#[path = "stores/sqlite.rs"]
mod sqlite;
#[path = "stores/tls.rs"]
mod tls;
#[path = "stores/transfer.rs"]
mod transfer;
#[path = "stores/upkeep.rs"]
mod upkeep;

/// Hands the names of the whole suite to another macro, after its own arguments.
macro_rules! contract_names {
    ($run:ident!($($argument:tt)*)) => {
        $run! { $($argument)*;
            a_fork_is_as_its_source_was
            a_fork_that_cannot_be_is_refused
            a_refused_commit_leaves_nothing
            a_session_goes_back_in_place
            a_session_reads_as_it_was_written
            a_session_of_a_stranger_is_not_replaced
            a_taken_id_is_refused
            a_variable_of_eight_mebibytes_comes_back
            a_way_back_that_does_not_fit_changes_nothing
            a_whole_session_is_stored_or_nothing
            a_write_from_an_old_state_is_stale
            an_unknown_session_reads_as_nothing_and_takes_no_write
            calls_keep_the_order_of_their_requests
            equal_contents_are_stored_once_and_go_with_their_last_session
            events_are_read_from_where_a_reader_stopped
            every_kind_of_segment_comes_back
            every_kind_of_event_comes_back
            everything_is_counted
            one_file_carries_sessions_there_and_back
            one_refused_write_leaves_those_beside_it_alone
            sessions_are_listed_by_user_and_last_update
            ten_thousand_rounds_are_listed_in_order
            shared_contents_go_with_the_last_of_a_family
            the_journal_takes_only_calls_of_rounds_that_run
            variables_are_those_of_the_last_round_that_changed_them
            what_nothing_refers_to_is_swept
            writers_on_two_handles_lose_nothing
        }
    };
}
pub(crate) use contract_names;

/// Makes a test of each name, in a place of its own.
macro_rules! contract_tests {
    ($place:expr; $($name:ident)*) => {
        $(#[tokio::test]
        async fn $name() {
            crate::contract::$name(&$place).await;
        })*
    };
}
pub(crate) use contract_tests;
