"""Every SQL statement of the SQL journal, named, saying what it leaves alone."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import (
    Float,
    Insert,
    Select,
    String,
    and_,
    bindparam,
    delete,
    func,
    insert,
    literal_column,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.dialects.postgresql import insert as insert_or
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from ..stores.journals import (
    agent_run,
    agent_run_checkpoint,
    agent_run_erasure,
    agent_run_fact,
    agent_run_signal,
    agent_thread_message,
)
from ..stores.schema import utc_time

IDLE_MS = 30_000


class SecondsAgo(FunctionElement[datetime]):
    """The database's own time some seconds ago: machines whose clocks differ share that one."""

    type = utc_time()
    inherit_cache = True


@compiles(SecondsAgo, "postgresql")
def _on_postgres(element: SecondsAgo, compiler: Any, **more: Any) -> str:
    return f"clock_timestamp() - make_interval(secs => CAST({_seconds(element, compiler, more)} AS double precision))"


@compiles(SecondsAgo, "mysql")
@compiles(SecondsAgo, "mariadb")
def _on_mysql(element: SecondsAgo, compiler: Any, **more: Any) -> str:
    return f"utc_timestamp(6) - INTERVAL ({_seconds(element, compiler, more)} * 1000000) MICROSECOND"


@compiles(SecondsAgo, "sqlite")
def _on_sqlite(element: SecondsAgo, compiler: Any, **more: Any) -> str:
    # Spelled as the column's type does it. All processes are on one machine here.
    return f"strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now', -({_seconds(element, compiler, more)}) || ' seconds')"


def _seconds(element: SecondsAgo, compiler: Any, more: dict[str, Any]) -> str:
    return compiler.process(element.clauses, **more)


NOW = SecondsAgo(literal_column("0"))


class HoldsNoLonger(FunctionElement[str]):
    """Bounds how long a transaction may do nothing: an owner that stands still in one must not hold its run."""

    type = String()
    inherit_cache = True


@compiles(HoldsNoLonger)
def _nowhere(element: HoldsNoLonger, compiler: Any, **more: Any) -> str:
    del element, compiler, more
    return "NULL"


@compiles(HoldsNoLonger, "postgresql")
def _by_postgres(element: HoldsNoLonger, compiler: Any, **more: Any) -> str:
    del element, compiler, more
    # Of this transaction only, and in a statement that is sent anyway.
    return f"set_config('idle_in_transaction_session_timeout', '{IDLE_MS}', true)"


r = agent_run.c
c = agent_run_checkpoint.c
s = agent_run_signal.c
t = agent_thread_message.c

RUN = (
    r.id,
    r.said,
    r.context,
    r.status,
    r.waits_for,
    r.owner,
    r.epoch,
    r.output,
    r.error,
    r.created_at,
    r.updated_at,
    r.format,
)
"""The order that `sql.run_of` unpacks."""

NEW_RUN = insert(agent_run)
NEW_HELD_RUN = insert(agent_run).values(seen_at=NOW)
NEW_HELD_RUN_STRAIGHT = (
    insert_or(agent_run).values(seen_at=NOW).on_conflict_do_nothing().execution_options(preserve_rowcount=True)
)
"""Leaves a run of the same id as it is, and tells by adding none."""
RUN_BY_ID = select(*RUN).where(r.id == bindparam("of_run"))
HELD_RUN = RUN_BY_ID.add_columns(HoldsNoLonger()).with_for_update()
"""One run, held until the transaction ends; SQLite holds its whole database anyway."""
FENCE = select(r.epoch, r.status, HoldsNoLonger()).where(r.id == bindparam("of_run")).with_for_update()
"""Who owns the run. Held, so that nobody claims it before what its owner commits."""

CLAIM = (
    update(agent_run)
    .where(r.id == bindparam("of_run"))
    .values(
        status="running",
        owner=bindparam("new_owner"),
        epoch=r.epoch + 1,
        error=None,
        updated_at=bindparam("now"),
        seen_at=NOW,
    )
)
RENEW = (
    update(agent_run)
    .where(r.id == bindparam("of_run"), r.epoch == bindparam("of_epoch"), r.status == "running")
    .values(seen_at=NOW)
)
"""That the owner is alive. The run itself did not change, so updated_at is absent on purpose."""
RELEASE = (
    update(agent_run)
    .where(r.id == bindparam("of_run"), r.epoch == bindparam("of_epoch"), r.status == "running")
    .values(status="ready", owner=None, updated_at=bindparam("now"))
)
DISOWN = (
    update(agent_run)
    .where(r.owner == bindparam("of_owner"), r.status == "running")
    .values(status="ready", owner=None, updated_at=bindparam("now"))
)
PARK = (
    update(agent_run)
    .where(r.id == bindparam("of_run"))
    .values(status="waiting", waits_for=bindparam("new_wait"), owner=None, updated_at=bindparam("now"))
)
"""A run that waits has no owner. Its epoch stays: the next claim raises it."""
WAKE = (
    update(agent_run)
    .where(r.id == bindparam("of_run"), r.status == "waiting", r.waits_for == bindparam("of_name"))
    .values(status="ready", waits_for=None, updated_at=bindparam("now"))
)
FINISH = (
    update(agent_run)
    .where(r.id == bindparam("of_run"))
    .values(status="done", owner=None, output=bindparam("new_output"), updated_at=bindparam("now"))
)
GIVE_UP = (
    update(agent_run)
    .where(r.id == bindparam("of_run"), r.epoch == bindparam("of_epoch"), r.status == "running")
    .values(status="failed", owner=None, error=bindparam("new_error"), updated_at=bindparam("now"))
)
CANCEL = (
    update(agent_run)
    .where(r.id == bindparam("of_run"))
    .values(status="cancelled", owner=None, waits_for=None, epoch=r.epoch + 1, updated_at=bindparam("now"))
)
"""The epoch rises, so that whoever has the run can commit nothing more."""

