"""JSON with Kafka's names and forms. (That it is what Kafka reads and writes, ``tests/oracle`` says of every message.)"""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from kafkaproto.errors import EncodeError
from kafkaproto.json_form import from_json, to_json, wire_name
from kafkaproto.messages.alter_client_quotas import ALTER_CLIENT_QUOTAS_REQUEST_V0 as QUOTAS
from kafkaproto.messages.alter_client_quotas import AlterClientQuotasRequest, OpData
from kafkaproto.messages.alter_client_quotas import AlterClientQuotasRequestEntryData as EntryData
from kafkaproto.messages.fetch import (
    FETCH_REQUEST_V11,
    FETCH_REQUEST_V13,
    FETCH_RESPONSE_V4,
    FETCH_RESPONSE_V11,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from kafkaproto.messages.join_group import JOIN_GROUP_RESPONSE_V6, JoinGroupResponse, JoinGroupResponseMember
from tests.support.codec.catalogue import ENTRIES, Entry, core_first, definition, message_names
from tests.support.codec.example import EXAMPLE_ENTRIES
from tests.support.codec.values import Values


@core_first([*ENTRIES, *EXAMPLE_ENTRIES])
def test_objects_survive_as_json_text(entry: Entry) -> None:
    for obj in Values(f"json {entry.id}").objects(entry.layout):
        text = json.dumps(to_json(entry.layout, obj))
        assert from_json(entry.layout, json.loads(text)) == obj


def test_names_are_those_of_the_definitions() -> None:
    for entry in ENTRIES:
        structs = {struct.name: struct for struct in definition(entry.name).structs}
        theirs = {field.name: field.wire_name for field in structs[entry.name].fields}
        for name, _ in entry.layout.fields:
            assert wire_name(entry.layout, name) == theirs[name][0].lower() + theirs[name][1:]
    assert len(message_names()) == len({entry.name for entry in ENTRIES})


def test_the_forms_of_values() -> None:
    request = FetchRequest(topics=[FetchTopic(topic_id=bytes(range(0xF0, 0x100)))], cluster_id="c")
    written = to_json(FETCH_REQUEST_V13, request)
    assert (written["topics"], written["clusterId"]) == ([{"topicId": "8PHy8_T19vf4-fr7_P3-_w", "partitions": []}], "c")
    assert "clusterId" not in to_json(FETCH_REQUEST_V13, FetchRequest()), "a tagged field that is its default"
    member = JoinGroupResponseMember("m", None, b"\xfb\xff")
    [told] = to_json(JOIN_GROUP_RESPONSE_V6, JoinGroupResponse(members=[member]))["members"]
    assert told == {"memberId": "m", "groupInstanceId": None, "metadata": "+/8="}


@pytest.mark.parametrize("value", [math.inf, -math.inf, 0.5])
def test_numbers_that_json_lacks_are_words(value: float) -> None:
    quotas = AlterClientQuotasRequest([EntryData(ops=[OpData("producer_byte_rate", value)])])
    text = json.dumps(to_json(QUOTAS, quotas), allow_nan=False)
    assert from_json(QUOTAS, json.loads(text)) == quotas


def test_what_would_be_lost_is_refused_as_in_encoding() -> None:
    partition = PartitionData(preferred_read_replica=3)
    response = FetchResponse(responses=[FetchableTopicResponse("t", partitions=[partition])])
    with pytest.raises(EncodeError, match=r"partitions\[0\]\.preferred_read_replica in v4: is no field there"):
        to_json(FETCH_RESPONSE_V4, response)
    assert from_json(FETCH_RESPONSE_V11, to_json(FETCH_RESPONSE_V11, response)) == response


WHOLE = to_json(FETCH_REQUEST_V11, FetchRequest())


@pytest.mark.parametrize(
    ("change", "where", "why"),
    [
        ({"maxWaitMs": "5"}, "FetchRequest.maxWaitMs", "no whole number"),
        ({"maxWaitMs": True}, "FetchRequest.maxWaitMs", "no whole number"),
        ({"maxWaitMs": None}, "FetchRequest.maxWaitMs", "may not be null"),
        ({"rackId": 1}, "FetchRequest.rackId", "no string"),
        ({"topics": {}}, "FetchRequest.topics", "no list"),
        ({"topics": [1]}, "FetchRequest.topics[0]", "no JSON object"),
        ({"topics": [{"topic": "t"}]}, "FetchRequest.topics[0].partitions", "missing"),
        ({"rackID": ""}, "FetchRequest.rackID", "in v11: is no field"),
    ],
)
def test_bad_json_is_refused_with_its_place(change: dict[str, Any], where: str, why: str) -> None:
    with pytest.raises(EncodeError, match=why) as error:
        from_json(FETCH_REQUEST_V11, {**WHOLE, **change})
    assert error.value.path == where


@pytest.mark.parametrize("text", ["AAAA", "????", "8PHy8_T19vf4-fr7_P3-_w=x"])
def test_a_bad_uuid_is_refused(text: str) -> None:
    whole = to_json(FETCH_REQUEST_V13, FetchRequest())
    with pytest.raises(EncodeError, match=r"topics\[0\]\.topicId"):
        from_json(FETCH_REQUEST_V13, {**whole, "topics": [{"topicId": text, "partitions": []}]})
