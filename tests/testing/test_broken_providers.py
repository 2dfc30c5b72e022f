"""The contract finds out: each provider that breaks a promise fails the clauses about it and no other."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from onfile.errors import OnfileError
from onfile.testing import CLAUSES, ClauseFailed, InMemoryMemoryProvider, check, conform
from tests.facts import fact
from tests.testing import broken

BROKEN = {
    broken.ListsByPrefix: {
        "no scope and a blank scope list nothing rather than everything",
        "scopes compare byte for byte",
        "erasing one person leaves everybody else whole",
    },
    broken.ComparesScopesLikeMySQL: {
        "scopes compare byte for byte",
        "erasing one person leaves everybody else whole",
    },
    broken.ListsOnePage: {
        "the three hundred and first fact is listed",
    },
    broken.HandsOutItsOwnList: {
        "changing the answer changes nothing on file",
    },
    broken.TellsTimesWithoutAZone: {
        "times are timezone aware utc",
        "write answers an aware utc time also when nothing changes",
        "what search returns is what is on file",
    },
    broken.ForgetsByIdAlone: {
        "somebody elses id is not enough",
        "a record held wider stays",
    },
    broken.ForgetsEverythingOfTheActor: {
        "a forgotten record is gone and the others stay",
    },
    broken.LetsAgentsReplacePeople: {
        "an agent never replaces what a person stated",
        "a refused write leaves the store as usable as before",
        "a persons statement stands whatever agents write at the same time",
        "a refused write leaves no receipt",
    },
    broken.LetsAgentsWriteAnywhere: {
        "an agent writes at its own actors scope only",
        "even the same text is refused an agent at a wider scope",
    },
    broken.KeepsNoReceipts: {
        "a retry does not undo what was written since",
        "a retry after a person corrected it answers the correction",
        "a retry does not bring back what was forgotten",
        "a retry answers what was written anew after the forgetting",
        "a write that changed nothing leaves a receipt too",
        "idempotency keys of any characters stay apart",
    },
    broken.ReceiptsWithoutPlace: {
        "one idempotency key for another key is another write",
        "one idempotency key at another scope is another write",
    },
    broken.DeletesAndInserts: {
        "every spelling of a key is one record",
        "composed and decomposed keys are one record",
        "a new text replaces the old and keeps the id and the first spelling",
        "a person who says what an agent noted takes it over",
        "a person replaces what anyone wrote",
        "one key written seven times at once is one record",
        "a rewritten record stays pinned",
    },
    broken.SlugsKeys: {
        "keys that ask different questions stay apart",
        "what no store can keep is refused in words",
        "a key or a scope over 255 characters is refused and one of 255 is kept",
        "scripts without spaces are found inside a sentence",
    },
    broken.LosesUpdates: {
        "seven writes at once are all kept",
        "one key written seven times at once is one record",
        "a persons statement stands whatever agents write at the same time",
        "two actors at once do not mix",
        "the same write made seven times at once is made once",
    },
    broken.TouchesOnTheSameText: {
        "the same text again changes nothing",
        "an agent that says what a person said changes nothing",
        "a person who says what an agent noted takes it over",
        "the same write again changes nothing",
        "a retry does not undo what was written since",
        "a retry after a person corrected it answers the correction",
        "a retry answers what was written anew after the forgetting",
        "a write that changed nothing leaves a receipt too",
        "idempotency keys of any characters stay apart",
        "the same write made seven times at once is made once",
    },
    broken.RaisesWhatItsDriverRaises: {
        "what no store can keep is refused in words",
    },
    broken.PinMovesTheTime: {
        "a pin moves nothing but the pin",
    },
    broken.RanksBeforeItFilters: {
        "search filters to the scopes before it ranks",
    },
    broken.CountsRecordsAsKeys: {
        "one key at three scopes takes one place and comes whole",
        "a key comes whole when only its widest record matches",
        "a pinned key comes with all its records",
    },
    broken.IgnoresTheLimit: {
        "one key at three scopes takes one place and comes whole",
        "a key comes whole when only its widest record matches",
        "search never returns more unpinned keys than the limit",
        "a pinned record is returned whatever is asked",
    },
    broken.ParsesTheQuery: {
        "a query of any text raises nothing",
        "search never returns more unpinned keys than the limit",
    },
    broken.MatchesAsciiOnly: {
        "case never matters to a match",
        "unicode form never matters to a match",
        "scripts without spaces are found inside a sentence",
    },
    broken.ForgetsPinsInSearch: {
        "a pinned record is returned whatever is asked",
        "a pinned key comes with all its records",
        "a pinned record without a match comes last",
    },
    broken.BreaksTiesByChance: {
        "the same search gives the same answer in the same order",
    },
    broken.KeepsAStaleIndex: {
        "an overwritten text is not found",
        "a text that a person replaced is not found",
        "a forgotten fact is not found",
    },
}


@pytest.mark.parametrize("provider", BROKEN, ids=lambda provider: provider.__name__)
async def test_a_broken_provider_fails_exactly_what_it_breaks(provider):
    report = await conform(provider)

    assert {result.clause.name for result in report.results if result.status == "failed"} == BROKEN[provider]


async def test_the_provider_that_the_broken_ones_are_made_from_is_whole():
    report = await conform(broken.Recalling)

    assert (report.passed, report.failed, report.skipped) == (len(CLAUSES), 0, 0)
    assert report.ok


# ---- what is not claimed is skipped, and told


class ReadOnly:
    def __init__(self, *records):
        self.records = records

    async def list(self, request):
        return [record for record in self.records if record.scope in request.scopes]

    async def forget(self, request):
        return False


async def test_a_provider_that_only_reads_is_tried_by_what_needs_no_facts():
    report = await conform(lambda: ReadOnly(fact(scope="global")))

    assert report.ok
    assert report.passed == sum(set(clause.needs) <= {"list", "forget"} for clause in CLAUSES) > 0
    assert report.skipped == len(CLAUSES) - report.passed


async def test_a_skipped_clause_says_what_the_provider_lacks():
    report = await conform(ReadOnly)
    reasons = {result.clause.capability: result.reason for result in report.results if result.status == "skipped"}

    assert "no `search`" in reasons["search"]
    assert "no `write`, which this clause needs to put facts on file" in reasons["list"]
    assert "guards_writes" in reasons["report"]


async def test_results_are_told_as_they_come():
    told = []

    report = await conform(InMemoryMemoryProvider, on_result=told.append)

    assert tuple(told) == report.results
    assert [result.clause for result in told] == list(CLAUSES)


# ---- how a provider is made


async def test_a_provider_may_be_made_plainly_or_awaited_or_entered():
    async def awaited():
        return InMemoryMemoryProvider()

    @asynccontextmanager
    async def entered():
        yield InMemoryMemoryProvider()

    for factory in (InMemoryMemoryProvider, awaited, entered):
        assert (await check(CLAUSES[0], factory)).status == "passed"


async def test_a_provider_that_can_be_closed_is_closed_also_when_it_fails():
    closed = []

    class Closing(InMemoryMemoryProvider):
        async def list(self, request):
            raise OSError

        async def aclose(self):
            closed.append(self)

    result = await check(CLAUSES[0], Closing)

    assert (result.status, len(closed)) == ("failed", 1)
    assert "OSError" in result.reason


async def test_a_context_manager_closes_by_itself():
    left = []

    class Closing(InMemoryMemoryProvider):
        async def aclose(self):
            raise AssertionError

    @asynccontextmanager
    async def entered():
        yield Closing()
        left.append(True)

    assert (await check(CLAUSES[0], entered)).status == "passed"
    assert left == [True]


async def test_what_is_no_provider_fails_in_words():
    result = await check(CLAUSES[0], dict)

    assert result.status == "failed"
    assert "dict, which lacks `list` or `forget`" in result.reason


async def test_a_factory_that_raises_fails_the_clause():
    def factory():
        msg = "no such host\nwith a second line"
        raise ConnectionError(msg)

    assert (await check(CLAUSES[0], factory)).reason == "the provider raised ConnectionError: no such host"


async def test_a_provider_that_is_not_empty_is_told_so_before_anything_is_tried():
    shared = InMemoryMemoryProvider(records=[fact(scope="actor:ann")])

    result = await check(CLAUSES[0], lambda: shared)

    assert result.status == "failed"
    assert "1 records on file; each clause needs an empty one" in result.reason


async def test_a_provider_that_never_answers_is_not_waited_for(monkeypatch):
    monkeypatch.setattr("onfile.testing.contract.SECONDS_PER_CLAUSE", 0.01)

    class Hanging(InMemoryMemoryProvider):
        async def list(self, request):
            await asyncio.Event().wait()

    assert "did not answer" in (await check(CLAUSES[0], Hanging)).reason


async def test_a_cancellation_goes_on_to_the_caller():
    class Cancelled(InMemoryMemoryProvider):
        async def list(self, request):
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await check(CLAUSES[0], Cancelled)


async def test_a_clause_can_be_run_by_itself_and_raises_an_onfile_error():
    clause = next(clause for clause in CLAUSES if clause.name == "a record held wider stays")

    with pytest.raises(ClauseFailed, match="wider") as failed:
        await clause.run(broken.ForgetsByIdAlone())

    assert isinstance(failed.value, OnfileError)
