"""The text of the generated modules: dataclasses, layouts, the index, the error codes.

This module must never decide what is on the wire (`layouts`) nor what is allowed (`spec`).
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from kafkaproto.generator.layouts import Layout, Layouts, ranges
from kafkaproto.generator.spec import Field, Message, Struct, children, snake_case
from kafkaproto.versions import OPEN_ENDED

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
    """The first line of every generated file: from what, by what, hands off."""
    return f"# Generated from {sources} by `{COMMAND}`. Do not edit.\n"


def module(messages: list[Message], sources: str) -> str:
    """The module of one API: the request's and the response's classes, then their layouts."""
    names = class_names(messages)
    classes = [
        dataclass_text(struct, message, names[message.name]) for message in messages for struct in message.structs
    ]
    layouts = [text for message in messages for text in layout_texts(message, Layouts(message, names[message.name]))]
    body = "\n\n".join(classes) + "\n\n" + "\n".join(layouts)
    title = " and ".join(message.name for message in messages)
    docstring = f'"""{title}: classes for all versions, and the layout of each version."""\n'
    return f"{banner(sources)}{docstring}{imports(body)}\n\n{body}"


def class_names(messages: list[Message]) -> dict[str, dict[str, str]]:
    """Message name to struct name to class name: a name that two messages have gets the message's name in front."""
    seen: dict[str, int] = {}
    for message in messages:
        for struct in message.structs:
            seen[struct.name] = seen.get(struct.name, 0) + 1
    return {
        message.name: {
            struct.name: message.name + struct.name if seen[struct.name] > 1 else struct.name
            for struct in message.structs
        }
        for message in messages
    }


def imports(body: str) -> str:
    """The imports that the body needs."""
    used = set(re.findall(r"\b[A-Z][A-Za-z0-9]*\b", body))
    lines = ["from dataclasses import dataclass" + (", field" if "field(" in body else ""), ""]
    for source, names in IMPORTED_NAMES.items():
        if used & names:
            lines += import_lines(source, used & names)
    return "\n".join(["", *lines, ""])


def import_lines(source: str, names: Iterable[str]) -> list[str]:
    """One import, on as many lines as the line length asks for."""
    line = f"from {source} import {', '.join(sorted(names))}"
    if len(line) <= LINE_LENGTH:
        return [line]
    return [f"from {source} import (", *(f"    {name}," for name in sorted(names)), ")"]


def dataclass_text(struct: Struct, message: Message, names: dict[str, str]) -> str:
    """One slots dataclass with the fields of all versions.

    Comparing and printing come from the base class, and every class has a docstring: what `dataclass` would make
    instead is most of the time that it takes to import a module.
    """
    base = "Whole" if struct.name == message.name else "Struct"
    lines = ["@dataclass(slots=True, eq=False, repr=False)", f"class {names[struct.name]}({base}):"]
    lines += [f'    """{docstring(struct, message, names)}"""', ""]
    lines += [field_text(field, message, names) for field in struct.fields]
    if message.flexible:
        lines.append("    unknown_tagged_fields: list[tuple[int, bytes]] | None = None")
    return "\n".join(lines) + "\n"


def docstring(struct: Struct, message: Message, names: dict[str, str]) -> str:
    """What a struct is: the message, or where in it."""
    if struct.name == message.name:
        key = "" if message.api_key is None else f"API key {message.api_key}, "
        flexible = f"flexible from version {message.flexible.lowest}" if message.flexible else "never flexible"
        return f"{key}versions {message.versions}, {flexible}."
    places = [
        f"{'An item of ' if field.type.is_array else ''}``{names[parent.name]}.{field.name}``"
        for parent in message.structs
        for field in parent.fields
        if field.type.name == struct.name
    ]
    return ", ".join(places) + "."


def field_text(field: Field, message: Message, names: dict[str, str]) -> str:
    """A field, its default, and in a comment what is special about it."""
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
    """The annotation of a field."""
    name = field.type.name
    item = names[name] if field.type.is_struct else PYTHON_TYPES.get(name, "int")
    item = f"list[{item}]" if field.type.is_array else item
    return f"{item} | None" if field.nullable or field.default is None else item


