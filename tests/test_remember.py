"""The `remember` tool: what a model may send, what is refused in words, what it is told."""

from __future__ import annotations

import json
from dataclasses import replace
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onfile import remember_tool
from onfile.remember import Fact, check_fact, idempotency_key, person_stands, read_arguments, remembered
from tests.facts import fact
from tests.strategies import LINE_BREAKS, any_text


def read(arguments: object):
    return read_arguments(arguments, own="actor:ana")


def check(key: str = "units", text: str = "kilometres", max_key_chars: int = 64, max_fact_chars: int = 240):
    return check_fact(key=key, text=text, max_key_chars=max_key_chars, max_fact_chars=max_fact_chars)


# What the model is offered


def test_the_tool_takes_exactly_a_key_and_a_fact():
    tool = remember_tool()

    assert (tool.name, tool.kind) == ("remember", "memory")
    assert tool.json_schema["type"] == "object"
    assert set(tool.json_schema["properties"]) == {"key", "fact"}
    assert sorted(tool.json_schema["required"]) == ["fact", "key"]
    assert tool.json_schema["additionalProperties"] is False
    assert all(
        member["type"] == "string" and member["minLength"] == 1 for member in tool.json_schema["properties"].values()
    )


def test_the_schema_is_plain_json():
    assert json.loads(json.dumps(remember_tool().json_schema)) == remember_tool().json_schema


def test_a_host_that_changes_its_schema_changes_nobody_elses():
    remember_tool().json_schema["properties"]["scope"] = {"type": "string"}

    assert "scope" not in remember_tool().json_schema["properties"]


def test_nothing_in_the_tool_speaks_of_scopes_or_pins():
    offered = json.dumps([remember_tool().description, remember_tool().json_schema]).lower()

    assert not any(word in offered for word in ("scope", "pin", "author", "tenant"))


# What the model sends


def test_a_key_and_a_fact_are_read():
    assert read({"key": "units", "fact": "km"}) == ("units", "km")
    assert read(MappingProxyType({"fact": "km", "key": "units"})) == ("units", "km")


@pytest.mark.parametrize(
    "sent", [None, "units: km", '{"key": "units", "fact": "km"}', [], ["units", "km"], 7, True, b"x"], ids=repr
)
def test_what_is_not_an_object_is_refused_in_words(sent: object):
    answer = read(sent)

    assert isinstance(answer, str)
    assert "key" in answer
    assert "fact" in answer


@pytest.mark.parametrize("member", ["key", "fact"])
def test_a_missing_member_is_refused_by_name(member: str):
    sent = {"key": "units", "fact": "km"}
    del sent[member]

    assert member in str(read(sent))
    assert isinstance(read(sent), str)


@pytest.mark.parametrize("value", [None, 7, 1.5, True, [], ["km"], {"a": 1}, b"km"], ids=repr)
@pytest.mark.parametrize("member", ["key", "fact"])
def test_a_member_that_is_no_string_is_refused_by_name(member: str, value: object):
    answer = read({"key": "units", "fact": "km", member: value})

    assert isinstance(answer, str)
    assert member in answer


@pytest.mark.parametrize("member", ["scope", "pinned", "author", "text", "Key", "key ", ""])
def test_any_other_member_is_refused_by_name_and_the_model_is_told_where_it_writes(member: str):
    answer = read({"key": "units", "fact": "km", member: "global"})

    assert isinstance(answer, str)
    assert f"`{member}`" in answer
    assert "[actor:ana]" in answer


def test_a_member_that_is_not_even_text_is_refused():
    assert isinstance(read({"key": "units", "fact": "km", 7: "x"}), str)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(any_text | st.sampled_from(["key", "fact"]), inner, max_size=3)
    ),
)


@given(json_values)
def test_nothing_that_a_model_can_send_is_an_exception(sent):
    answer = read(sent)

    if isinstance(answer, str):
        assert len(answer.splitlines()) == 1
        assert answer.encode()
    else:
        assert set(sent) == {"key", "fact"}
        assert isinstance(check(*answer), Fact | str)


# What may be kept


def test_what_may_be_kept_is_on_one_line_and_trimmed_in_key_and_fact():
    assert check(" fiscal\nyear ", "\tit\r\nstarts in\u2028October ") == Fact(
        key="fiscal year", text="it starts in October"
    )


@pytest.mark.parametrize("blank", ["", " ", "\n\t", "\u3000", "\x01", "\x85\u2028"], ids=ascii)
def test_a_blank_key_or_fact_is_refused(blank: str):
    assert "key is blank" in str(check(key=blank))
    assert "fact is blank" in str(check(text=blank))


@pytest.mark.parametrize("key", ["-", "_", " - _ ", "— –", "-\n_"])
def test_a_key_of_separators_only_is_blank(key: str):
    assert "key is blank" in str(check(key=key))


def test_a_fact_of_separators_only_is_a_fact():
    assert check(text="-") == Fact(key="units", text="-")


@pytest.mark.parametrize(
    ("character", "name"), [("\x00", "NUL"), ("\ud800", "lone surrogate"), ("\udfff", "lone surrogate")], ids=ascii
)
def test_what_no_store_can_keep_is_refused_by_name(character: str, name: str):
    assert name in str(check(key=f"un{character}its"))
    assert name in str(check(text=f"kilo{character}metres"))
    assert isinstance(check(text=character), str)


