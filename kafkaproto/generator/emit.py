"""Source text of the generated modules: dataclasses, wire layouts (fields in wire order), indexes, error codes and the release table.

The module `layouts` decides the wire format, and `spec` the permitted content of definitions.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from kafkaproto.generator.layouts import Layout, Layouts, ranges
from kafkaproto.generator.spec import Field, Message, Struct, children, snake_case
from kafkaproto.versions import OPEN_ENDED, VersionRange

COMMAND = "python -m kafkaproto.generator"
LINE_LENGTH = 120

PYTHON_TYPES = {
    "bool": "bool",
    "float64": "float",
    "uuid": "bytes",
    "string": "str",
    "bytes": "bytes",
    "records": "RecordsValue",
}
IMPORTED_NAMES = {
    "kafkaproto.arrays": {"Array", "CompactArray", "CompactNullableArray", "NullableArray"},
    "kafkaproto.message": {"Message", "NullableStruct", "TaggedNullableStruct"},
    "kafkaproto.primitives": {
        *("Bool", "Float64", "Int16", "Int32", "Int64", "Int8", "RecordsValue", "Uint16", "Uint32", "Uuid"),
        *(
            compact + null + base
            for base in ("String", "Bytes", "Records")
            for compact in ("", "Compact")
            for null in ("", "Nullable")
        ),
    },
    "kafkaproto.structs": {"Struct", "Whole"},
    "kafkaproto.tags": {"Tagged", "Tags"},
}


def banner(sources: str) -> str:
    """Return the first line of a generated file, which names its generator and its `sources`, such as "schemas/errors.json"."""
    return f"# Generated from {sources} by `{COMMAND}`. Do not edit.\n"


def module(messages: list[Message], sources: str) -> str:
    """Return the source text of a generated module: the classes of its messages, such as request and response of an API, then their layouts.

    sources: the names of the files with the definitions, for the first line of the module.
    """
    names = class_names(messages)
    classes = [
        dataclass_text(struct, message, names[message.name]) for message in messages for struct in message.structs
    ]
    layouts = [text for message in messages for text in layout_texts(message, Layouts(message, names[message.name]))]
    body = "\n\n".join(classes) + "\n\n" + "\n".join(layouts)
    title = " and ".join(message.name for message in messages)
    docstring = f'"""{title}: dataclasses with the fields of all versions, and the wire layout of each version."""\n'
    return f"{banner(sources)}{docstring}{imports(body)}\n\n{body}"


def class_names(messages: list[Message]) -> dict[str, dict[str, str]]:
    """Return {message name: {struct name: class name}}. Class names begin with the message's name if several messages use the struct name."""
    occurrences: dict[str, int] = {}
    for message in messages:
        for struct in message.structs:
            occurrences[struct.name] = occurrences.get(struct.name, 0) + 1
    return {
        message.name: {
            struct.name: message.name + struct.name if occurrences[struct.name] > 1 else struct.name
            for struct in message.structs
        }
        for message in messages
    }


def imports(body: str) -> str:
    """Return the source text of the import statements that a module needs. body: the rest of the module's source text."""
    used = set(re.findall(r"\b[A-Z][A-Za-z0-9]*\b", body))
    lines = ["from dataclasses import dataclass" + (", field" if "field(" in body else ""), ""]
    for source, names in IMPORTED_NAMES.items():
        if used & names:
            lines += import_lines(source, used & names)
    return "\n".join(["", *lines, ""])


def import_lines(source: str, names: Iterable[str]) -> list[str]:
    """Return the lines that import `names` from the module `source`, wrapped if they exceed the line length."""
    line = f"from {source} import {', '.join(sorted(names))}"
    if len(line) <= LINE_LENGTH:
        return [line]
    return [f"from {source} import (", *(f"    {name}," for name in sorted(names)), ")"]


def dataclass_text(struct: Struct, message: Message, names: dict[str, str]) -> str:
    """Return the source text of the dataclass of a struct, with slots and the fields of all versions.

    The class inherits equality and `repr`, and the text has a docstring. Otherwise `dataclass` would generate all three whenever the module is
    imported, which is slow. names: maps struct names to class names.
    """
    base = "Whole" if struct.name == message.name else "Struct"
    lines = ["@dataclass(slots=True, eq=False, repr=False)", f"class {names[struct.name]}({base}):"]
    lines += [f'    """{docstring(struct, message, names)}"""', ""]
    lines += [field_text(field, message, names) for field in struct.fields]
    if message.flexible:
        lines.append("    unknown_tagged_fields: list[tuple[int, bytes]] | None = None")
    return "\n".join(lines) + "\n"


