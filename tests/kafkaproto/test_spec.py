"""Rules for message definitions, each broken once."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from kafkaproto.api import APIS
from kafkaproto.generator.emit import class_names
from kafkaproto.generator.forms import SpecError
from kafkaproto.generator.layouts import Layouts, ranges
from kafkaproto.generator.spec import load, parse, snake_case
from tests.support.codec.catalogue import definition, message_names
from tests.support.codec.example import source


def with_field(**field: Any) -> dict[str, Any]:
    """Return a small definition with one field."""
    fields = [{"name": "Field", "type": "int32", "versions": "0+", **field}]
    return {
        "apiKey": 1,
        "type": "request",
        "name": "M",
        "validVersions": "0-3",
        "flexibleVersions": "1+",
        "fields": fields,
    }


TAGGED = {"versions": "1+", "taggedVersions": "1+", "tag": 0}
BROKEN_FIELDS = [
    ("unknown type", {"type": "int31"}),
    ("array of arrays", {"type": "[][]int32"}),
    ("array of records", {"type": "[]records"}),
    ("letters and digits", {"name": "no_snakes"}),
    ("at least one version", {"versions": "none"}),
    ("nullableVersions must be none", {"nullableVersions": "0+"}),
    ("nullableVersions must be none", {"type": "uuid", "nullableVersions": "0+"}),
    ("must include all versions of the field", {"type": "string", "nullableVersions": "1+", "default": "null"}),
    ("must be -128 to 127", {"type": "int8", "default": "128"}),
    ("must be 0 to 65535", {"type": "uint16", "default": "-1"}),
    ("must be -9223372036854775808 to 9223372036854775807", {"type": "int64", "default": "0x8000000000000000"}),
    ("must be true or false", {"type": "bool", "default": "yes"}),
    ("always zero", {"type": "uuid", "default": "1"}),
    ("must be null or an empty string", {"type": "bytes", "default": "abc"}),
    ("must be null or an empty string", {"type": "[]int32", "default": "5"}),
    ("must also have taggedVersions", {"tag": 0}),
    ("must also have a tag", {"taggedVersions": "1+"}),
    ("tag of at least 0 .got -1", {**TAGGED, "tag": -1}),
    ("open-ended", {**TAGGED, "taggedVersions": "1-2"}),
    ("within versions=2", {**TAGGED, "versions": "2+"}),
    ("within the message's flexibleVersions=1", {**TAGGED, "versions": "0+", "taggedVersions": "0+"}),
    ("without gaps", {**TAGGED, "tag": 1}),
    ("must not have the key 'mapKey'", {**TAGGED, "mapKey": True}),
    ("all of taggedVersions=1. or none of it", {**TAGGED, "type": "string", "nullableVersions": "2+"}),
    ("only a field of type string or bytes may have the key 'flexibleVersions'", {"flexibleVersions": "none"}),
    ("only a field of type bytes may have the key 'zeroCopy'", {"type": "string", "zeroCopy": True}),
    ("only a field whose type is a struct", {"fields": []}),
    ("unknown struct Ghost", {"type": "Ghost"}),
]


@pytest.mark.parametrize(("rule", "field"), BROKEN_FIELDS, ids=lambda value: value if isinstance(value, str) else "")
def test_error_for_an_invalid_field_definition_contains_the_violated_rule(rule: str, field: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match=rule) as error:
        parse(with_field(**field))
    assert "M" in str(error.value)


def test_valid_field_definition_of_a_message_schema_is_accepted() -> None:
    assert parse(with_field()).structs[-1].fields[0].name == "field"
    assert parse(with_field(**TAGGED)).structs[-1].fields[0].tag == 0


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("must be a closed range", {"validVersions": "0+"}),
        ("must be a closed range", {"validVersions": "none"}),
        ("none or open-ended", {"flexibleVersions": "1-3"}),
        ("must have an apiKey", {"apiKey": -1}),
        ("structs that no field uses: A", {"commonStructs": [{"name": "A", "versions": "0+", "fields": []}]}),
    ],
)
def test_invalid_message_definition_is_rejected(rule: str, change: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match=rule):
        parse({**with_field(), **change})


def test_message_definition_without_flexible_versions_is_rejected() -> None:
    message = with_field()
    del message["flexibleVersions"]
    with pytest.raises(SpecError, match="key 'flexibleVersions' is missing"):
        parse(message)


def test_message_definition_with_a_struct_name_defined_twice_is_rejected() -> None:
    message = with_field(type="Part", fields=[])
    message["fields"].append({"name": "Other", "type": "[]Part", "versions": "0+", "fields": []})
    with pytest.raises(SpecError, match="Part: two structs of the message have this name"):
        parse(message)


def test_message_definition_with_a_field_that_redefines_a_common_struct_is_rejected() -> None:
    message = with_field(type="Part", fields=[])
    message["commonStructs"] = [{"name": "Part", "versions": "0+", "fields": []}]
    with pytest.raises(SpecError, match="Part is a common struct, so the field must not have the key 'fields'"):
        parse(message)


def test_duplicate_field_name_in_a_message_definition_is_rejected() -> None:
    message = with_field()
    message["fields"] *= 2
    with pytest.raises(SpecError, match="Python name field"):
        parse(message)


def test_versions_of_a_field_default_to_the_tagged_versions_of_the_field() -> None:
    fields = {field.name: field for field in parse(source("Request")).structs[-1].fields}
    assert str(fields["tagged_text"].versions) == "2+"


def test_defaults_in_a_message_definition_are_parsed_into_values() -> None:
    fields = {field.name: field for field in parse(source("Request")).structs[-1].fields}
    named = {name: fields[name].default for name in ("tiny", "port", "wide", "ratio", "flag", "old_style", "id")}
    expected = {"tiny": -128, "port": 65535, "wide": 2**32 - 1, "ratio": 0.5, "flag": True, "old_style": None}
    assert named == {**expected, "id": bytes(16)}


@pytest.mark.parametrize(
    ("name", "ours"),
    [("ThrottleTimeMs", "throttle_time_ms"), ("timeoutMs", "timeout_ms"), ("ISRNodes", "isr_nodes"), ("From", "from_")],
)
def test_field_names_of_message_definitions_are_converted_to_snake_case(name: str, ours: str) -> None:
    assert snake_case(name) == ours


def test_message_versions_with_equal_fields_share_one_layout_object() -> None:
    layouts = Layouts(parse(with_field(versions="1-2", ignorable=True)), {"M": "M"})
    assert [layout.versions for layout in layouts.by_struct["M"]] == [[0], [1, 2], [3]]
    assert ranges([0, 1, 2, 5, 7, 8]) == "0-2, 5, 7-8"


def test_struct_name_used_by_two_messages_gets_a_message_name_as_class_name_prefix() -> None:
    pair = [definition("AlterClientQuotasRequest"), definition("AlterClientQuotasResponse")]
    names = class_names(pair)
    assert names["AlterClientQuotasRequest"]["EntityData"] == "AlterClientQuotasRequestEntityData"
    assert names["AlterClientQuotasResponse"]["EntityData"] == "AlterClientQuotasResponseEntityData"
    assert names["AlterClientQuotasRequest"]["OpData"] == "OpData"


def test_number_of_message_schemas_is_two_per_api_plus_two_headers() -> None:
    assert len(message_names()) == 2 * len(APIS) + 2


def test_parsing_a_message_schema_does_not_modify_it() -> None:
    before = source("Request")
    after = copy.deepcopy(before)
    parse(after)
    assert before == after


@pytest.mark.parametrize(
    ("where", "field"),
    [
        ("ignoreable", {"ignoreable": True}),
        ("ignorable", {"ignorable": "maybe"}),
        ("type", {"type": 5}),
        ("not a range of versions", {"versions": "1-"}),
        ("not a range of versions", {"nullableVersions": "5-3", "type": "string"}),
        ("not a valid int32", {"default": "many"}),
        ("not a valid float64", {"type": "float64", "default": "many"}),
    ],
)
def test_error_for_an_invalid_message_definition_contains_file_name_and_field_name(
    tmp_path: Path, where: str, field: dict[str, Any]
) -> None:
    source = {"name": "OddData", "type": "data", "validVersions": "0", "flexibleVersions": "none"}
    fields = [{"name": "Count", "type": "int32", "versions": "0+"} | field]
    path = tmp_path / "OddData.json"
    path.write_text(json.dumps({**source, "fields": fields}))
    with pytest.raises(SpecError, match=where) as error:
        load(path)
    assert "OddData.json" in str(error.value) and "OddData.Count" in str(error.value)


@pytest.mark.parametrize("text", ["{", "[]", '{"name": "X"}'])
def test_error_for_a_file_that_is_no_message_definition_contains_the_file_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "Odd.json"
    path.write_text(text)
    with pytest.raises(SpecError, match=r"Odd\.json"):
        load(path)
