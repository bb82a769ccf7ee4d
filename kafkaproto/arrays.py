"""Wire type of arrays: a count, then values of one type.

A decoder rejects a count above the number of bytes left, so a false count allocates no memory. Arrays of numbers are encoded and decoded with one
`struct` call. This module does not depend on the type of the items.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, BinaryIO

from kafkaproto import flat, memory
from kafkaproto.contexts import reading
from kafkaproto.errors import EncodeError, safe_repr
from kafkaproto.flat import FlatCode
from kafkaproto.primitives import FixedWidth, Int8, LengthPrefixed, UuidType
from kafkaproto.wire_type import WireType


class ArrayType(LengthPrefixed):
    """Wire type of a list: a count, then values of one type. The decoder rejects a count above the number of bytes left in the message."""

    def __init__(self, item: WireType, *, compact: bool, nullable: bool) -> None:
        super().__init__(width="i", compact=compact, nullable=nullable)
        self.item = item

    def _parse(self, stream: BinaryIO, context: Any, path: str) -> list[Any] | None:
        offset = stream.tell()
        message = reading(context)
        count = self.parse_length(stream, path)
        message.passed(path, offset, stream, None if count is None else f"({count} items)")
        if count is None:
            return None
        memory.spend(context, count * self.item_weight, path, offset)
        first = message.skip(self, count, stream, message) if message.skip else 0
        return [self.item._parse(stream, context, f"{path}[{i}]") for i in range(first, count)]

    def _build(self, obj: Any, stream: BinaryIO, context: Any, path: str) -> Any:
        if obj is not None and type(obj) not in (list, tuple):
            raise EncodeError(path, f"expected a list (got {safe_repr(obj)})")
        self.build_length(None if obj is None else len(obj), stream, path)
        for i, item in enumerate(obj or ()):
            self.item._build(item, stream, context, f"{path}[{i}]")
        return obj

    def emit_decode(self, code: FlatCode, target: str) -> None:
        def emit_items(count: str) -> None:
            if self.is_numeric:
                code.spend(count, self.item_weight)
                self._emit_numbers_decode(code, target, count)
                return
            code.constant("Malformed", flat.Malformed)
            if self.compact:
                code.line(f"{count} -= 1")
            code.line(f"if {count} > n - p: raise Malformed")
            code.spend(count, self.item_weight)
            # use a separate variable: the target may belong to the loop around this one
            items = code.local("items")
            self.item.emit_items_decode(code, items, count)
            code.line(f"{target} = {items}")

        self.emit_value_decode(code, target, "[]", emit_items)

    @property
    def is_heavy(self) -> bool:
        """Return whether the decoder must limit the memory of an array's items, because an item can be much larger in memory than its encoding."""
        return self._weight_of_item(memory.HEAVY) > 0

    @cached_property
    def item_weight(self) -> int:
        """Return how many bytes of memory the decoder counts for each item against the memory limit of the message.

        The decoder counts them before it decodes the items. An item may take `memory.FREE` bytes of memory for each byte of its encoding without
        being counted. The result is the largest amount of memory that an item can take beyond that. If an item contains an array, the items of this
        inner array are counted when the decoder reaches the inner array.
        """
        return max(0, self._weight_of_item(memory.FREE))

    def _weight_of_item(self, per_byte: int) -> int:
        if self.item is Int8:
            return memory.ITEM - per_byte
        # numbers are decoded into a tuple, then into a list
        return memory.ITEM + self.item.weight(per_byte) + (memory.POINTER if self.is_numeric else 0)

    def weight(self, per_byte: int) -> int:
        return memory.LIST + memory.LIST_SPARE - per_byte * self.prefix_size

    @property
    def is_numeric(self) -> bool:
        """Return whether the items of the array are numbers, so that all of them are decoded together."""
        return isinstance(self.item, FixedWidth) and not isinstance(self.item, UuidType)

    def _emit_numbers_decode(self, code: FlatCode, target: str, count: str) -> None:
        number = f"{count} - 1" if self.compact else count
        if self.item is Int8:
            # Python caches few negative numbers; an object for each byte would take forty times its size
            code.constant("SIGNED_BYTES", flat.SIGNED_BYTES)
            code.line(f"{target} = [SIGNED_BYTES[byte] for byte in b[p : p + {number}]]", f"p += {number}")
            return
        fmt, size = self.item.fmt, self.item.size
        unpackers = code.constant(f"unpack_array_{flat.identifier(fmt)}", flat.array_unpackers(fmt))
        code.constant("read_long_array", flat.read_long_array)
        code.line(
            f"if {count} <= {flat.SHORT_ARRAY}:",
            f"    {target} = [*{unpackers}[{number}](b, p)]",
            f"    p += {count} * {size}" + (f" - {size}" if self.compact else ""),
            f"else: {target}, p = read_long_array(b, p, n, {number}, {fmt!r})",
        )

    def emit_encode(self, code: FlatCode, source: str) -> None:
        items, count = code.local("items"), code.local("count")
        is_no_list = f"type({items}) is not list and type({items}) is not tuple"
        code.before(f"{items} = {source}")
        if self.nullable:
            code.before(f"if {items} is None: {items}, {count} = (), {self.null_on_wire}")
            code.before(f"elif {is_no_list}: raise TypeError")
            code.before(f"else: {count} = {self.wire_length(f'len({items})')}")
        else:
            code.before(f"if {is_no_list}: raise TypeError", f"{count} = {self.wire_length(f'len({items})')}")
        self.emit_length_encode(code, count)
        if self.is_numeric:
            self._emit_numbers_encode(code, items)
            return
        item = code.local("item")
        with code.block(f"for {item} in {items}:"):
            self.item.emit_encode(code, item)

    def _emit_numbers_encode(self, code: FlatCode, items: str) -> None:
        fmt = self.item.fmt
        packers = code.constant(f"pack_array_{flat.identifier(fmt)}", flat.array_packers(fmt))
        code.constant("write_long_array", flat.write_long_array)
        code.line(
            f"if len({items}) <= {flat.SHORT_ARRAY}: {code.out} += {packers}[len({items})](*{items})",
            f"else: {code.out} += write_long_array({items}, {fmt!r})",
        )


def Array(item: WireType) -> ArrayType:  # capitalised, because layouts use it like a type
    """Return the wire type of a list that is encoded as an int32 count, then the items."""
    return ArrayType(item, compact=False, nullable=False)


def NullableArray(item: WireType) -> ArrayType:
    """Return the wire type of a list that may be None. It is encoded as an int32 count, which is -1 for None, then the items."""
    return ArrayType(item, compact=False, nullable=True)


def CompactArray(item: WireType) -> ArrayType:
    """Return the wire type of a list that is encoded as count + 1 (unsigned varint), then the items."""
    return ArrayType(item, compact=True, nullable=False)


def CompactNullableArray(item: WireType) -> ArrayType:
    """Return the wire type of a list that may be None. It is encoded as count + 1 (unsigned varint), which is 0 for None, then the items."""
    return ArrayType(item, compact=True, nullable=True)
