"""Functions of other codecs that decode and encode a message. Before timing, the results of all codecs are compared.

A codec that does not support a version of a message is left out of the results for this version. aiokafka has a C
extension, but only for records: it encodes and decodes messages in Python.
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
    """The two functions of one codec to time: one decodes a message, the other encodes it."""

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
    """A stand-in for records that are stored in a file: the encoder writes their length, and leaves a gap instead of copying the records."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data)


def our_buffers(case: MessageCase, data: bytes) -> Work:
    """Return a function that encodes a Fetch response as a list of buffers, without copying its records.

    case: the version of the message to measure. data: the encoded response.
    """
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
        warnings.simplefilter("ignore")  # kafka-python uses a deprecated part of importlib
        import kafka.protocol
    message_class = find_class(kafka.protocol, class_name(case))
    if message_class is None or not message_class.min_version <= case.version <= message_class.max_version:
        return None
    version = case.version
    message = message_class.decode(data, version=version)
    message._header = None  # its decoder does not set the slot that its encoder reads
    check(message.encode(version=version), data)
    return Directions(lambda: message_class.decode(data, version=version), lambda: message.encode(version=version))


def aiokafka(case: MessageCase, data: bytes) -> Directions | None:
    import aiokafka.protocol

    name = class_name(case).replace("ApiVersions", "ApiVersion")
    message_class = find_class(aiokafka.protocol, f"{name}_v{case.version}")
    if message_class is None:
        return None
    message = message_class.decode(data)
    check(message.encode(), data)
    return Directions(lambda: message_class.decode(data), message.encode)


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


def by_construct(layout: Any, data: bytes) -> Directions:
    message = layout.parse(data)
    check(layout.build(message), data)
    return Directions(lambda: layout.parse(data), lambda: layout.build(message))


MESSAGE_RIVALS: dict[str, Callable[[MessageCase, bytes], Directions | None]] = {
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
    "construct": construct_plain,
    "construct, compiled": construct_compiled,
    "kio (Rust)": kio,
}


def message_works(case: MessageCase) -> dict[str, dict[str, Work]]:
    """Return the functions to time, by direction (decode, encode) and then by codec. case: the message to measure, and its version.

    Raises ValueError if another codec encodes the message to other bytes.
    """
    data = case.layout.encode(case.make())
    by_codec = {"ours": ours(case, data)}
    for name, make in MESSAGE_RIVALS.items():
        directions = make(case, data)
        if directions is not None:
            by_codec[name] = directions
    works = {
        "decode": {name: directions.decode for name, directions in by_codec.items()},
        "encode": {name: directions.encode for name, directions in by_codec.items()},
    }
    if case.as_buffers:
        works[AS_BUFFERS] = {**works["encode"], "ours": our_buffers(case, data)}
    return works


def class_name(case: MessageCase) -> str:
    return case.layout.cls.__name__


def find_class(package: ModuleType, name: str) -> Any:
    """Return the class of this name in a package's modules, or None."""
    for module_info in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if ".old" in module_info.name or "generate" in module_info.name:
            continue
        message_class = getattr(importlib.import_module(module_info.name), name, None)
        if message_class is not None:
            return message_class
    return None


def check(actual: object, expected: object) -> None:
    if actual != expected:
        raise ValueError(
            "another codec decodes the same bytes differently from kafkaproto (the traceback names that codec): "
            f"got {str(actual)[:100]}, but the result of kafkaproto is {str(expected)[:100]}"
        )
