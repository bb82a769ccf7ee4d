"""The tag section of flexible versions (KIP-482): optional fields, each preceded by its tag and size.

This module does not depend on the message around the section.
"""

from __future__ import annotations

from io import BytesIO
from typing import Any, BinaryIO

from construct import Construct

from kafkaproto import flat, memory
from kafkaproto.contexts import reading
from kafkaproto.defaults import UNKNOWN_TAGS, Defaults, differs, emit_differs
from kafkaproto.errors import DecodeError, EncodeError
from kafkaproto.flat import FlatCode
from kafkaproto.wire_type import WireType, parse_uvarint, read, remaining


class Tagged(WireType):
    """A tagged field, for example ``Tagged(0, "rack" / CompactString)``. It is only sent if it differs from its default (KIP-482)."""

    def __init__(self, tag: int, field: Construct) -> None:
        super().__init__()
        self.tag = tag
        self.name = field.name
        self.type: WireType = field.subcon


class Tags(WireType):
    """The tag section at the end of every struct of a flexible version.

    Unknown tags are kept as ``(tag, bytes)``. Encoding writes known and unknown tags in ascending order. ``reserved`` are tags of fields that exist
    only in other versions: decoding rejects these tags, as Kafka does, instead of keeping them as unknown tags.
    """

    def __init__(self, *fields: Tagged, reserved: tuple[int, ...] = ()) -> None:
        super().__init__()
        self.fields = fields
        self.reserved = reserved

    def parse_values(self, stream: BinaryIO, context: Any, path: str) -> dict[str, Any]:
        """Decode a tag section. Returns a dict of field names to values, and the unknown tags under the key `UNKNOWN_TAGS`.

        context: the state (`Reading`) of the message. path: the path of the struct, for errors. stream: positioned at the start of the tag section.
        """
        fields_by_tag = {field.tag: field for field in self.fields}
        message = reading(context)
        values: dict[str, Any] = {}
        unknown: flat.RawTags = []
        for _ in range(self._parse_count(stream, context, f"{path}.(tags)")):
            offset = stream.tell()
            tag = parse_uvarint(stream, f"{path}.(tags)")
            tag_path = f"{path}.(tag {tag})"
            size = parse_uvarint(stream, tag_path)
            message.passed(tag_path, offset, stream, f"({size} bytes)")
            if size > remaining(stream):
                raise DecodeError(
                    tag_path, offset, f"the tagged field announces {size} bytes, but only {remaining(stream)} are left"
                )
            if tag in self.reserved:
                raise DecodeError(
                    tag_path, offset, "this version does not allow the tag, which belongs to a field of other versions"
                )
            if tag not in fields_by_tag:
                start, value = stream.tell(), read(stream, size, tag_path)
                if message.follow:
                    message.passed(tag_path, start, stream, value.hex())
                if not message.skip:  # a message that is only explained keeps no objects
                    unknown.append((tag, value))
                continue
            field, end = fields_by_tag[tag], stream.tell() + size
            values[field.name] = field.type._parse(stream, context, f"{path}.{field.name}")
            if stream.tell() != end:
                raise DecodeError(
                    f"{path}.{field.name}", offset, f"the value does not fill the {size} bytes that its tag announces"
                )
        if unknown:
            values[UNKNOWN_TAGS] = unknown
        return values

    def _parse_count(self, stream: BinaryIO, context: Any, path: str) -> int:
        offset = stream.tell()
        count = parse_uvarint(stream, path)
        if count > remaining(stream):
            raise DecodeError(
                path, offset, f"{count} tagged fields are announced, but only {remaining(stream)} bytes are left"
            )
        reading(context).passed(path, offset, stream, f"({count} tags)")
        memory.spend(context, count * memory.UNKNOWN_TAG, path, offset)
        return count

    def build_values(self, obj: Any, defaults: Defaults, stream: BinaryIO, path: str) -> None:
        """Write the tag section of a struct: the tagged fields that differ from their defaults, and the unknown tags kept in the struct.

        obj: the struct. defaults: maps field names to functions that create the defaults. path: the path of the struct, for errors.
        """
        known = []
        for field in self.fields:
            value = getattr(obj, field.name)
            if differs(value, defaults[field.name]()):
                payload = BytesIO()  # a separate buffer, because the size precedes the value
                field.type._build(value, payload, None, f"{path}.{field.name}")
                known.append((field.tag, payload.getvalue()))
        out = bytearray()
        try:
            flat.write_tags(out, known, getattr(obj, UNKNOWN_TAGS))
        except (ValueError, TypeError, AttributeError) as error:
            raise EncodeError(f"{path}.{UNKNOWN_TAGS}", str(error)) from None
        stream.write(out)

    def emit_values_decode(self, code: FlatCode, target: str) -> None:
        """Add code that decodes a tag section into the object ``target``, whose fields already have their defaults."""
        count = code.local("tags")
        code.fixed("B", count)
        with code.block(f"if {count}:"):
            code.constant("read_uvarint_tail", flat.read_uvarint_tail)
            code.line(f"if {count} > 127: {count}, p = read_uvarint_tail(b, p, {count})")
            if self.fields or self.reserved:
                self._emit_loop(code, target, count)
            else:
                code.spend(count, memory.UNKNOWN_TAG)
                code.constant("read_raw_tags", flat.read_raw_tags)
                code.line(f"{target}.{UNKNOWN_TAGS}, p = read_raw_tags(b, p, n, {count})")

    def values_weight(self, per_byte: int, defaults: Defaults) -> int:
        """Return the weight W: the known tagged fields take at most ``per_byte`` * (encoded size of the tag section) + W bytes of memory.

        W may be negative, because the section also has bytes that are not part of a value: the number of tags, and the tag and size of each field.
        The memory of unknown tags is not included. defaults: maps field names to functions that create the defaults.
        """
        absent = {field.name: memory.size_of_default(defaults[field.name]()) for field in self.fields}
        return sum(max(absent[f.name], f.type.weight(per_byte) - 2 * per_byte) for f in self.fields) - per_byte

    def _emit_loop(self, code: FlatCode, target: str, count: str) -> None:
        tag, size, end, unknown = code.local("tag"), code.local("size"), code.local("q"), f"{target}.{UNKNOWN_TAGS}"
        code.constant("read_uvarint", flat.read_uvarint)
        code.constant("Malformed", flat.Malformed)
        code.line(f"if {count} > n - p: raise Malformed")
        code.spend(count, memory.UNKNOWN_TAG)
        with code.block(f"for _ in range({count}):"):
            code.line(f"{tag}, p = read_uvarint(b, p)", f"{size}, p = read_uvarint(b, p)")
            code.line(f"{end} = p + {size}", f"if {end} > n: raise Malformed")
            keyword = "if"
            for field in self.fields:
                with code.block(f"{keyword} {tag} == {field.tag}:"):
                    field.type.emit_decode(code, f"{target}.{field.name}")
                    code.line(f"if p != {end}: raise Malformed")
                keyword = "elif"
            if self.reserved:
                code.line(f"{keyword} {tag} in {self.reserved!r}: raise Malformed")
            with code.block("else:"):
                code.line(f"if {unknown} is None: {unknown} = []")
                code.line(f"{unknown}.append(({tag}, bytes(b[p:{end}])))", f"p = {end}")

    def emit_values_encode(self, code: FlatCode, source: str, defaults: Defaults) -> None:
        """Add code that encodes the tag section of the struct ``source``.

        source: the name of the variable with the struct. defaults: maps field names to functions that create the defaults.
        """
        code.constant("write_tags", flat.write_tags)
        unknown = f"{source}.{UNKNOWN_TAGS}"
        if not self.fields:
            code.line(f"if {unknown}: write_tags({code.out}, [], {unknown})", f"else: {code.out}.append(0)")
            return
        known = code.local("known")
        code.line(f"{known} = []")
        for field in self.fields:
            value, payload = f"{source}.{field.name}", code.local("payload")
            with code.block(f"if {emit_differs(code, value, defaults[field.name]())}:"):
                code.line(f"{payload} = bytearray()")
                with code.output(payload):
                    field.type.emit_encode(code, value)
                code.line(f"{known}.append(({field.tag}, {payload}))")
        code.line(f"if {known} or {unknown}: write_tags({code.out}, {known}, {unknown})", f"else: {code.out}.append(0)")
