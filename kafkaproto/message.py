"""Messages: a dataclass and the fields that one wire layout has of it.

A `Message` is the declaration that a reader sees and the source of everything else: its ``_parse`` and ``_build`` walk
the fields one by one and name path and offset of what is wrong; `decode_flat` and `encode_flat` are straight-line
functions made from the same fields on first use. This module must never know an API.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cached_property
from typing import Any, BinaryIO, Generic, TypeVar

from construct import Construct

from kafkaproto import flat
from kafkaproto.errors import DecodeError, EncodeError
from kafkaproto.flat import FlatCode
from kafkaproto.primitives import (
    ArrayType,
    RecordsType,
    Splices,
    WireType,
    parse_uvarint,
    read,
    remaining,
)

T = TypeVar("T")
UNKNOWN_TAGS = "unknown_tagged_fields"

EXPLAINED_BYTES = 64 * 1024
"""Up to so many bytes a message that cannot be read is read once more, field by field. Who sends damaged frames of
100 MB must not get minutes of our time for each."""


class Struct:
    """Base of the generated dataclasses: equality by value, and a text that leaves defaults out."""

    __slots__: tuple[str, ...] = ()
    __hash__ = None  # type: ignore[assignment]  # structs are mutable

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __repr__(self) -> str:
        default = type(self)()
        values = [(name, getattr(self, name)) for name in self.__slots__]
        shown = [f"{name}={value!r}" for name, value in values if value != getattr(default, name)]
        return f"{type(self).__name__}({', '.join(shown)})"


class Tagged(WireType):
    """``Tagged(0, "rack" / CompactString)``: a field that is only sent when it differs from its default (KIP-482)."""

    def __init__(self, tag: int, field: Construct) -> None:
        super().__init__()
        self.tag = tag
        self.name = field.name
        self.type: WireType = field.subcon


class Tags(WireType):
    """The tag section that ends every struct of a flexible version.

    Unknown tags are kept as ``(tag, bytes)`` and written back between the known ones. ``reserved`` are tags that
    belong to other versions: Kafka refuses them here, so that a misplaced field is not taken for an unknown one.
    """

    def __init__(self, *fields: Tagged, reserved: tuple[int, ...] = ()) -> None:
        super().__init__()
        self.fields = fields
        self.reserved = reserved


class Message(WireType, Generic[T]):
    """One wire layout of the dataclass ``cls``: its fields in wire order, last the tag section if it has one.

    ``absent`` names the fields that this layout lacks and that may not be lost: encoding raises EncodeError if one of
    them differs from its default (Kafka's ``ignorable: false``). ``versions`` is for error texts. ``leading`` is for
    headers: a whole message follows in the same buffer, so nothing of it is copied first.
    """

    def __init__(
        self,
        cls: type[T],
        *fields: Construct,
        versions: str,
        absent: tuple[str, ...] = (),
        leading: bool = False,
    ) -> None:
        super().__init__()
        self.cls = cls
        self.versions = versions
        self.absent = absent
        self.leading = leading
        self.tags: Tags | None = fields[-1] if fields and isinstance(fields[-1], Tags) else None
        named = fields[:-1] if self.tags else fields
        self.fields: tuple[tuple[str, WireType], ...] = tuple((field.name, field.subcon) for field in named)

    def decode(self, buffer: bytes | bytearray | memoryview) -> T:
        """The object that the buffer starts with; bytes behind it are ignored, as in Kafka. Raises DecodeError."""
        view = memoryview(buffer)
        obj: T = self.decode_flat(view, 0, len(view))[0]
        return obj

    def encode(self, obj: T) -> bytes:
        """The bytes of an object. Raises EncodeError."""
        out = bytearray()
        self.encode_flat(obj, out, None)
        return bytes(out)

    @cached_property
    def decode_flat(self) -> Callable[[memoryview, int, int], tuple[T, int]]:
        """``(view, pos, end) -> (object, position behind it)``; nothing at or behind ``end`` is read."""
        text, code = self.decoder_text()
        code.names.update(failures=flat.DECODE_FAILURES, explain=self.explain_decode_failure)
        return code.compile(text, "decode")

    @cached_property
    def encode_flat(self) -> Callable[[T, bytearray, Splices | None], None]:
        """``(object, out, splices) -> None``; appends, and leaves ``out`` and ``splices`` as they were if it raises."""
        text, code = self.encoder_text()
        code.names.update(failures=flat.ENCODE_FAILURES, explain=self.explain_encode_failure)
        return code.compile(text, "encode")

    def decoder_text(self) -> tuple[str, FlatCode]:
        """The flat decoder's text, and the page with its constants."""
        code = FlatCode(decoding=True, copied=not (self.leading or self.has_records))
        self.emit_decode(code, "message")
        if code.copied:
            # bytes are faster to index and to slice than a memoryview is
            prologue, position = ["    b = bytes(view[pos:end])", "    p = 0", "    n = len(b)"], "pos + p"
        else:
            prologue, position = ["    b = view[:end]", "    p = pos", "    n = len(b)"], "p"
        code.line(f"return message, {position}")
        epilogue = ["    except failures:", f"        raise explain(view, pos, end, {position}) from None"]
        return code.text("def decode(view, pos, end):", prologue, epilogue), code

    def encoder_text(self) -> tuple[str, FlatCode]:
        """The flat encoder's text, and the page with its constants."""
        code = FlatCode(decoding=False)
        self.emit_encode(code, "o")
        prologue = ["    start = len(out)", "    spliced = len(splices) if splices is not None else 0"]
        epilogue = [
            "    except failures as error:",
            "        del out[start:]",
            "        if splices is not None: del splices[spliced:]",
            "        raise explain(o, splices is not None, error) from None",
        ]
        return code.text("def encode(o, out, splices):", prologue, epilogue), code

    def explain_decode_failure(self, view: memoryview, pos: int, end: int, stopped: int) -> DecodeError:
        """Read again with the readable form, to say where and why; it is slow, so large messages keep their secret."""
        if end - pos > EXPLAINED_BYTES:
            return DecodeError(self.cls.__name__, stopped, "cannot be read from about here on")
        try:
            self.parse(view[pos:end])
        except DecodeError as found:
            return DecodeError(found.path, pos + found.offset, found.reason)
        return DecodeError(self.cls.__name__, stopped, "cannot be read")

    def explain_encode_failure(self, obj: T, can_splice: bool, error: Exception) -> EncodeError:
        """Build again with the readable form, to say where and why."""
        try:
            self.build(obj, splices=[] if can_splice else None)
        except EncodeError as found:
            return found
        return EncodeError(self.cls.__name__, f"cannot be written: {error!r}")

    @cached_property
    def has_records(self) -> bool:
        """Whether a field somewhere below holds record batches, which are sliced and spliced, not copied."""
        return any(_holds_records(wire_type) for _, wire_type in self.fields)

    @cached_property
    def defaults(self) -> dict[str, Callable[[], Any]]:
        """Field name to what makes its default, for all fields of the dataclass in their order."""
        return {field.name: _default_factory(field) for field in dataclasses.fields(self.cls)}  # type: ignore[arg-type]

    # The readable form

    def _parse(self, stream: BinaryIO, context: Any, path: str) -> T:
        path = _root(self.cls, path)
        values = {name: wire_type._parse(stream, context, f"{path}.{name}") for name, wire_type in self.fields}
        if self.tags:
            values.update(self._parse_tags(self.tags, stream, context, path))
        return self.cls(**values)

    def _parse_tags(self, tags: Tags, stream: BinaryIO, context: Any, path: str) -> dict[str, Any]:
        known = {field.tag: field for field in tags.fields}
        values: dict[str, Any] = {}
        unknown: flat.RawTags = []
        offset = stream.tell()
        count = parse_uvarint(stream, f"{path}.(tags)")
        if count > remaining(stream):
            raise DecodeError(f"{path}.(tags)", offset, f"{count} tags, but {remaining(stream)} bytes are left")
        for _ in range(count):
            offset = stream.tell()
            tag = parse_uvarint(stream, f"{path}.(tags)")
            size = parse_uvarint(stream, f"{path}.(tag {tag})")
            if size > remaining(stream):
                raise DecodeError(f"{path}.(tag {tag})", offset, f"{size} bytes, but {remaining(stream)} are left")
            if tag in tags.reserved:
                raise DecodeError(f"{path}.(tag {tag})", offset, f"is not a field of versions {self.versions}")
            if tag not in known:
                unknown.append((tag, read(stream, size, path)))
                continue
            field, end = known[tag], stream.tell() + size
            values[field.name] = field.type._parse(stream, context, f"{path}.{field.name}")
            if stream.tell() != end:
                raise DecodeError(f"{path}.{field.name}", offset, f"does not fill the {size} bytes of its tag")
        if unknown:
            values[UNKNOWN_TAGS] = unknown
        return values

    def _build(self, obj: Any, stream: BinaryIO, context: Any, path: str) -> Any:
        path = _root(self.cls, path)
        if not isinstance(obj, self.cls):
            raise EncodeError(path, f"{obj!r} is no {self.cls.__name__}")
        for name in self.absent:
            value = getattr(obj, name)
            if _differs(value, self.defaults[name]()):
                raise EncodeError(f"{path}.{name}", f"is not in versions {self.versions} and would be lost: {value!r}")
        for name, wire_type in self.fields:
            wire_type._build(getattr(obj, name), stream, context, f"{path}.{name}")
        if self.tags:
            self._build_tags(self.tags, obj, stream, path)
        return obj

    def _build_tags(self, tags: Tags, obj: Any, stream: BinaryIO, path: str) -> None:
        known = []
        for field in tags.fields:
            value = getattr(obj, field.name)
            if _differs(value, self.defaults[field.name]()):
                known.append((field.tag, _build_alone(field.type, value, f"{path}.{field.name}")))
        out = bytearray()
        try:
            flat.write_tags(out, known, getattr(obj, UNKNOWN_TAGS))
        except (ValueError, TypeError, AttributeError) as error:
            raise EncodeError(f"{path}.{UNKNOWN_TAGS}", str(error)) from None
        stream.write(out)

    # The flat form

    def emit_decode(self, code: FlatCode, target: str) -> None:
        locals_ = {name: code.local(name) for name, _ in self.fields}
        for name, wire_type in self.fields:
            wire_type.emit_decode(code, locals_[name])
        if self.tags:
            self._emit_tags_decode(self.tags, code, locals_)
        arguments = [locals_.get(name) or _emit_default(code, make) for name, make in self.defaults.items()]
        while arguments and list(self.defaults)[len(arguments) - 1] not in locals_:
            arguments.pop()
        cls = code.constant(self.cls.__name__, self.cls)
        code.line(f"{target} = {cls}({', '.join(arguments)})")

    def _emit_tags_decode(self, tags: Tags, code: FlatCode, locals_: dict[str, str]) -> None:
        count = code.local("tags")
        code.fixed("B", count)
        unknown = locals_[UNKNOWN_TAGS] = code.local("unknown")
        for field in tags.fields:
            locals_[field.name] = code.local(field.name)
            code.line(f"{locals_[field.name]} = {_emit_default(code, self.defaults[field.name])}")
        code.line(f"{unknown} = None")
        if not tags.fields and not tags.reserved:
            code.constant("read_raw_tags", flat.read_raw_tags)
            code.line(f"if {count}: {unknown}, p = read_raw_tags(b, p, n, {count})")
            return
        with code.block(f"if {count}:"):
            self._emit_tag_loop(tags, code, locals_, count)

    def _emit_tag_loop(self, tags: Tags, code: FlatCode, locals_: dict[str, str], count: str) -> None:
        tag, size, end, unknown = code.local("tag"), code.local("size"), code.local("q"), locals_[UNKNOWN_TAGS]
        code.constant("read_uvarint", flat.read_uvarint)
        code.constant("read_uvarint_tail", flat.read_uvarint_tail)
        code.constant("Malformed", flat.Malformed)
        code.line(f"if {count} > 127: {count}, p = read_uvarint_tail(b, p, {count})")
        code.line(f"if {count} > n - p: raise Malformed")
        with code.block(f"for _ in range({count}):"):
            code.line(f"{tag}, p = read_uvarint(b, p)", f"{size}, p = read_uvarint(b, p)")
            code.line(f"{end} = p + {size}", f"if {end} > n: raise Malformed")
            keyword = "if"
            for field in tags.fields:
                with code.block(f"{keyword} {tag} == {field.tag}:"):
                    field.type.emit_decode(code, locals_[field.name])
                    code.line(f"if p != {end}: raise Malformed")
                keyword = "elif"
            if tags.reserved:
                code.line(f"{keyword} {tag} in {tags.reserved!r}: raise Malformed")
            with code.block("else:"):
                code.line(f"if {unknown} is None: {unknown} = []")
                code.line(f"{unknown}.append(({tag}, bytes(b[p:{end}])))", f"p = {end}")

    def emit_encode(self, code: FlatCode, source: str) -> None:
        for name in self.absent:
            differs = _emit_differs(code, f"{source}.{name}", self.defaults[name]())
            code.before(f"if {differs}: raise ValueError('{name} would be lost')")
        for name, wire_type in self.fields:
            wire_type.emit_encode(code, f"{source}.{name}")
        if not self.tags:
            if not self.fields:  # nothing else would notice that it is something else
                code.line(f"if not isinstance({source}, {code.constant(self.cls.__name__, self.cls)}): raise TypeError")
            return
        code.constant("write_tags", flat.write_tags)
        if not self.tags.fields:
            code.line(f"if {source}.{UNKNOWN_TAGS}: write_tags({code.out}, [], {source}.{UNKNOWN_TAGS})")
            code.line(f"else: {code.out}.append(0)")
            return
        known = code.local("known")
        code.line(f"{known} = []")
        for field in self.tags.fields:
            self._emit_tagged_encode(code, field, source, known)
        code.line(f"if {known} or {source}.{UNKNOWN_TAGS}:")
        code.line(f"    write_tags({code.out}, {known}, {source}.{UNKNOWN_TAGS})")
        code.line(f"else: {code.out}.append(0)")

    def _emit_tagged_encode(self, code: FlatCode, field: Tagged, source: str, known: str) -> None:
        value = f"{source}.{field.name}"
        with code.block(f"if {_emit_differs(code, value, self.defaults[field.name]())}:"):
            payload = code.local("payload")
            code.line(f"{payload} = bytearray()")
            with code.output(payload):
                field.type.emit_encode(code, value)
            code.line(f"{known}.append(({field.tag}, {payload}))")


class NullableStruct(WireType):
    """A struct that may be None: one signed byte in front, below zero for None."""

    null, present, null_test = b"\xff", b"\x01", "> 127"

    def __init__(self, struct: Message[Any]) -> None:
        super().__init__()
        self.struct = struct

    def _parse(self, stream: BinaryIO, context: Any, path: str) -> Any:
        marker = read(stream, 1, path)[0]
        return None if self._is_null(marker) else self.struct._parse(stream, context, path)

    def _build(self, obj: Any, stream: BinaryIO, context: Any, path: str) -> Any:
        stream.write(self.null if obj is None else self.present)
        if obj is not None:
            self.struct._build(obj, stream, context, path)
        return obj

    def _is_null(self, marker: int) -> bool:
        return marker > 0x7F

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
    """The same inside a tagged field, where the marker is an unsigned varint, 0 for None."""

    null, present, null_test = b"\x00", b"\x01", "== 0"

    def _is_null(self, marker: int) -> bool:
        return marker == 0


def _holds_records(wire_type: WireType) -> bool:
    match wire_type:
        case RecordsType():
            return True
        case ArrayType():
            return _holds_records(wire_type.item)
        case NullableStruct():
            return wire_type.struct.has_records
        case Message():
            return wire_type.has_records
    return False


def _root(cls: type, path: str) -> str:
    """construct starts its paths with a word of its own; ours start with the message."""
    return cls.__name__ if path in ("(parsing)", "(building)") else path


def _default_factory(field: dataclasses.Field[Any]) -> Callable[[], Any]:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory
    return lambda: field.default


def _build_alone(wire_type: WireType, value: Any, path: str) -> bytes:
    from io import BytesIO

    stream = BytesIO()
    wire_type._build(value, stream, None, path)
    return stream.getvalue()


def _differs(value: Any, default: Any) -> bool:
    """Whether a value must be sent: kept unknown tags that are None or empty are the same."""
    if dataclasses.is_dataclass(default) and type(value) is type(default):
        return any(
            bool(getattr(value, f.name))
            if f.name == UNKNOWN_TAGS
            else _differs(getattr(value, f.name), getattr(default, f.name))
            for f in dataclasses.fields(default)
        )
    if isinstance(default, list):
        return value is None or len(value) > 0
    return bool(value != default)


def _emit_default(code: FlatCode, make: Callable[[], Any]) -> str:
    """The expression that makes a field's default."""
    default = make()
    if dataclasses.is_dataclass(default):
        return code.constant(type(default).__name__, type(default)) + "()"
    return repr(default)


def _emit_differs(code: FlatCode, source: str, default: Any) -> str:
    """The expression that is true if the value must be sent. Structs are compared field by field, in place."""
    if dataclasses.is_dataclass(default):
        return " or ".join(
            f"{source}.{f.name}"
            if f.name == UNKNOWN_TAGS
            else _emit_differs(code, f"{source}.{f.name}", getattr(default, f.name))
            for f in dataclasses.fields(default)
        )
    if isinstance(default, list):
        return f"({source} is None or len({source}) > 0)"
    return f"{source} is not None" if default is None else f"{source} != {default!r}"
