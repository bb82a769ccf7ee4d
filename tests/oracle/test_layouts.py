"""Our layouts and facts against what the kafka-clients jar says about itself."""

from __future__ import annotations

import json
import re
import zipfile
from typing import Any

import pytest

from kafkaproto.arrays import ArrayType
from kafkaproto.error_codes import ErrorCode
from kafkaproto.generator import SCHEMAS
from kafkaproto.generator.refresh import FIELD_FACTS, facts, read_errors, to_text, wanted_files
from kafkaproto.generator.spec import FIELD_NAMES
from kafkaproto.message import Message, NullableStruct
from kafkaproto.primitives import BytesType, FixedWidth, RecordsType, StringType, WireType
from tests.kafkaproto.catalogue import ENTRIES, Entry
from tests.oracle.jars import clients_jar
from tests.oracle.oracle import Oracle

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
            raise AssertionError("none of our messages has a nullable struct")
    raise AssertionError(f"{wire_type} is new here")


def message_tree(layout: Message[Any]) -> dict[str, Any]:
    fields = [[name, tree(wire_type)] for name, wire_type in layout.fields]
    if layout.tags:
        tags = {str(field.tag): [field.name, tree(field.type)] for field in layout.tags.fields}
        fields.append(["_tagged_fields", {"tags": tags}])
    return {"struct": fields}


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
def test_every_layout_is_kafkas_schema_constant(oracle: Oracle, entry: Entry) -> None:
    ours = json.dumps(tree(entry.layout))
    if entry.name == "RequestHeader":
        for name, kafkas in KAFKA_NAMES.items():
            ours = ours.replace(f'"{name}"', f'"{kafkas}"')
    assert json.loads(ours) == oracle.layouts(entry.name)[str(entry.version)]


@pytest.mark.parametrize("name", sorted(wanted_files()))
def test_every_definition_is_what_the_jar_says_field_by_field(name: str) -> None:
    with zipfile.ZipFile(clients_jar()) as jar:
        theirs = facts(jar.read(f"common/message/{name}.json").decode(), wanted_files()[name])
    committed = (SCHEMAS / "messages" / f"{name}.json").read_text()
    assert json.loads(committed) == theirs
    assert committed == to_text(theirs)


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
    theirs = read_errors(clients_jar())
    assert json.loads((SCHEMAS / "errors.json").read_text()) == theirs
    assert [(code.value, code.name, code.retriable) for code in ErrorCode] == [
        (error["number"], error["name"], error["retriable"]) for error in theirs
    ]