DATA_TEXTS = {
    "ConsumerProtocolAssignment": "Partitions that a classic group's leader assigns to a member in SyncGroup",
    "ConsumerProtocolSubscription": "Subscription of a classic consumer, as bytes in its JoinGroup request",
    "DefaultPrincipalData": "Principal of a client, as bytes in a forwarded request (KIP-590)",
    "EndTxnMarker": "Value of the control record that commits or aborts a transaction (KIP-98)",
    "KRaftVersionRecord": "Value of the control record that sets the KRaft version of a quorum (KIP-853)",
    "LeaderChangeMessage": "Value of the control record of a new leader of a KRaft quorum (KIP-595)",
    "SnapshotFooterRecord": "Value of the last control record in a snapshot of a KRaft quorum's log (KIP-630)",
    "SnapshotHeaderRecord": "Value of the first control record in a snapshot of a KRaft quorum's log (KIP-630)",
    "VotersRecord": "Value of the control record that lists the voters of a KRaft quorum (KIP-853)",
}
"""Maps the name of each definition without an API key, except coordinators' records, to the start of its class's docstring (`data_text`)."""


def docstring(struct: Struct, message: Message, names: dict[str, str]) -> str:
    """Return the docstring of a struct's class.

    For a whole message, the docstring states the versions and the API key. For a definition without an API key, it states what the class describes,
    such as the key of a record. For any other struct, it states the fields that have this struct as their type. names: maps struct names to class
    names.
    """
    if struct.name == message.name:
        if message.kind == "header":
            what = message.name.replace("Header", " header")
        elif message.api_key is None:
            return f"{data_text(message)}; this data has {versions_text(message.versions)}, {flexible_clause(message)}."
        else:
            what = f"{message.kind.capitalize()} of API key {message.api_key}"
        return f"{what}: {versions_text(message.versions)}; {flexible_text(message)}."
    uses = [
        (field.type.is_array, f"``{names[parent.name]}.{field.name}``")
        for parent in message.structs
        for field in parent.fields
        if field.type.name == struct.name
    ]
    items = listed([place for is_item, place in uses if is_item])
    values = listed([place for is_item, place in uses if not is_item])
    if items and values:
        return f"One item of the list {items}, or the struct in the field {values}."
    return f"One item of the list {items}." if items else f"The struct in the field {values}."


def data_text(message: Message) -> str:
    """Return in words what a message definition without an API key describes: the key or the value of a record, or other data."""
    if message.topic:
        return f"Key of a record in the topic `{message.topic}`"
    if message.name.endswith("Value"):
        return f"Value of a record whose key is `{message.name.removesuffix('Value')}Key`"
    return DATA_TEXTS.get(message.name, "Data inside a message or a record")


def listed(words: list[str]) -> str:
    """Return words joined for a sentence: `a`, `a or b`, or `a, b or c`."""
    return " or ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def versions_text(versions: VersionRange) -> str:
    """Return a range of versions in words: `version 2` or `versions 0 to 4`."""
    if versions.lowest == versions.highest:
        return f"version {versions.lowest}"
    return f"versions {versions.lowest} to {versions.highest}"


def flexible_text(message: Message) -> str:
    """Return in words which versions of a message are flexible: none, all, or all versions from a certain version on."""
    if not message.flexible:
        return "not flexible (KIP-482)"
    if message.flexible.lowest > message.versions.lowest:
        return f"flexible from version {message.flexible.lowest} on (KIP-482)"
    return "flexible (KIP-482)" if message.versions.lowest == message.versions.highest else "all flexible (KIP-482)"


def flexible_clause(message: Message) -> str:
    """Return the clause that follows the versions in a sentence: which of them are flexible, such as "all of which are flexible (KIP-482)"."""
    is_one = message.versions.lowest == message.versions.highest
    if not message.flexible:
        return ("which is not" if is_one else "none of which is") + " flexible (KIP-482)"
    if message.flexible.lowest > message.versions.lowest:
        return flexible_text(message)
    return ("which is" if is_one else "all of which are") + " flexible (KIP-482)"


