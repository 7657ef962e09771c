"""Counts of tasks, and how they add up."""

from sparkstorm.metrics import Statistics, TaskMetrics, merge_task_metrics


def test_counts_add_up() -> None:
    """The user's own ones by name."""
    one = TaskMetrics(executed=1, emitted=2, acked=3, failed=4, process_secs=0.5)
    mine = TaskMetrics(executed=10, user=(("b", 1.0), ("c", 2.0)))
    assert one + mine + TaskMetrics(user=(("a", 5.0), ("c", 1.0))) == TaskMetrics(
        executed=11,
        emitted=2,
        acked=3,
        failed=4,
        process_secs=0.5,
        user=(("a", 5.0), ("b", 1.0), ("c", 3.0)),
    )


def test_counts_are_kept_by_component_and_task() -> None:
    """News are added to what there is."""
    totals: dict[str, dict[int, TaskMetrics]] = {}
    merge_task_metrics(totals, [("a", 1, TaskMetrics(acked=1)), ("a", 2, TaskMetrics(acked=2))])
    merge_task_metrics(totals, [("a", 1, TaskMetrics(acked=4)), ("b", 3, TaskMetrics())])
    assert totals == {
        "a": {1: TaskMetrics(acked=5), 2: TaskMetrics(acked=2)},
        "b": {3: TaskMetrics()},
    }


def test_a_component_is_the_sum_of_its_tasks() -> None:
    """One that never ran has counted nothing."""
    statistics = Statistics(
        acked=7, components={"a": {1: TaskMetrics(acked=5), 2: TaskMetrics(acked=2)}}
    )
    assert statistics.component("a") == TaskMetrics(acked=7)
    assert statistics.component("b") == TaskMetrics()