CHECKPOINTS = select(c.position, c.name, c.value).where(c.run_id == bindparam("of_run")).order_by(c.position)
RECORD = insert(agent_run_checkpoint)
_RECORDED = ["run_id", "position", "name", "value", "epoch", "created_at"]
_held = (
    select(r.id, r.epoch)
    .where(r.id == bindparam("of_run"), r.epoch == bindparam("of_epoch"), r.status == "running")
    .with_for_update()
)
_now = bindparam("now", type_=r.updated_at.type)
_checkpoint = (
    bindparam("at_position", type_=c.position.type),
    bindparam("new_name", type_=c.name.type),
    bindparam("new_value", type_=c.value.type),
)
RECORD_FENCED = (
    insert(agent_run_checkpoint)
    .from_select(_RECORDED, _held.with_only_columns(r.id, *_checkpoint, r.epoch, _now))
    .execution_options(preserve_rowcount=True)
)
"""One checkpoint, or no row where the run is somebody else's: the fence is in the statement."""


def record_straight(*, says: bool, marks: bool) -> Insert:
    """Build a checkpoint with its message and the marks of its facts as one statement of PostgreSQL's.

    It leaves everything alone where the run is somebody else's, as `RECORD_FENCED`.
    """
    held = _held.cte("held")
    whole = insert(agent_run_checkpoint).from_select(_RECORDED, select(held.c.id, *_checkpoint, held.c.epoch, _now))
    if says:
        told = [bindparam(f"said_{name}", type_=t[name].type) for name in ("thread_id", "kind", "content")]
        said = insert(agent_thread_message).from_select(
            ["thread_id", "kind", "content", "run_id", "created_at"], select(*told, held.c.id, _now)
        )
        whole = whole.add_cte(said.cte("said"))
    if marks:
        found = func.unnest(bindparam("marks", type_=ARRAY(String)))
        marked = insert(agent_run_fact).from_select(["mark", "run_id"], select(found, held.c.id))
        whole = whole.add_cte(marked.cte("marked"))
    return whole.execution_options(preserve_rowcount=True)


STRAIGHT = {(says, marks): record_straight(says=says, marks=marks) for says in (False, True) for marks in (False, True)}
SIGNAL = select(s.value).where(s.run_id == bindparam("of_run"), s.name == bindparam("of_name"))
ANSWER = insert(agent_run_signal)
SAY = insert(agent_thread_message)
THREAD = (
    select(t.position, t.run_id, t.kind, t.content).where(t.thread_id == bindparam("of_thread")).order_by(t.position)
)
OWED_IN_THREAD = select(agent_run_erasure.c.run_id, agent_run_erasure.c.record_id, agent_run_erasure.c.mark).where(
    agent_run_erasure.c.run_id.in_(select(r.id).where(r.thread_id == bindparam("of_thread")))
)
"""What was forgotten and still stands in messages of a thread, because their run has not ended."""
MARK = insert(agent_run_fact)

_ended_there = (
    select(r.id).where(r.thread_id == bindparam("of_thread"), r.status.in_(("done", "cancelled"))).scalar_subquery()
)
COUNT_MESSAGES = select(func.count()).where(t.thread_id == bindparam("of_thread"))
DELETE_MESSAGES = delete(agent_thread_message).where(t.thread_id == bindparam("of_thread"))
DELETE_RUNS = [
    *(
        delete(table).where(table.c.run_id.in_(_ended_there))
        for table in (agent_run_checkpoint, agent_run_signal, agent_run_fact, agent_run_erasure)
    ),
    delete(agent_run).where(r.thread_id == bindparam("of_thread"), r.status.in_(("done", "cancelled"))),
]
"""A thread's ended runs with all that belongs to them, the rows of `agent_run` last."""


def page_of_runs(*, status: str | None, limit: int) -> Select[*tuple[Any, ...]]:
    """Build a list of runs, newest first."""
    page = select(*RUN).order_by(r.created_at.desc(), r.id.desc()).limit(limit)
    return page if status is None else page.where(r.status == status)


_not_seen = or_(r.seen_at.is_(None), r.seen_at < SecondsAgo(bindparam("lost_after", type_=Float())))
IS_LOST = select(r.id).where(r.id == bindparam("of_run"), _not_seen)
"""Whether a run's owner was not seen for some time."""
_left = and_(r.status.in_(("ready", "running")), or_(r.status == "ready", _not_seen))
LEFT = select(*RUN).where(_left).order_by(r.created_at, r.id).limit(bindparam("at_most"))
"""The runs that nobody carries and nobody waits for, oldest first."""
NEXT = (
    select(*RUN, HoldsNoLonger()).where(_left).order_by(r.created_at, r.id).limit(1).with_for_update(skip_locked=True)
)
"""The first of them. What somebody holds at this moment is passed over: it is being written to, or was just taken."""