def field_text(field: Field, message: Message, names: dict[str, str]) -> str:
    """Return the line that declares a field: name, type, default, and a comment with its versions, tag and whether it is ignorable.

    names: maps struct names to class names.
    """
    remarks = []
    if (field.versions.lowest, field.versions.highest) != (message.versions.lowest, OPEN_ENDED):
        remarks.append(f"v{field.versions}")
    if field.tagged:
        remarks.append(f"tag {field.tag}")
    if field.ignorable:
        remarks.append("ignorable")
    comment = f"  # {', '.join(remarks)}" if remarks else ""
    return f"    {field.name}: {python_type(field, names)} = {default_text(field, names)}{comment}"


def python_type(field: Field, names: dict[str, str]) -> str:
    """Return the type annotation of a field. names: maps struct names to class names."""
    name = field.type.name
    item = names[name] if field.type.is_struct else PYTHON_TYPES.get(name, "int")
    item = f"list[{item}]" if field.type.is_array else item
    return f"{item} | None" if field.nullable or field.default is None else item


def default_text(field: Field, names: dict[str, str]) -> str:
    """Return the default of a field as source text. Mutable defaults use a factory. names: maps struct names to class names."""
    if field.default == ():
        factory = "list" if field.type.is_array else names[field.type.name]
        return f"field(default_factory={factory})"
    if field.type.name == "uuid":
        return "bytes(16)"
    return repr(field.default).replace("''", '""')


def layout_texts(message: Message, layouts: Layouts) -> Iterator[str]:
    """Yield the source text of each wire layout of a message, in the order of versions.

    The layout of a nested struct precedes the layouts that contain it. The last text defines a dict that maps versions to layouts.
    """
    written: set[str] = set()
    prefix = layouts.of(message.name, message.versions.lowest).constant.rpartition("_V")[0]
    for version in message.versions:
        yield from struct_layouts(layouts, message.name, version, written)
        constant = layouts.of(message.name, version).constant
        if constant != f"{prefix}_V{version}":
            yield f"{prefix}_V{version} = {constant}\n"
    cls = layouts.class_names[message.name]
    rows = [f"    {version}: {prefix}_V{version}," for version in message.versions]
    table = {"request": "REQUESTS", "response": "RESPONSES"}.get(message.kind, "LAYOUTS")
    yield "\n".join([f"{table}: dict[int, Message[{cls}]] = {{", *rows, "}", f"{cls}.layouts = {table}\n"])


def struct_layouts(layouts: Layouts, name: str, version: int, written: set[str]) -> Iterator[str]:
    """Yield the source text of a struct's wire layout in one version, after the layouts of its nested structs.

    written: the names of the layouts that were yielded before; these layouts are omitted. The names of the layouts yielded now are added.
    """
    layout = layouts.of(name, version)
    if layout.constant in written:
        return
    written.add(layout.constant)
    for child in children(layouts.structs[name]):
        if layouts.has(child, version):
            yield from struct_layouts(layouts, child, version, written)
    yield layout_text(layout, layouts.class_names[name], leading=layouts.message.kind == "header")


def layout_text(layout: Layout, cls: str, *, leading: bool) -> str:
    """Return the text of a layout: ``FETCH_REQUEST_V0 = Message(FetchRequest, …)``.

    cls: the name of the dataclass. leading: whether the layout is that of a header; the text then contains ``leading=True``.
    """
    lines = [f"{layout.constant} = Message(", f"    {cls},"]
    lines += [f"    {line}" if line.endswith(("(", ",")) else f"    {line}," for line in layout.lines]
    lines.append(f'    versions="{ranges(layout.versions)}",')
    if layout.absent:
        names = ", ".join(f'"{name}"' for name in layout.absent)
        lines.append(f"    absent=({names}{',' if len(layout.absent) == 1 else ''}),")
    if leading:
        lines.append("    leading=True,")
    return "\n".join([*lines, ")\n"])


def index(apis: list[tuple[str, Message]]) -> str:
    """Return the source text of ``messages/__init__.py``, which lists the APIs. apis: (API name, its request's definition), ordered by API key."""
    lines = [
        banner("schemas/messages/*.json"),
        '"""Index of the messages: API keys, versions and modules. Importing it imports no message."""\n',
        "\nfrom enum import IntEnum",
        "from typing import NamedTuple\n\n",
        "class ApiKey(IntEnum):",
        '    """API keys by name."""\n',
        *(f"    {snake_case(name).upper()} = {request.api_key}" for name, request in apis),
        "\n",
        "class ApiInfo(NamedTuple):",
        '    """An API: key, name, versions, first flexible version (None if there is none), and the module of its messages."""\n',
        "    key: ApiKey",
        "    name: str",
        "    min_version: int",
        "    max_version: int",
        "    first_flexible: int | None",
        "    module: str\n\n",
        "APIS: dict[int, ApiInfo] = {",
    ]
    for name, request in apis:
        first = request.flexible.lowest if request.flexible else None
        versions = f"{request.versions.lowest}, {request.versions.highest}"
        key = snake_case(name)
        lines.append(f'    {request.api_key}: ApiInfo(ApiKey.{key.upper()}, "{name}", {versions}, {first}, "{key}"),')
    return "\n".join([*lines, "}\n"])