def test_the_limits_count_code_points():
    assert isinstance(check(key="𝒳" * 64, text="👩" * 240), Fact)
    assert isinstance(check(key="e\u0301" * 33), str)


def test_over_a_limit_the_words_name_the_limit_and_the_length():
    too_long = check(text="x" * 241)
    assert "241" in str(too_long)
    assert "240" in str(too_long)
    too_long = check(key="x" * 65)
    assert "65" in str(too_long)
    assert "64" in str(too_long)


def test_the_length_is_measured_after_the_text_is_on_one_line():
    assert isinstance(check(key="  " + "x" * 64 + "\n", text="\r\n" * 50 + "x" * 239 + "\n\n\n"), Fact)
    assert check(text="x" * 200 + "\n" * 100 + "y") == Fact(key="units", text="x" * 200 + " y")


def test_blank_is_said_before_unkeepable_and_unkeepable_before_too_long():
    assert "blank" in str(check(key="-", text="\x00"))
    assert "NUL" in str(check(key="x" * 65, text="\x00"))
    assert "NUL" in str(check(text="\x00" + "x" * 300))


@given(any_text, any_text, st.integers(1, 20), st.integers(1, 20))
def test_whatever_is_kept_is_within_the_limits_on_one_line_and_can_be_encoded(key, text, max_key, max_fact):
    kept = check(key, text, max_key, max_fact)

    if isinstance(kept, str):
        assert kept
    else:
        assert 0 < len(kept.key) <= max_key
        assert 0 < len(kept.text) <= max_fact
        assert not set(kept.key + kept.text) & {*LINE_BREAKS, "\t", "\x00"}
        assert (kept.key, kept.text) == (kept.key.strip(), kept.text.strip())
        assert (kept.key + kept.text).encode()
        assert check(kept.key, kept.text, max_key, max_fact) == kept


# One call, once


def test_the_idempotency_key_needs_both_ids():
    assert idempotency_key(run_id=None, tool_call_id="c") is None
    assert idempotency_key(run_id="r", tool_call_id=None) is None
    assert idempotency_key(run_id="", tool_call_id="") is not None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a", "b:c"), ("a:b", "c")),
        (("1", "1"), ("11", "")),
        (("", "11"), ("1", "1")),
        (("a\x00", "b"), ("a", "\x00b")),
        (("1:a", ""), ("", "1:a")),
    ],
)
def test_no_two_calls_share_a_key_however_their_ids_are_cut(one, other):
    assert idempotency_key(run_id=one[0], tool_call_id=one[1]) != idempotency_key(
        run_id=other[0], tool_call_id=other[1]
    )


ids = st.text(st.sampled_from("1:ab\x00"), max_size=4) | any_text


@given(ids, ids, ids, ids)
def test_the_idempotency_key_is_unambiguous_and_stays_the_same(run, call, other_run, other_call):
    one = idempotency_key(run_id=run, tool_call_id=call)
    other = idempotency_key(run_id=other_run, tool_call_id=other_call)

    assert (one == other) == ((run, call) == (other_run, other_call))
    assert one == idempotency_key(run_id=run, tool_call_id=call)


@given(any_text, any_text)
def test_an_idempotency_key_fits_every_column(run, call):
    key = idempotency_key(run_id=run, tool_call_id=call)

    assert key is not None
    assert key.isascii()
    assert len(key) == 64


def test_the_idempotency_key_of_a_call_never_changes_between_releases():
    # Receipts outlive releases: a replay after an upgrade must find them.
    assert (
        idempotency_key(run_id="run_1", tool_call_id="c1")
        == "1e8dcd994e82403628aa97e32424a3175295c8c1f08783b1a6823a1326d86c12"
    )


# What the model is told


def test_the_result_states_key_text_scope_and_that_nothing_was_replaced():
    outcome = remembered(fact(), unchanged=False, replaced=None)

    assert outcome.ok
    assert outcome.error is None
    assert "[actor:ana] units: kilometres" in outcome.message
    assert "replaced nothing" in outcome.message


def test_the_result_states_what_was_replaced():
    outcome = remembered(fact(text="miles"), unchanged=False, replaced="kilometres")

    assert "[actor:ana] units: miles" in outcome.message
    assert "kilometres" in outcome.message
    assert outcome.replaced == "kilometres"


def test_an_unchanged_result_says_so_and_whose_word_it_is():
    assert "nothing changed" in remembered(fact(), unchanged=True, replaced=None).message
    assert "person" in remembered(fact(author="human"), unchanged=True, replaced=None).message
    assert "person" not in remembered(fact(), unchanged=True, replaced=None).message


def test_a_refusal_says_which_note_of_a_person_stands():
    words = person_stands(fact(author="human"))

    for part in ("units", "[actor:ana]", "kilometres", "person"):
        assert part in words


@given(any_text, any_text, any_text, any_text)
def test_what_a_model_is_told_is_one_line_without_a_tag(key, text, scope, replaced):
    record = replace(fact(key, text), scope=scope)

    for told in (remembered(record, unchanged=False, replaced=replaced).message, person_stands(record)):
        assert len(told.splitlines()) == 1
        assert "<memory" not in told.casefold()
        assert told.encode()
