"""The behaviours that `make test` shows on Spark: each kind once, and at least one of each file.

All tests here run on the local runner. A test that takes ``run_topology`` runs on Spark, too, but
there `make test` runs only those named below; the others are marked ``slow``, and `make test-all`
runs them. Both runners share everything but the shell, so what one kind of behaviour needs of
Spark (tasks, ticks, state, verdicts, roll-backs) is needed by all tests of that kind.
"""

ON_SPARK: dict[str, set[str]] = {
    "test_bolts": {
        "test_attributes_of_a_stateful_bolt_are_kept[spark]",
        "test_concurrent_bolts_on_spark",
        "test_context_logs_and_counters[spark]",
        "test_state_is_kept_undone_and_copied[spark-rocksdb]",
    },
    "test_bulk_writers": {"test_a_holding_one_writes_by_ticks[spark]"},
    "test_dead_letters": {
        "test_letter_of_a_hosted_spout[spark-replaying]",
        "test_letter_of_a_partitioned_spout[spark]",
        "test_poison_is_a_letter_with_its_payload",
        "test_replay_while_it_runs[spark-direct]",
    },
    "test_exactly_once": {
        "test_a_commit_that_raised_is_repeated[spark]",
        "test_a_committer_that_cannot_ends_the_run[spark]",
        "test_a_failed_tuple_rolls_its_batch_back[spark]",
    },
    "test_failures": {
        "test_exception_fails_one_tuple_of_a_basic_bolt_and_drops_its_emits[spark]",
        "test_misuse_of_tracking_is_a_failure_that_names_the_component[spark]",
        "test_spout_values_that_do_not_fit_fail_by_name[spark]",
    },
    "test_groupings": {"test_each_grouping[spark]"},
    "test_held_tuples": {
        "test_a_pair_is_acked_when_its_second_half_came[spark]",
        "test_a_raise_puts_back_what_it_took_and_acked[spark]",
    },
    "test_joins": {"test_what_may_be_missing_is_waited_for[spark]"},
    "test_odd_objects": {"test_everything_at_once[spark]"},
    "test_shell_bolts": {
        "test_a_counting_child_lives_over_batches_and_counts_exactly[spark]",
        "test_tuples_may_be_acked_in_a_later_batch[spark]",
    },
    "test_shell_spouts": {"test_each_message_is_emitted_until_it_is_acked[spark]"},
    "test_spouts": {
        "test_iterator_spout_shares_and_retries[spark]",
        "test_lines_of_many_files[spark]",
        "test_unreadable_file_is_an_error_at_the_start[spark]",
    },
    "test_state_memory": {"test_state_without_room_is_the_same_state[spark-rocksdb]"},
    "test_storm_integration": {
        "test_acking[spark]",
        "test_basic_topology[spark]",
        "test_inactive_topology[spark]",
    },
    "test_text_files": {"test_a_packed_file_is_read_as_text[spark-gz]"},
    "test_ticks": {"test_data_and_ticks_go_together[spark]"},
    "test_tracking": {
        "test_attempts_grow[spark]",
        "test_the_query_is_restarted_if_an_untracked_source_is_away",
        "test_untracked_messages_hear_nothing[spark]",
    },
    "test_unreadable_values": {"test_message_of_an_emitted_value_fails_alone[spark-unreadable]"},
    "test_windows": {
        "test_a_result_that_fails_fails_its_window[spark]",
        "test_windows_of_event_time[spark]",
    },
    "test_word_count": {"test_on_spark[2-4]"},
}
"""By file, the tests as pytest names them."""
