"""Layouts and properties of messages compared with the kafka-clients jar."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from benchmarks.rivals.jars import KAFKA_VERSION, NEWER_VERSION, clients_jar
from kafkaproto.arrays import ArrayType
from kafkaproto.error_codes import ErrorCode
from kafkaproto.generator import SCHEMAS
from kafkaproto.generator.merge import RANGES
from kafkaproto.generator.refresh import FIELD_FACTS, merged, read_errors, served, to_text
from kafkaproto.generator.spec import FIELD_NAMES
from kafkaproto.json_form import wire_name
from kafkaproto.message import Message, NullableStruct, parts
from kafkaproto.primitives import BytesType, FixedWidth, LengthPrefixed, RecordsType, StringType
from kafkaproto.versions import VersionRange
from kafkaproto.wire_type import WireType
from tests.support.codec.catalogue import ENTRIES, Entry, message_names
from tests.support.oracle.oracle import Releases

pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]

FIXED_NAMES = {
    "?": "BOOLEAN",
    "b": "INT8",
    "h": "INT16",
    "H": "UINT16",
    "i": "INT32",
    "I": "UINT32",
    "q": "INT64",
    "d": "FLOAT64",
    "16s": "UUID",
}
KAFKA_NAMES = {ours: re.sub(r"(?<=[a-z])([A-Z])", r"_\1", wire).lower() for (_, wire), ours in FIELD_NAMES.items()}


def tree(wire_type: WireType) -> dict[str, Any]:
    """Return a layout in the form in which the oracle prints Kafka's schemas."""
    match wire_type:
        case Message():
            return message_tree(wire_type)
        case FixedWidth():
            return {"type": FIXED_NAMES[wire_type.fmt]}
        case RecordsType():
            return {"type": "COMPACT_RECORDS" if wire_type.compact else "RECORDS"}
        case StringType() | BytesType():
            kind = "STRING" if isinstance(wire_type, StringType) else "BYTES"
            prefix = "COMPACT_" if wire_type.compact else ""
            return {"type": f"{prefix}NULLABLE_{kind}" if wire_type.nullable else prefix + kind}
        case ArrayType():
            kind = "CompactArrayOf" if wire_type.compact else "ArrayOf"
            return {"array": f"{kind} nullable" if wire_type.nullable else kind, "of": tree(wire_type.item)}
        case NullableStruct():
            return message_tree(wire_type.struct)  # the constants do not contain which structs are nullable
    raise AssertionError(f"unknown wire type {wire_type}")


def message_tree(layout: Message[Any]) -> dict[str, Any]:
    fields = [[name, tree(wire_type)] for name, wire_type in layout.fields]
    if layout.tags:
        tags = {str(field.tag): [field.name, tree(field.type)] for field in layout.tags.fields}
        fields.append(["_tagged_fields", {"tags": tags}])
    return {"struct": fields}


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
def test_every_message_layout_equals_the_schema_of_each_kafka_release(releases: Releases, entry: Entry) -> None:
    ours = json.dumps(tree(entry.layout))
    if entry.name == "RequestHeader":
        for name, kafkas in KAFKA_NAMES.items():
            ours = ours.replace(f'"{name}"', f'"{kafkas}"')
    having = releases.having(entry.name, entry.version)
    assert having
    for oracle in having:
        assert json.loads(ours) == oracle.layouts(entry.name)[str(entry.version)]


@pytest.fixture(scope="module")
def jars() -> tuple[dict[str, Any], dict[str, Any]]:
    return served(clients_jar(KAFKA_VERSION)), served(clients_jar(NEWER_VERSION))


