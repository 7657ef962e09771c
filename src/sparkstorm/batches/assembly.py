"""The assembly: makes a coordinator and all its parts for one run of a topology."""

from sparkstorm.acking.ledger import Ledger
from sparkstorm.batches.agenda import Agenda
from sparkstorm.batches.bookkeeper import Bookkeeper
from sparkstorm.batches.coordinator import Coordinator
from sparkstorm.batches.counts import Counts
from sparkstorm.batches.events.ended_roots import EndedRoots
from sparkstorm.batches.events.taps import Tap, Taps
from sparkstorm.batches.events.ticks import Ticks
from sparkstorm.batches.fault import Fault
from sparkstorm.batches.journal import Journal
from sparkstorm.batches.messages.chronicle import Chronicle
from sparkstorm.batches.messages.copying import Copier
from sparkstorm.batches.messages.inquiry import Inquiry
from sparkstorm.batches.messages.levels import Levels
from sparkstorm.batches.messages.listing import Listing
from sparkstorm.batches.meter import Meter
from sparkstorm.batches.planning.planner import BatchPlanner
from sparkstorm.batches.recovery.handover import Handover
from sparkstorm.batches.transactions import Transactions
from sparkstorm.checkpoint.files import CheckpointFiles
from sparkstorm.checkpoint.lease import Fence, Unfenced
from sparkstorm.clock import Clock
from sparkstorm.dead_letters.letter_queue import DeadLetterQueue
from sparkstorm.dead_letters.store import LetterStore
from sparkstorm.planning.plan import Plan
from sparkstorm.sources.sources import Sources

__all__ = ["make_coordinator"]


def make_coordinator(
    plan: Plan,
    files: CheckpointFiles,
    clock: Clock,
    *,
    run: str = "",
    fence: Fence | None = None,
    on_tap: Tap | None = None,
    dead_letters: DeadLetterQueue | None = None,
) -> Coordinator:
    """Return a coordinator for one run of a topology.

    Args:
        plan: the topology's plan.
        files: where plans and outcomes are kept.
        clock: the time.
        run: a name for this driver's life.
        fence: stands between this driver and the files, if others can reach them.
        on_tap: gets tapped tuples.
        dead_letters: where dead letters go; by default, into the files.
    """
    now = clock.monotonic()
    journal = Journal(files, fence or Unfenced(files))
    dead_letters = dead_letters or DeadLetterQueue(plan.name, LetterStore(files), clock, run=run)
    ledger, fault, counts, ended_roots = _ledger(plan, now), Fault(), Counts(), EndedRoots(plan)
    sources = Sources(plan, dead_letters)
    chronicle = Chronicle(sources, plan.config.trace_messages)
    listing = Listing(plan, sources, ledger, ended_roots, chronicle)
    planner = BatchPlanner(plan, sources, clock, run)
    bookkeeper = Bookkeeper(
        ledger,
        journal,
        sources,
        ended_roots,
        Taps(plan, on_tap),
        counts,
        dead_letters,
        Meter(plan, now),
        Inquiry(sources, chronicle, listing, Levels(plan), clock, Copier(plan, clock)),
        clock.wall,
        tracked=plan.tracked,
    )
    return Coordinator(
        plan,
        clock,
        sources=sources,
        agenda=Agenda(journal, planner, Ticks(plan, now), ended_roots, fault),
        bookkeeper=bookkeeper,
        handover=Handover(plan, journal, planner, ledger, fault, clock),
        transactions=Transactions(plan, journal, files) if plan.exactly_once else None,
        fault=fault,
    )


def _ledger(plan: Plan, now: float) -> Ledger:
    config = plan.config
    timeout = config.message_timeout_secs if config.enable_message_timeouts else None
    return Ledger(timeout, now, on_progress=config.message_timeout_mode == "progress")
