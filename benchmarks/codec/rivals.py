"""The same message read and written by the other codecs. Each is asked first whether it gives the same bytes.

A rival that lacks a version is left out of its row. aiokafka's messages are Python with and without its extension.
"""

from __future__ import annotations

import importlib
import io
import pkgutil
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from benchmarks.codec.cases import AS_BUFFERS, MessageCase
from benchmarks.codec.stock import stock
from kafkaproto.frame import spliced_parts
from kafkaproto.primitives import Splices

Work = Callable[[], object]


@dataclass(frozen=True)
class Directions:
    """What is timed."""

    decode: Work
    encode: Work


def ours(case: MessageCase, data: bytes) -> Directions:
    layout = case.layout
    message = layout.decode(data)
    check(layout.encode(message), data)
    encode = layout.encode_flat

    def to_buffer() -> bytearray:
        out = bytearray()
        encode(message, out, None)
        return out

    return Directions(lambda: layout.decode(data), to_buffer)


class Elsewhere:
    """Records that stay where they are: a range of memory, as a range of a file would be."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data)


def our_buffers(case: MessageCase, data: bytes) -> Work:
    """The message as a list of buffers, for a socket that takes such; records are among them and not copied."""
    layout = case.layout
    message = layout.decode(data)
    for topic in message.responses:
        for partition in topic.partitions:
            partition.records = Elsewhere(bytes(partition.records))
    encode = layout.encode_flat

    def to_buffers() -> list[Any]:
        out = bytearray()
        splices: Splices = []
        encode(message, out, splices)
        return list(spliced_parts(out, splices))

    check(b"".join(part.data if isinstance(part, Elsewhere) else part for part in to_buffers()), data)
    return to_buffers


def kafka_python(case: MessageCase, data: bytes) -> Directions | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it uses a part of importlib that is going away
        import kafka.protocol
    made = find_class(kafka.protocol, class_name(case))
    if made is None or not made.min_version <= case.version <= made.max_version:
        return None
    version = case.version
    message = made.decode(data, version=version)
    message._header = None  # its decoder forgets the slot that its encoder asks for
    check(message.encode(version=version), data)
    return Directions(lambda: made.decode(data, version=version), lambda: message.encode(version=version))


def aiokafka(case: MessageCase, data: bytes) -> Directions | None:
    import aiokafka.protocol

    name = class_name(case).replace("ApiVersions", "ApiVersion")
    made = find_class(aiokafka.protocol, f"{name}_v{case.version}")
    if made is None:
        return None
    message = made.decode(data)
    check(message.encode(), data)
    return Directions(lambda: made.decode(data), message.encode)


def kio(case: MessageCase, data: bytes) -> Directions | None:
    from kio.serial import entity_reader, entity_writer

    kind = "request" if case.is_request else "response"
    try:
        module = importlib.import_module(f"kio.schema.{case.module}.v{case.version}.{kind}")
    except ModuleNotFoundError:
        return None
    entity = getattr(module, class_name(case))
    read, write = entity_reader(entity), entity_writer(entity)
    message, size = read(data, 0)
    check(size, len(data))

    def encode() -> bytes:
        out = io.BytesIO()
        write(out, message)
        return out.getvalue()

    check(encode(), data)
    return Directions(lambda: read(data, 0), encode)


def construct_plain(case: MessageCase, data: bytes) -> Directions:
    return by_construct(stock(case.layout), data)


def construct_compiled(case: MessageCase, data: bytes) -> Directions:
    return by_construct(stock(case.layout).compile(), data)


def by_construct(made: Any, data: bytes) -> Directions:
    message = made.parse(data)
    check(made.build(message), data)
    return Directions(lambda: made.parse(data), lambda: made.build(message))


MESSAGE_RIVALS: dict[str, Callable[[MessageCase, bytes], Directions | None]] = {
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
    "construct": construct_plain,
    "construct, compiled": construct_compiled,
    "kio (Rust)": kio,
}


def message_works(case: MessageCase) -> dict[str, dict[str, Work]]:
    """Direction, then codec, to what is timed. Raises ValueError if a rival's bytes are not ours."""
    data = case.layout.encode(case.make())
    found = {"ours": ours(case, data)}
    for name, make in MESSAGE_RIVALS.items():
        directions = make(case, data)
        if directions is not None:
            found[name] = directions
    works = {
        "decode": {name: directions.decode for name, directions in found.items()},
        "encode": {name: directions.encode for name, directions in found.items()},
    }
    if case.as_buffers:
        works[AS_BUFFERS] = {**works["encode"], "ours": our_buffers(case, data)}
    return works


def class_name(case: MessageCase) -> str:
    return case.layout.cls.__name__


def find_class(package: ModuleType, name: str) -> Any:
    """The class of this name in a package's modules, or None."""
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if ".old" in found.name or "generate" in found.name:
            continue
        made = getattr(importlib.import_module(found.name), name, None)
        if made is not None:
            return made
    return None


def check(found: object, expected: object) -> None:
    if found != expected:
        raise ValueError("the codecs do not agree")