def default_text(field: Field, names: dict[str, str]) -> str:
    """The default of a field; mutable ones come from a factory."""
    if field.default == ():
        factory = "list" if field.type.is_array else names[field.type.name]
        return f"field(default_factory={factory})"
    if field.type.name == "uuid":
        return "bytes(16)"
    return repr(field.default).replace("''", '""')


def layout_texts(message: Message, layouts: Layouts) -> Iterator[str]:
    """The layouts of a message version by version, each behind the ones that it uses; last the table of versions."""
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
    """The layout that a struct has in a version, inner ones first, unless it is written already."""
    layout = layouts.of(name, version)
    if layout.constant in written:
        return
    written.add(layout.constant)
    for child in children(layouts.structs[name]):
        if layouts.has(child, version):
            yield from struct_layouts(layouts, child, version, written)
    yield layout_text(layout, layouts.class_names[name], leading=layouts.message.kind == "header")


def layout_text(layout: Layout, cls: str, *, leading: bool) -> str:
    """``FETCH_REQUEST_V0 = Message(FetchRequest, …)``."""
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
    """``messages/__init__.py``: API keys and where their modules are. ``apis``: (name, request) in order of keys."""
    lines = [
        banner("schemas/messages/*.json"),
        '"""Which messages there are. Importing this imports none of them."""\n',
        "\nfrom enum import IntEnum",
        "from typing import NamedTuple\n\n",
        "class ApiKey(IntEnum):",
        '    """The numbers of the APIs."""\n',
        *(f"    {snake_case(name).upper()} = {request.api_key}" for name, request in apis),
        "\n",
        "class ApiInfo(NamedTuple):",
        '    """An API: its versions, the first flexible one (None: there is none), the module with its messages."""\n',
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
    """``data/__init__.py``: names and versions, and which keys and values the coordinators' topics have."""
    topics = sorted({message.topic for message in data if message.topic})
    lines = [
        banner("schemas/data/*.json"),
        '"""What travels inside messages and records: where it is. Importing this imports none of it."""\n',
        "from typing import NamedTuple\n\n",
        "class DataInfo(NamedTuple):",
        '    """What it is called, its versions, the module with its layouts."""\n',
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
        '"""Topic to the number in front of a key, which is the key\'s version: names of key and value."""\n',
    ]
    return "\n".join(lines)


def release_table(source: dict[str, Any]) -> str:
    """``release_table.py`` from ``schemas/releases.json``: a line of text per release, read when it is asked for."""
    lines = [
        banner("schemas/releases.json"),
        '"""What each release of Kafka offers: `kafkaproto.releases` reads it."""\n',
    ]
    names = {int(key): name for key, name in source["names"].items()}
    rows = [f'    {key}: "{name}",' for key, name in names.items()]
    lines += [
        "NAMES = {",
        *rows,
        "}",
        '"""The names of APIs that there are no messages for: brokers among themselves."""\n',
    ]
    lines.append("TABLE = {")
    for release, offered in source["releases"].items():
        text = " ".join(
            f"{key}:{low}" if low == high else f"{key}:{low}-{high}" for key, (low, high) in offered.items()
        )
        lines += [f'    "{release}": (', *(f'        "{line}"' for line in _wrapped(text)), "    ),"]
    return "\n".join([*lines, "}", '"""Release to ``key:lowest-highest`` of every API."""\n'])


def _wrapped(text: str) -> list[str]:
    """Words in lines, all but the last with a space at the end."""
    lines = textwrap.wrap(text, LINE_LENGTH - 12)
    return [f"{line} " for line in lines[:-1]] + lines[-1:]


def error_codes(errors: list[dict[str, int | str | bool]]) -> str:
    """``error_codes.py`` from the rows of ``schemas/errors.json``."""
    retriable = [f"        {error['number']},  # {error['name']}" for error in errors if error["retriable"]]
    return "\n".join(
        [
            banner("schemas/errors.json"),
            '"""The error codes of responses."""\n',
            "from enum import IntEnum\n\n",
            "class ErrorCode(IntEnum):",
            '    """Kafka\'s error codes by number."""\n',
            *(f"    {error['name']} = {error['number']}" for error in errors),
            "",
            "    @property",
            "    def retriable(self) -> bool:",
            '        """Whether the same request may succeed later."""',
            "        return self.value in RETRIABLE\n\n",
            "RETRIABLE = frozenset(",
            "    {",
            *retriable,
            "    }",
            ")\n",
        ]
    )
