"""With every logger at DEBUG, no key, no fact and no scope is in a log record or an exception."""

from __future__ import annotations

import logging
import traceback

import pytest
from sqlalchemy import text

from onfile.errors import StoreError, WriteRefused
from onfile.stores import SqlMemoryProvider
from tests.stores.desk import Desk

KEY, FACT, ACTOR = "planted-key-51b7", "planted-fact-9d02", "planted-actor-3e8a"
PLANTED = (KEY, FACT, ACTOR)


class Recorder(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.NOTSET)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        # as a structured log would keep it: the message and the arguments apart
        self.lines.append(f"{record.name} {record.getMessage()} {record.args!r} {record.exc_info}")


@pytest.fixture
def every_log():
    """Everything that any logger says, each turned to DEBUG by name."""
    recorder = Recorder()
    loggers = [logging.getLogger()]
    loggers += [logger for logger in logging.root.manager.loggerDict.values() if isinstance(logger, logging.Logger)]
    before = [(logger, logger.level) for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.DEBUG)
    logging.getLogger().addHandler(recorder)
    yield recorder.lines
    logging.getLogger().removeHandler(recorder)
    for logger, level in before:
        logger.setLevel(level)


async def everything_a_store_does(store: SqlMemoryProvider) -> None:
    desk = Desk(store)
    await store.setup()
    record = await desk.write(KEY, FACT, actor=ACTOR, idempotency_key=f"{KEY} {FACT}")
    await desk.write(KEY, f"{FACT} again", actor=ACTOR, author="human")
    with pytest.raises(WriteRefused):
        await desk.write(KEY, f"{FACT} no", actor=ACTOR)
    await desk.list(f"actor:{ACTOR}")
    await store.pin(id=record.id, pinned=True)
    kept = [memory async for memory in store.export(scopes=[f"actor:{ACTOR}"])]
    await store.restore(kept, on_conflict="replace")
    await store.get(record.id)
    await desk.forget(record.id, actor=ACTOR)


async def test_an_engine_of_our_own_logs_no_content_at_any_level(every_log, shared_url):
    store = SqlMemoryProvider.from_url(shared_url)
    # a host may turn the levels up at any time
    for logger in list(logging.root.manager.loggerDict.values()):
        if isinstance(logger, logging.Logger):
            logger.setLevel(logging.DEBUG)

    await everything_a_store_does(store)
    await store.aclose()

    said = "\n".join(every_log)
    assert "sqlalchemy.engine" in said
    for planted in PLANTED:
        assert planted not in said


async def test_a_refused_write_keeps_its_words_out_of_the_traceback(tmp_path):
    store = SqlMemoryProvider.from_url(f"sqlite:///{tmp_path}/onfile.db")
    await store.setup()
    await Desk(store).write(KEY, FACT, actor=ACTOR, author="human")

    with pytest.raises(WriteRefused) as refused:
        await Desk(store).write(KEY, "other", actor=ACTOR)

    told = "".join(traceback.format_exception(refused.value)) + repr(refused.value)
    for planted in PLANTED:
        assert planted not in told
    await store.aclose()


async def test_a_failing_statement_on_a_hosts_engine_tells_no_parameters(engine):
    store = SqlMemoryProvider(engine)
    await store.setup()
    async with engine.begin() as conn:
        await conn.execute(text("ALTER TABLE agent_memory ADD COLUMN more VARCHAR(9) CHECK (more IS NOT NULL)"))

    with pytest.raises(StoreError) as raised:
        await Desk(store).write(KEY, FACT, actor=ACTOR)

    told = "".join(traceback.format_exception(raised.value))
    for planted in PLANTED:
        assert planted not in told
    assert raised.value.__context__ is None
