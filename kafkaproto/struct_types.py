"""Wire types of structs. A struct is a dataclass with the fields of all versions; its wire type lists the fields of one version, in wire order.

There are two ways to decode and to encode. ``_parse`` and ``_build`` go through the fields one by one, and name path and offset in errors.
``emit_decode`` and ``emit_encode`` generate fast code that does the same. This module does not depend on any API or on the JSON form.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from typing import Any, BinaryIO, Generic, TypeVar

from construct import Construct

from kafkaproto import flat, memory
from kafkaproto.arrays import ArrayType
from kafkaproto.contexts import reading
from kafkaproto.defaults import UNKNOWN_TAGS, Defaults, defaults_of, differs, emit_defaults, emit_differs, emit_new
from kafkaproto.errors import EncodeError, safe_repr
from kafkaproto.flat import FlatCode
from kafkaproto.primitives import FixedWidth, RecordsType
from kafkaproto.tags import Tags
from kafkaproto.wire_type import WireType, read

T = TypeVar("T")


class StructType(WireType, Generic[T]):
    """The wire type of a struct in some versions: the fields of the dataclass ``cls`` in wire order, with the tag section last if there is one.

    ``absent`` names fields that do not exist in these versions and that Kafka marks as ``ignorable: false``: encoding raises EncodeError if one of
    them differs from its default. Layouts are declared as the subclass `kafkaproto.message.Message`, which has ``decode`` and ``encode``.
    """

    def __init__(self, cls: type[T], *fields: Construct, absent: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.cls = cls
        self.absent = absent
        self.tags: Tags | None = fields[-1] if fields and isinstance(fields[-1], Tags) else None
        untagged_fields = fields[:-1] if self.tags else fields
        self.fields: tuple[tuple[str, WireType], ...] = tuple((field.name, field.subcon) for field in untagged_fields)

    @cached_property
    def has_records(self) -> bool:
        """Return whether a field at any depth holds record batches, which are decoded as slices of the buffer instead of copies."""
        return any(isinstance(part, RecordsType) for part in parts(self))

    @cached_property
    def is_heavy(self) -> bool:
        """Return whether decoding needs a memory limit, because an object can take much more memory than its encoding (`kafkaproto.memory`)."""
        return any(isinstance(part, ArrayType) and part.is_heavy for part in parts(self))

    @cached_property
    def loses_tags(self) -> bool:
        """Return whether encoding must check that an object has no unknown tags: this version is not flexible, so it cannot encode tags."""
        return self.tags is None and UNKNOWN_TAGS in self.defaults

    @cached_property
    def defaults(self) -> Defaults:
        """Return a dict from the name of each field to a function that creates the default of the field.

        The dict also has fields that do not exist in the versions of this wire type: a decoded object has these fields, too, with their defaults.
        """
        return defaults_of(self.cls)

    # The readable form

    def _parse(self, stream: BinaryIO, context: Any, path: str) -> T:
        path = _root(self.cls, path)
        values = {name: wire_type._parse(stream, context, f"{path}.{name}") for name, wire_type in self.fields}
        if self.tags:
            values.update(self.tags.parse_values(stream, context, path))
        return self.cls(**values)

    def _build(self, obj: Any, stream: BinaryIO, context: Any, path: str) -> Any:
        path = _root(self.cls, path)
        if not isinstance(obj, self.cls):
            raise EncodeError(path, f"expected an object of class {self.cls.__name__} (got {safe_repr(obj)})")
        for name in self.absent:
            value = getattr(obj, name)
            if differs(value, self.defaults[name]()):
                raise EncodeError(
                    f"{path}.{name}",
                    f"this version has no such field, so the value {safe_repr(value)} would be lost; use the default, or another version",
                )
        if self.loses_tags and getattr(obj, UNKNOWN_TAGS):
            raise EncodeError(
                f"{path}.{UNKNOWN_TAGS}",
                "this version has no tagged fields, so the unknown tags would be lost; remove them, or use a flexible version",
            )
        for name, wire_type in self.fields:
            wire_type._build(getattr(obj, name), stream, context, f"{path}.{name}")
        if self.tags:
            self.tags.build_values(obj, self.defaults, stream, path)
        return obj

    def weight(self, per_byte: int) -> int:
        kinds = dict(self.fields)
        tagged_names = {field.name for field in self.tags.fields} if self.tags else ()
        others = [make for name, make in self.defaults.items() if name not in kinds and name not in tagged_names]
        weight = memory.size_of_object(self.cls) + sum(memory.size_of_default(make()) for make in others)
        weight += sum(wire_type.weight(per_byte) for wire_type in kinds.values())
        return weight + (self.tags.values_weight(per_byte, self.defaults) if self.tags else 0)

    # The flat form

    def emit_decode(self, code: FlatCode, target: str) -> None:
        if target.isidentifier():
            emit_new(code, target, self.cls)
            self.emit_fields_decode(code, target)
            return
        value = code.local("struct")
        emit_new(code, f"{target} = {value}", self.cls)
        self.emit_fields_decode(code, value)

    def emit_items_decode(self, code: FlatCode, items: str, count: str) -> None:
        # an endless iterator of empty objects is cheaper than a call for each
        code.constant("islice", islice)
        cls: Any = self.cls  # mypy takes a class whose objects are unhashable for unhashable
        supply, item = code.constant(f"new_{cls.__name__}", flat.endless(cls)), code.local("item")
        objects = f"islice({supply}, {count})"
        if self.row is not None:
            self._emit_rows_decode(code, items, item, objects, count, self.row)
            return
        code.line(f"{items} = []")
        with code.block(f"for {item} in {objects}:"):
            self.emit_fields_decode(code, item)
            code.line(f"{items}.append({item})")

    @cached_property
    def row(self) -> str | None:
        """Return one `struct` format for all fields, with which an array of these structs is decoded in one pass.

        None if the struct has a tag section, a field without a fixed width, or no fields.
        """
        formats = [wire_type.fmt for _, wire_type in self.fields if isinstance(wire_type, FixedWidth)]
        return "".join(formats) if formats and len(formats) == len(self.fields) and not self.tags else None

    def _emit_rows_decode(self, code: FlatCode, items: str, item: str, objects: str, count: str, row: str) -> None:
        # structs of fixed size are filled in one pass over their bytes
        rows, end = code.constant("rows_" + flat.identifier(row), flat.rows_unpacker(row)), code.local("q")
        fields = "".join(f"{item}.{name}, " for name, _ in self.fields)
        code.line(f"{end} = p + {count} * {flat.layout(row).size}", f"if {end} > n: raise Malformed")
        code.line(f"{items} = [*{objects}]")
        with code.block(f"for {item}, ({fields.strip()}) in zip({items}, {rows}(b[p:{end}])):"):
            self._emit_defaults(code, item)
        code.line(f"p = {end}")

    def _emit_defaults(self, code: FlatCode, target: str) -> None:
        present = {name for name, _ in self.fields}
        emit_defaults(code, target, {name: make for name, make in self.defaults.items() if name not in present})

    def emit_fields_decode(self, code: FlatCode, target: str) -> None:
        """Add code that decodes the fields into ``target``, the variable of a new, empty object."""
        self._emit_defaults(code, target)
        for name, wire_type in self.fields:
            wire_type.emit_decode(code, f"{target}.{name}")
        if self.tags:
            self.tags.emit_values_decode(code, target)

    def emit_encode(self, code: FlatCode, source: str) -> None:
        if not source.isidentifier():
            value = code.local("struct")
            code.before(f"{value} = {source}")
            source = value
        for name in self.absent:
            differs = emit_differs(code, f"{source}.{name}", self.defaults[name]())
            code.before(f"if {differs}: raise ValueError('{name} would be lost')")
        if self.loses_tags:
            code.before(f"if {source}.{UNKNOWN_TAGS}: raise ValueError('unknown tags would be lost')")
        for name, wire_type in self.fields:
            wire_type.emit_encode(code, f"{source}.{name}")
        if self.tags:
            self.tags.emit_values_encode(code, source, self.defaults)
        elif not self.fields:  # without fields, nothing else would detect an object of another type
            code.line(f"if not isinstance({source}, {code.constant(self.cls.__name__, self.cls)}): raise TypeError")


class NullableStruct(WireType):
    """Wire type of a struct that may be None. The encoding begins with a signed byte, which is negative for None."""

    null, present, null_test = b"\xff", b"\x01", "> 127"

    def __init__(self, struct: StructType[Any]) -> None:
        super().__init__()
        self.struct = struct

    def _parse(self, stream: BinaryIO, context: Any, path: str) -> Any:
        offset = stream.tell()
        is_null = self._is_null(read(stream, 1, path)[0])
        reading(context).passed(path, offset, stream, None if is_null else "(a struct follows)")
        return None if is_null else self.struct._parse(stream, context, path)

    def _build(self, obj: Any, stream: BinaryIO, context: Any, path: str) -> Any:
        stream.write(self.null if obj is None else self.present)
        if obj is not None:
            self.struct._build(obj, stream, context, path)
        return obj

    def _is_null(self, marker: int) -> bool:
        return marker > 0x7F

    def weight(self, per_byte: int) -> int:
        return max(0, self.struct.weight(per_byte)) - per_byte

    def emit_decode(self, code: FlatCode, target: str) -> None:
        marker = code.local("marker")
        code.fixed("B", marker)
        with code.block(f"if {marker} {self.null_test}:"):
            code.line(f"{target} = None")
        with code.block("else:"):
            self.struct.emit_decode(code, target)

    def emit_encode(self, code: FlatCode, source: str) -> None:
        value = code.local("struct")
        code.line(f"{value} = {source}")
        with code.block(f"if {value} is None:"):
            code.line(f"{code.out} += {self.null!r}")
        with code.block("else:"):
            code.line(f"{code.out} += {self.present!r}")
            self.struct.emit_encode(code, value)


class TaggedNullableStruct(NullableStruct):
    """Wire type of a tagged field whose value is a struct or None. The encoding begins with an unsigned varint, which is 0 for None."""

    null, present, null_test = b"\x00", b"\x01", "== 0"

    def _is_null(self, marker: int) -> bool:
        return marker == 0


def parts(wire_type: WireType) -> Iterator[WireType]:
    """Yield a wire type and all wire types that it contains, recursively."""
    yield wire_type
    inner: tuple[WireType, ...] = ()
    match wire_type:
        case ArrayType():
            inner = (wire_type.item,)
        case NullableStruct():
            inner = (wire_type.struct,)
        case StructType():
            tagged_fields = wire_type.tags.fields if wire_type.tags else ()
            inner = (*(kind for _, kind in wire_type.fields), *(field.type for field in tagged_fields))
    for part in inner:
        yield from parts(part)


def _root(cls: type, path: str) -> str:
    """Return the path of a struct as error texts show it: `path`, or the name of the class if the struct is a whole message.

    path: the path that the library construct has passed to ``_parse`` or ``_build``: "(parsing)" or "(building)" for a whole message.
    """
    return cls.__name__ if path in ("(parsing)", "(building)") else path