def data_index(data: list[Message]) -> str:
    """Return the text of ``data/__init__.py``: versions and module of each class, and the classes of the keys and values of coordinators' records."""
    topics = sorted({message.topic for message in data if message.topic})
    lines = [
        banner("schemas/data/*.json"),
        '"""Index of the data inside messages and records: versions and module of each kind. Importing the index does not import the modules."""\n',
        "from typing import NamedTuple\n\n",
        "class DataInfo(NamedTuple):",
        '    """A kind of data inside messages or records: its name, its versions, and the module with its layouts."""\n',
        "    name: str",
        "    min_version: int",
        "    max_version: int",
        "    module: str\n\n",
        "DATA: dict[str, DataInfo] = {",
    ]
    for message in data:
        low, high = message.versions.lowest, message.versions.highest
        entry = f'DataInfo("{message.name}", {low}, {high}, "{snake_case(message.name)}")'
        lines.append(f'    "{message.name}": {entry},')
    lines += ["}\n", "RECORDS: dict[str, dict[int, tuple[str, str]]] = {"]
    for topic in topics:
        keys = {version: message for message in data if message.topic == topic for version in message.versions}
        rows = [f'        {number}: ("{keys[number].name}", "{keys[number].value}"),' for number in sorted(keys)]
        lines += [f'    "{topic}": {{', *rows, "    },"]
    lines += [
        "}",
        '"""Maps a topic, then the int16 at the start of a record\'s key, to the names of the data in key and value."""\n',
    ]
    return "\n".join(lines)


def release_table(source: dict[str, Any]) -> str:
    """Return the text of ``release_table.py``: the API versions that each release of Kafka offers, as one string for each release.

    The string is parsed when it is first used. source: the parsed content of ``schemas/releases.json``.
    """
    lines = [
        banner("schemas/releases.json"),
        '"""API versions offered by each release of Kafka. Use `kafkaproto.releases` to look them up."""\n',
    ]
    names = {int(key): name for key, name in source["names"].items()}
    rows = [f'    {key}: "{name}",' for key, name in names.items()]
    lines += [
        "NAMES = {",
        *rows,
        "}",
        '"""Maps the key of an API that only brokers use, and that this package has no messages for, to its name."""\n',
    ]
    lines.append("TABLE = {")
    for release, offered in source["releases"].items():
        text = " ".join(
            f"{key}:{low}" if low == high else f"{key}:{low}-{high}" for key, (low, high) in offered.items()
        )
        lines += [f'    "{release}": (', *(f'        "{line}"' for line in _wrapped(text)), "    ),"]
    return "\n".join(
        [
            *lines,
            "}",
            '"""Maps a release to the text ``key:lowest-highest`` (API key and versions) for every API, separated by spaces."""\n',
        ]
    )


def _wrapped(text: str) -> list[str]:
    """Split a text into lines of limited length. All lines but the last end with a space, so that joining them gives the text."""
    lines = textwrap.wrap(text, LINE_LENGTH - 12)
    return [f"{line} " for line in lines[:-1]] + lines[-1:]


def error_codes(errors: list[dict[str, int | str | bool]]) -> str:
    """Return the text of ``error_codes.py`` from the rows of ``schemas/errors.json``."""
    retriable = [f"        {error['number']},  # {error['name']}" for error in errors if error["retriable"]]
    return "\n".join(
        [
            banner("schemas/errors.json"),
            '"""The error codes of Kafka, which responses contain."""\n',
            "from enum import IntEnum\n\n",
            "class ErrorCode(IntEnum):",
            '    """Kafka\'s error codes by number."""\n',
            *(f"    {error['name']} = {error['number']}" for error in errors),
            "",
            "    @property",
            "    def retriable(self) -> bool:",
            '        """Return whether a request that failed with this error may succeed if it is sent again later."""',
            "        return self.value in RETRIABLE\n\n",
            "RETRIABLE = frozenset(",
            "    {",
            *retriable,
            "    }",
            ")\n",
        ]
    )