def test_message_schemas_equal_those_merged_from_the_kafka_3_9_and_4_2_client_jars(
    jars: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    expected = merged(*jars)
    assert message_names() == sorted(expected)
    for name, theirs in expected.items():
        assert (SCHEMAS / "messages" / f"{name}.json").read_text() == to_text(theirs)


@pytest.mark.parametrize("name", message_names())
def test_every_version_of_a_message_schema_has_the_same_fields_as_in_each_kafka_jar(
    name: str, jars: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    ours = json.loads((SCHEMAS / "messages" / f"{name}.json").read_text())
    for theirs in (jar[name] for jar in jars if name in jar):
        for version in VersionRange.parse(theirs["validVersions"]):
            assert of_version(ours, version) == of_version(theirs, version), f"version {version}"


def of_version(definition: dict[str, Any], version: int) -> dict[str, Any]:
    """Return the part of a definition that applies to one version."""
    common = {struct["name"]: struct["fields"] for struct in definition.get("commonStructs", [])}

    def fields_of(fields: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [field_of(field) for field in fields if version in VersionRange.parse(field["versions"])]

    def field_of(field: dict[str, Any]) -> dict[str, Any]:
        properties = {key: value for key, value in field.items() if key not in (*RANGES, "ignorable", "fields")}
        properties |= {key: version in VersionRange.parse(field.get(key, "none")) for key in RANGES}
        fields = field.get("fields", common.get(field["type"].removeprefix("[]")))
        # tags used only in other versions do not matter here; `ignorable` is about versions without the field
        properties = {key: value for key, value in properties.items() if key != "tag" or properties["taggedVersions"]}
        return properties if fields is None else {**properties, "fields": fields_of(fields)}

    flexible = version in VersionRange.parse(definition["flexibleVersions"])
    return {"key": definition.get("apiKey"), "flexible": flexible, "fields": fields_of(definition["fields"])}


def test_message_definitions_contain_no_comment_or_license_from_kafka() -> None:
    known_keys = {*FIELD_FACTS, "fields"}
    for path in (SCHEMAS / "messages").glob("*.json"):
        text = path.read_text()
        assert "//" not in text and '"about"' not in text and "Licensed" not in text
        pending = list(json.loads(text)["fields"])
        while pending:
            field = pending.pop()
            assert field.keys() <= known_keys, path
            pending += field.get("fields", [])


def test_error_codes_equal_those_of_the_kafka_jar() -> None:
    theirs = read_errors(clients_jar(NEWER_VERSION))
    assert json.loads((SCHEMAS / "errors.json").read_text()) == theirs
    assert [(code.value, code.name, code.retriable) for code in ErrorCode] == [
        (error["number"], error["name"], error["retriable"]) for error in theirs
    ]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
def test_field_nullability_ignorability_and_defaults_equal_those_in_the_kafka_jars(
    entry: Entry, jars: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    checked = 0
    for theirs in (jar[entry.name] for jar in jars if entry.name in jar):
        stable = VersionRange.parse(theirs["validVersions"])
        if entry.version in stable:
            fields = of_versions(theirs["fields"], stable)
            common = {struct["name"]: struct["fields"] for struct in theirs.get("commonStructs", [])}
            compare_facts(entry.layout, fields, common, entry.version)
            checked += 1
    assert checked


def of_versions(fields: list[dict[str, Any]], stable: VersionRange) -> list[dict[str, Any]]:
    """Return the fields that exist in a stable version."""
    return [field for field in fields if VersionRange.parse(field["versions"]).intersect(stable)]


def compare_facts(layout: Message[Any], fields: list[dict[str, Any]], common: dict[str, Any], version: int) -> None:
    """Compare the fields of a struct: order, tags, nullability, defaults, and which of the other fields must not be lost."""
    ours = {wire_name(layout, name): name for name in layout.defaults}
    named = {field["name"][0].lower() + field["name"][1:]: field for field in fields}
    version_fields = {wire: field for wire, field in named.items() if version in VersionRange.parse(field["versions"])}
    tags = {
        wire: field["tag"]
        for wire, field in version_fields.items()
        if version in VersionRange.parse(field.get("taggedVersions", "none"))
    }
    assert [wire_name(layout, name) for name, _ in layout.fields] == [
        wire for wire in version_fields if wire not in tags
    ]
    tagged = layout.tags.fields if layout.tags else ()
    assert {wire_name(layout, field.name): field.tag for field in tagged} == tags
    kinds = {**dict(layout.fields), **{field.name: field.type for field in tagged}}
    for wire, field in version_fields.items():
        kind, default = kinds[ours[wire]], layout.defaults[ours[wire]]()
        nullable = version in VersionRange.parse(field.get("nullableVersions", "none"))
        assert is_nullable(kind) == nullable, wire
        assert same_default(field, default), (wire, default)
        inner = field.get("fields", common.get(field["type"].removeprefix("[]")))
        if inner is not None:
            compare_facts(struct_in(kind), inner, common, version)
    lost = {wire for wire, field in named.items() if wire not in version_fields and not field.get("ignorable", False)}
    assert {wire_name(layout, name) for name in layout.absent} & named.keys() == lost


def is_nullable(kind: WireType) -> bool:
    return isinstance(kind, NullableStruct) or (isinstance(kind, LengthPrefixed) and kind.nullable)


def struct_in(kind: WireType) -> Message[Any]:
    return next(part for part in parts(kind) if isinstance(part, Message))


def same_default(field: dict[str, Any], ours: Any) -> bool:
    """Return whether a default equals that of the definition, or that of its type if the definition has none."""
    kind, text = field["type"], str(field.get("default", ""))
    if text == "null":
        return ours is None
    if kind.startswith("[]"):
        return bool(ours == [])
    match kind:
        case "string":
            return bool(ours == text)
        case "bool":
            return ours is (text.lower() == "true")
        case "bytes" | "records":
            return ours in (b"", None) if kind == "records" else bool(ours == b"")
        case "uuid":
            return bool(ours == bytes(16))
        case "float64":
            return bool(ours == float(text or 0))
    if re.fullmatch(r"u?int\d+", kind):
        return bool(ours == int(text or "0", 0))
    return bool(ours == type(ours)())
