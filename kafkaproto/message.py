"""Message layouts: the fields of a dataclass in wire order, with their wire types, and functions to decode and encode its objects.

A `Message` declares the fields of one version, and everything else derives from it: the slow decoder and encoder go through the fields one by one
(`kafkaproto.struct_types`); `decode_flat` and `encode_flat` are straight-line functions compiled from the same fields on first use. This module does
not depend on any API.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from io import BytesIO
from math import inf
from typing import Any, BinaryIO, TypeVar

from construct import Construct

from kafkaproto import flat, memory
from kafkaproto.contexts import Reading, Writing
from kafkaproto.errors import DecodeError, EncodeError
from kafkaproto.explain import explain_decode_failure
from kafkaproto.flat import FlatCode
from kafkaproto.primitives import Splices
from kafkaproto.struct_types import NullableStruct, StructType, TaggedNullableStruct, parts
from kafkaproto.wire_type import remaining

__all__ = ["Message", "NullableStruct", "TaggedNullableStruct", "parts"]

T = TypeVar("T")

FIRST_READ_BYTES = 4 << 10
"""The size in bytes of the first read from a file, if code compiled by the construct library decodes a message from the file."""
READ_GROWTH = 4
"""The factor by which each further read from a file is larger than the one before, as long as the message is incomplete."""


class _NotWhole(Exception):
    """Raised if the bytes do not begin with a complete message. stopped: the position at which the decoder failed."""

    def __init__(self, stopped: int) -> None:
        super().__init__(stopped)
        self.stopped = stopped


class Message(StructType[T]):
    """A wire layout of the dataclass ``cls``: its fields in wire order, with the tag section last if there is one.

    ``versions`` is a text for error messages: the versions with this layout. ``absent`` names fields that do not exist in these versions: encoding
    fails if one of them differs from its default. ``leading`` is True for headers: their decoder does not copy the buffer, because the copy would
    include the message after the header.
    """

    def __init__(
        self,
        cls: type[T],
        *fields: Construct,
        versions: str,
        absent: tuple[str, ...] = (),
        leading: bool = False,
    ) -> None:
        super().__init__(cls, *fields, absent=absent)
        self.versions = versions
        self.leading = leading

    def decode(self, buffer: bytes | bytearray | memoryview) -> T:
        """Return the message at the start of the buffer. Bytes after it are ignored. Raises DecodeError if it is damaged or incomplete."""
        return self.decode_first(buffer)[0]

    def decode_first(self, buffer: bytes | bytearray | memoryview) -> tuple[T, int]:
        """Return the message at the start of the buffer, and its size in bytes. Raises DecodeError if it is damaged or incomplete."""
        if type(buffer) is not bytes or not self.is_copied:
            buffer = memoryview(buffer)
        return self.decode_flat(buffer, 0, len(buffer))

    def encode(self, obj: T) -> bytes:
        """Return the bytes of a message, given as an object of its dataclass. Raises EncodeError for a value that cannot be encoded."""
        out = bytearray()
        self.encode_flat(obj, out, None)
        return bytes(out)

    @cached_property
    def decode_flat(self) -> Callable[[flat.Buffer, int, int], tuple[T, int]]:
        """Return the fast decoder: ``(view, pos, end) -> (object, index after it)``.

        The decoder decodes the message that begins at index ``pos`` of the buffer ``view``, and reads nothing at or after index ``end``.
        """
        return self._decoder(self.is_copied, partial(explain_decode_failure, self))

    @cached_property
    def encode_flat(self) -> Callable[[T, bytearray, Splices | None], None]:
        """Return the fast encoder ``(object, out, splices) -> None``.

        It appends the encoded object to ``out``. Records that are a `ByteRange` are not copied, but appended to ``splices`` as (position in ``out``,
        range). If the encoder raises an error, ``out`` and ``splices`` are unchanged.
        """
        text, code = self.encoder_text()
        code.names.update(failures=flat.ENCODE_FAILURES, explain=self._explain_encode_failure)
        return code.compile(text, "encode")

    def _decoder(
        self, copied: bool, explain: Callable[[flat.Buffer, int, int, int], Exception]
    ) -> Callable[[flat.Buffer, int, int], tuple[T, int]]:
        text, code = self.decoder_text(copied)
        code.names.update(failures=flat.DECODE_FAILURES, explain=explain)
        return code.compile(text, "decode")

    def decoder_text(self, copied: bool | None = None) -> tuple[str, FlatCode]:
        """Return the source text of the generated decoder, and the `FlatCode` that built it.

        `FlatCode.names` maps the names in the text to objects. The caller must add two entries: `failures`, the exceptions that the text catches, and
        `explain`, a function that returns the exception to raise instead. copied: whether the decoder copies the message first; None for the default,
        `is_copied`.
        """
        code = FlatCode(decoding=True, copied=self.is_copied if copied is None else copied, weighed=self.is_heavy)
        self.emit_decode(code, "message")
        code.constant("Malformed", flat.Malformed)
        code.line("if p > n: raise Malformed")
        if code.copied:
            prologue, position = ["    b = bytes(view[pos:end])", "    p = 0", "    n = len(b)"], "pos + p"
        else:
            prologue, position = ["    b = view[:end]", "    p = pos", "    n = len(b)"], "p"
        if code.weighed:
            prologue.append(f"    room = {memory.SLACK} + {memory.ROOM_PER_BYTE} * (n - p)")
        code.line(f"return message, {position}")
        # drop partial results first: decoding again for the error message would otherwise double peak memory
        drop = " = ".join(["b", *code.locals, "None"])
        epilogue = ["    except failures:", f"        {drop}", f"    raise explain(view, pos, end, {position})"]
        return code.text("def decode(view, pos, end):", prologue, epilogue), code

    def encoder_text(self) -> tuple[str, FlatCode]:
        """Return the source text of the generated encoder, and the `FlatCode` that built it.

        `FlatCode.names` maps the names in the text to objects. The caller must add two entries: `failures`, the exceptions that the text catches, and
        `explain`, a function that returns the exception to raise instead.
        """
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

    @cached_property
    def is_copied(self) -> bool:
        """Return whether the decoder first copies the message into `bytes`, which are faster to index and to slice than a memoryview.

        Even if this is true, a buffer that is already `bytes` and contains nothing but the message is not copied.
        """
        return not (self.leading or self.has_records)

    # The readable form

    def _parse(self, stream: BinaryIO, context: Any, path: str) -> T:
        if type(context) is not Reading:
            context = Reading(memory.room_for(remaining(stream)) if self.is_heavy else inf)
        return super()._parse(stream, context, path)

    def _build(self, obj: Any, stream: BinaryIO, context: Any, path: str) -> Any:
        return super()._build(obj, stream, context if type(context) is Writing else Writing(), path)

    def build(self, obj: T, **contextkw: Any) -> bytes:
        """Return the bytes of a message, encoded field by field, which is slower than `encode`.

        Raises EncodeError, naming the field, for a value that cannot be encoded. contextkw: construct's context, which is ignored.
        """
        return self.build_spliced(obj, None)

    def build_spliced(self, obj: T, splices: Splices | None) -> bytes:
        """Return the bytes of a message, encoded field by field, without the ranges of records that are appended to `splices`.

        Raises EncodeError, naming the field, for a value that cannot be encoded. splices: the list to which ranges of records are appended as
        (position in the result, range); None if records must be bytes.
        """
        stream = BytesIO()
        with self.naming_versions():
            self._build(obj, stream, Writing(splices), "(building)")
        return stream.getvalue()

    def _explain_encode_failure(self, obj: T, can_splice: bool, error: Exception) -> EncodeError:
        """Encode the object again field by field, and return the EncodeError that this raises. It names the field and the reason.

        can_splice: whether records may be ranges of files; otherwise they must be bytes. error: the exception of the fast encoder.
        """
        try:
            self.build_spliced(obj, [] if can_splice else None)
        except EncodeError as explained:
            return explained
        return self._unwritable(error)

    def _unwritable(self, error: Exception) -> EncodeError:
        """Return an EncodeError that describes an exception of another type, such as an AttributeError for a missing field."""
        return EncodeError(self.cls.__name__, f"cannot be written: {error!r}", self.versions)

    @contextmanager
    def naming_versions(self) -> Iterator[None]:
        """Return a context manager for code that encodes through the wire types: it adds the message's versions (`versions`) to each EncodeError.

        Wire types do not know the versions, so that their errors lack them. If an invalid value causes an exception of another type, it is replaced
        by an EncodeError with the versions.
        """
        try:
            yield
        except EncodeError as error:
            raise EncodeError(error.path, error.reason, self.versions) from None
        except flat.ENCODE_FAILURES as error:
            raise self._unwritable(error) from None

    # Use inside construct's own classes, compiled by `construct.Construct.compile`

    def _emitparse(self, code: Any) -> str:
        """Return Python source that calls this message's generated decoder. The method `compile` of the construct library inserts it.

        code: construct's object that collects what the compiled source needs; the decoder is added to this object.
        """
        code.linkedparsers[id(self)] = self._parse_flat
        return f"linkedparsers[{id(self)}](io)"

    def _emitbuild(self, code: Any) -> str:
        """Return Python source that calls this message's generated encoder. The method `compile` of the construct library inserts it.

        code: construct's object that collects what the compiled source needs; the encoder is added to this object.
        """
        code.linkedbuilders[id(self)] = self._build_flat
        return f"linkedbuilders[{id(self)}](obj, io)"

    @cached_property
    def _decode_in_place(self) -> Callable[[flat.Buffer, int, int], tuple[T, int]]:
        """Return a generated decoder for a message in a stream. It does not copy the buffer, and raises `_NotWhole` instead of DecodeError.

        In a stream with many messages, `decode_flat` would copy the whole rest of the stream for each message.
        """
        return self._decoder(False, lambda view, pos, end, stopped: _NotWhole(stopped))

    def _parse_flat(self, stream: BinaryIO) -> T:
        """Decode the message at the position of a seekable stream, and move the stream to the position after it.

        A file is read in growing pieces: reading the whole rest for each message would take quadratic time.
        """
        start = stream.tell()
        in_memory = type(stream) is BytesIO
        # `getvalue` returns the bytes that the stream was made of, not a copy
        data, at = (stream.getvalue(), start) if type(stream) is BytesIO else (stream.read(FIRST_READ_BYTES), 0)
        while True:
            buffer = memoryview(data) if self.has_records else data
            try:
                obj, end = self._decode_in_place(buffer, at, len(data))
            except _NotWhole as failure:
                stopped = failure.stopped
            else:
                stream.seek(start - at + end)
                return obj
            next_chunk = b"" if in_memory else stream.read(len(data) * (READ_GROWTH - 1))
            if not next_chunk:
                error = explain_decode_failure(self, buffer, at, len(data), stopped)
                raise DecodeError(error.path, error.offset + start - at, error.reason)
            data += next_chunk

    def _build_flat(self, obj: T, stream: BinaryIO) -> T:
        """Encode the message `obj` into a stream, and return `obj`, because code that the construct library compiles needs this result."""
        out = bytearray()
        self.encode_flat(obj, out, None)
        stream.write(out)
        return obj
