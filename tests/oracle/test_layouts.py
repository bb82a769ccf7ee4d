"""Our layouts and facts against what the kafka-clients jar says about itself."""

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
    """A layout in the shape in which the oracle prints Kafka's schemas."""
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
            return message_tree(wire_type.struct)  # the constants do not say which structs may be null
    raise AssertionError(f"{wire_type} is new here")


def message_tree(layout: Message[Any]) -> dict[str, Any]:
    fields = [[name, tree(wire_type)] for name, wire_type in layout.fields]
    if layout.tags:
        tags = {str(field.tag): [field.name, tree(field.type)] for field in layout.tags.fields}
        fields.append(["_tagged_fields", {"tags": tags}])
    return {"struct": fields}


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
def test_every_layout_is_the_schema_constant_of_each_release_that_has_it(releases: Releases, entry: Entry) -> None:
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


def test_the_definitions_are_those_of_both_jars_and_no_others(jars: tuple[dict[str, Any], dict[str, Any]]) -> None:
    expected = merged(*jars)
    assert message_names() == sorted(expected)
    for name, theirs in expected.items():
        assert (SCHEMAS / "messages" / f"{name}.json").read_text() == to_text(theirs)


@pytest.mark.parametrize("name", message_names())
def test_every_field_is_in_every_version_what_each_jar_says(
    name: str, jars: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    ours = json.loads((SCHEMAS / "messages" / f"{name}.json").read_text())
    for theirs in (jar[name] for jar in jars if name in jar):
        for version in VersionRange.parse(theirs["validVersions"]):
            assert of_version(ours, version) == of_version(theirs, version), f"version {version}"


def of_version(definition: dict[str, Any], version: int) -> dict[str, Any]:
    """What a definition says about one version, without saying where else it is true."""
    common = {struct["name"]: struct["fields"] for struct in definition.get("commonStructs", [])}

    def fields_of(fields: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [field_of(field) for field in fields if version in VersionRange.parse(field["versions"])]

    def field_of(field: dict[str, Any]) -> dict[str, Any]:
        said = {key: value for key, value in field.items() if key not in (*RANGES, "ignorable", "fields")}
        said |= {key: version in VersionRange.parse(field.get(key, "none")) for key in RANGES}
        fields = field.get("fields", common.get(field["type"].removeprefix("[]")))
        # a tag that only other versions have is of no matter here; ignorable is about versions without the field
        said = {key: value for key, value in said.items() if key != "tag" or said["taggedVersions"]}
        return said if fields is None else {**said, "fields": fields_of(fields)}

    flexible = version in VersionRange.parse(definition["flexibleVersions"])
    return {"key": definition.get("apiKey"), "flexible": flexible, "fields": fields_of(definition["fields"])}


def test_definitions_hold_facts_and_no_sentences() -> None:
    known = {*FIELD_FACTS, "fields"}
    for path in (SCHEMAS / "messages").glob("*.json"):
        text = path.read_text()
        assert "//" not in text and '"about"' not in text and "Licensed" not in text
        pending = list(json.loads(text)["fields"])
        while pending:
            field = pending.pop()
            assert field.keys() <= known, path
            pending += field.get("fields", [])


def test_error_codes_are_the_jars() -> None:
    theirs = read_errors(clients_jar(NEWER_VERSION))
    assert json.loads((SCHEMAS / "errors.json").read_text()) == theirs
    assert [(code.value, code.name, code.retriable) for code in ErrorCode] == [
        (error["number"], error["name"], error["retriable"]) for error in theirs
    ]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
def test_what_may_be_null_or_lost_and_what_is_the_default_is_what_each_jar_says(
    entry: Entry, jars: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    asked = 0
    for theirs in (jar[entry.name] for jar in jars if entry.name in jar):
        stable = VersionRange.parse(theirs["validVersions"])
        if entry.version in stable:
            fields = of_versions(theirs["fields"], stable)
            common = {struct["name"]: struct["fields"] for struct in theirs.get("commonStructs", [])}
            compare_facts(entry.layout, fields, common, entry.version)
            asked += 1
    assert asked


def of_versions(fields: list[dict[str, Any]], stable: VersionRange) -> list[dict[str, Any]]:
    """The fields that some stable version has."""
    return [field for field in fields if VersionRange.parse(field["versions"]).intersect(stable)]


def compare_facts(layout: Message[Any], fields: list[dict[str, Any]], common: dict[str, Any], version: int) -> None:
    """The fields of a struct, one by one: order, tags, null, defaults; and which of the others may not be lost."""
    ours = {wire_name(layout, name): name for name in layout.defaults}
    named = {field["name"][0].lower() + field["name"][1:]: field for field in fields}
    here = {wire: field for wire, field in named.items() if version in VersionRange.parse(field["versions"])}
    tags = {
        wire: field["tag"]
        for wire, field in here.items()
        if version in VersionRange.parse(field.get("taggedVersions", "none"))
    }
    assert [wire_name(layout, name) for name, _ in layout.fields] == [wire for wire in here if wire not in tags]
    tagged = layout.tags.fields if layout.tags else ()
    assert {wire_name(layout, field.name): field.tag for field in tagged} == tags
    kinds = {**dict(layout.fields), **{field.name: field.type for field in tagged}}
    for wire, field in here.items():
        kind, default = kinds[ours[wire]], layout.defaults[ours[wire]]()
        nullable = version in VersionRange.parse(field.get("nullableVersions", "none"))
        assert is_nullable(kind) == nullable, wire
        assert same_default(field, default), (wire, default)
        inner = field.get("fields", common.get(field["type"].removeprefix("[]")))
        if inner is not None:
            compare_facts(struct_in(kind), inner, common, version)
    lost = {wire for wire, field in named.items() if wire not in here and not field.get("ignorable", False)}
    assert {wire_name(layout, name) for name in layout.absent} & named.keys() == lost


def is_nullable(kind: WireType) -> bool:
    return isinstance(kind, NullableStruct) or (isinstance(kind, LengthPrefixed) and kind.nullable)


def struct_in(kind: WireType) -> Message[Any]:
    return next(part for part in parts(kind) if isinstance(part, Message))


def same_default(field: dict[str, Any], ours: Any) -> bool:
    """Whether our default is the one that the definition names, or the one of its type if it names none."""
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
