"""The distinct wire layouts of each struct in a message definition. A layout lists the fields of a struct in wire order, with their wire types.

Two versions of a struct share a layout if the same ``Message(...)`` expression is generated for both. This module does not depend on files.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafkaproto.generator.spec import Field, Message, Struct, snake_case

WIRE_NAMES = {
    "bool": "Bool",
    "int8": "Int8",
    "int16": "Int16",
    "uint16": "Uint16",
    "int32": "Int32",
    "uint32": "Uint32",
    "int64": "Int64",
    "float64": "Float64",
    "uuid": "Uuid",
    "string": "String",
    "bytes": "Bytes",
    "records": "Records",
}


@dataclass(slots=True)
class Layout:
    """The wire layout (the fields in wire order, with their wire types) that a struct has in some versions of a message.

    For each layout, the generator writes ``NAME = Message(...)``.

    - constant: ``NAME``, the name of this constant.
    - lines: the lines of source code in the parentheses that list the fields.
    - versions: the versions with this layout, in ascending order.
    - absent: the fields that these versions lack and whose values must not be lost: encoding fails if one of them differs from its default.
    """

    constant: str
    lines: tuple[str, ...]
    absent: tuple[str, ...]
    versions: list[int]


class Layouts:
    """The distinct wire layouts (lists of fields in wire order, with their types) of each struct in one message definition.

    ``class_names`` maps the name of a struct in the definition to the name of its Python class. If the request and the response of an API both have a
    struct of this name, the class names begin with the message's name.
    """

    def __init__(self, message: Message, class_names: dict[str, str]) -> None:
        self.message = message
        self.class_names = class_names
        self.structs = {struct.name: struct for struct in message.structs}
        self.by_struct: dict[str, list[Layout]] = {struct.name: [] for struct in message.structs}
        self._of_version: dict[tuple[str, int], Layout] = {}
        for version in message.versions:
            self.of(message.name, version)

    def has(self, struct_name: str, version: int) -> bool:
        """Return whether the message contains a struct of this name in a version."""
        return (struct_name, version) in self._of_version

    def of(self, struct_name: str, version: int) -> Layout:
        """Return the layout of a struct in one version.

        struct_name: the name of the struct in Kafka's definition of the message.
        """
        key = (struct_name, version)
        if key not in self._of_version:
            self._of_version[key] = self._make(self.structs[struct_name], version)
        return self._of_version[key]

    def _make(self, struct: Struct, version: int) -> Layout:
        lines = tuple(self._lines(struct, version))
        absent = tuple(f.name for f in struct.fields if version not in f.versions and not f.ignorable)
        for layout in self.by_struct[struct.name]:
            if (layout.lines, layout.absent) == (lines, absent):
                layout.versions.append(version)
                return layout
        constant = f"{constant_case(self.class_names[struct.name])}_V{version}"
        layout = Layout(constant, lines, absent, [version])
        self.by_struct[struct.name].append(layout)
        return layout

    def _lines(self, struct: Struct, version: int) -> list[str]:
        present = [field for field in struct.fields if version in field.versions]
        lines = [self._named(field, version) for field in present if version not in field.tagged]
        if version in self.message.flexible:
            lines += self._tag_lines(struct, present, version)
        return lines

    def _tag_lines(self, struct: Struct, present: list[Field], version: int) -> list[str]:
        tagged = [field for field in present if version in field.tagged]
        reserved = sorted(f.tag for f in struct.fields if f.tag is not None and version not in f.tagged)
        lines = [f"Tagged({field.tag}, {self._named(field, version)})" for field in tagged]
        if reserved:
            lines.append(f"reserved=({', '.join(map(str, reserved))}{',' if len(reserved) == 1 else ''})")
        if not lines:
            return ["Tags()"]
        return ["Tags(", *(f"    {line}," for line in lines), ")"]

    def _named(self, field: Field, version: int) -> str:
        return f'"{field.name}" / {self._wire_type(field, version)}'

    def _wire_type(self, field: Field, version: int) -> str:
        flexible = version in (self.message.flexible if field.flexible is None else field.flexible)
        prefix = ("Compact" if flexible else "") + ("Nullable" if version in field.nullable else "")
        name = field.type.name
        inner = self.of(name, version).constant if field.type.is_struct else WIRE_NAMES[name]
        if field.type.is_array:
            inner = f"Compact{inner}" if flexible and inner in ("String", "Bytes") else inner
            return f"{prefix}Array({inner})"
        if field.type.is_struct:
            marker = "Tagged" if version in field.tagged else ""
            return f"{marker}NullableStruct({inner})" if version in field.nullable else inner
        return prefix + inner if inner in ("String", "Bytes", "Records") else inner


def constant_case(class_name: str) -> str:
    """Return a class name as a constant's name: ``FETCH_REQUEST`` for ``FetchRequest``."""
    return snake_case(class_name).upper()


def ranges(versions: list[int]) -> str:
    """Return version numbers as text: ``"0-2, 5"`` for ``[0, 1, 2, 5]``."""
    parts: list[list[int]] = []
    for version in versions:
        if parts and parts[-1][1] == version - 1:
            parts[-1][1] = version
        else:
            parts.append([version, version])
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in parts)
