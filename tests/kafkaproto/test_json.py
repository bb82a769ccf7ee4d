"""JSON with Kafka's names and forms. `tests/oracle` compares the JSON of every message with Kafka."""

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
def test_messages_survive_a_json_round_trip(entry: Entry) -> None:
    for obj in Values(f"json {entry.id}").objects(entry.layout):
        text = json.dumps(to_json(entry.layout, obj))
        assert from_json(entry.layout, json.loads(text)) == obj


def test_json_field_names_are_those_of_the_message_definitions() -> None:
    for entry in ENTRIES:
        structs = {struct.name: struct for struct in definition(entry.name).structs}
        theirs = {field.name: field.wire_name for field in structs[entry.name].fields}
        for name, _ in entry.layout.fields:
            assert wire_name(entry.layout, name) == theirs[name][0].lower() + theirs[name][1:]
    assert len(message_names()) == len({entry.name for entry in ENTRIES})


def test_uuids_and_bytes_are_written_to_json_as_base64_as_kafka_does() -> None:
    request = FetchRequest(topics=[FetchTopic(topic_id=bytes(range(0xF0, 0x100)))], cluster_id="c")
    written = to_json(FETCH_REQUEST_V13, request)
    assert (written["topics"], written["clusterId"]) == ([{"topicId": "8PHy8_T19vf4-fr7_P3-_w", "partitions": []}], "c")
    assert "clusterId" not in to_json(FETCH_REQUEST_V13, FetchRequest()), "a tagged field with its default value"
    member = JoinGroupResponseMember("m", None, b"\xfb\xff")
    [encoded_member] = to_json(JOIN_GROUP_RESPONSE_V6, JoinGroupResponse(members=[member]))["members"]
    assert encoded_member == {"memberId": "m", "groupInstanceId": None, "metadata": "+/8="}


@pytest.mark.parametrize("value", [math.inf, -math.inf, 0.5])
def test_infinite_numbers_survive_a_round_trip_through_standard_json(value: float) -> None:
    quotas = AlterClientQuotasRequest([EntryData(ops=[OpData("producer_byte_rate", value)])])
    text = json.dumps(to_json(QUOTAS, quotas), allow_nan=False)
    assert from_json(QUOTAS, json.loads(text)) == quotas


def test_json_conversion_rejects_values_of_fields_that_the_version_does_not_have() -> None:
    partition = PartitionData(preferred_read_replica=3)
    response = FetchResponse(responses=[FetchableTopicResponse("t", partitions=[partition])])
    with pytest.raises(
        EncodeError, match=r"partitions\[0\]\.preferred_read_replica in v4: this version has no such field"
    ):
        to_json(FETCH_RESPONSE_V4, response)
    assert from_json(FETCH_RESPONSE_V11, to_json(FETCH_RESPONSE_V11, response)) == response


WHOLE = to_json(FETCH_REQUEST_V11, FetchRequest())


@pytest.mark.parametrize(
    ("change", "where", "why"),
    [
        ({"maxWaitMs": "5"}, "FetchRequest.maxWaitMs", "expected a whole number"),
        ({"maxWaitMs": True}, "FetchRequest.maxWaitMs", "expected a whole number"),
        ({"maxWaitMs": None}, "FetchRequest.maxWaitMs", "must not be null"),
        ({"rackId": 1}, "FetchRequest.rackId", "expected a string"),
        ({"topics": {}}, "FetchRequest.topics", "expected a list"),
        ({"topics": [1]}, "FetchRequest.topics[0]", "expected a JSON object"),
        ({"topics": [{"topic": "t"}]}, "FetchRequest.topics[0].partitions", "missing"),
        (
            {"rackID": ""},
            "FetchRequest.rackID",
            "in v11: unknown field; in the given version, FetchRequest has only .*rackId",
        ),
    ],
)
def test_invalid_json_is_rejected_with_the_path_of_the_field(change: dict[str, Any], where: str, why: str) -> None:
    with pytest.raises(EncodeError, match=why) as error:
        from_json(FETCH_REQUEST_V11, {**WHOLE, **change})
    assert error.value.path == where


@pytest.mark.parametrize("text", ["AAAA", "????", "8PHy8_T19vf4-fr7_P3-_w=x"])
def test_invalid_uuid_in_json_is_rejected(text: str) -> None:
    whole = to_json(FETCH_REQUEST_V13, FetchRequest())
    with pytest.raises(EncodeError, match=r"topics\[0\]\.topicId"):
        from_json(FETCH_REQUEST_V13, {**whole, "topics": [{"topicId": text, "partitions": []}]})
