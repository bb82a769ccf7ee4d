"""What kafka-python, aiokafka and kio have of the messages: each version that they know, as a function from bytes to bytes.

The functions read a message with the other library and let it write what it read. Which messages there are is found by
looking at the libraries. This module must never know a message, nor where they disagree with us.
"""

from __future__ import annotations

import importlib
import io
import pkgutil
import warnings
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from kafkaproto.api import APIS

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # kafka-python uses a part of importlib that is going away
    import aiokafka.protocol
    import kafka.protocol
    from aiokafka.protocol.api import RequestStruct, Response
    from kafka.protocol.api_message import ApiMessage
    from kio.schema.index import schema_name_map
    from kio.serial import entity_reader, entity_writer

Rewrite = Callable[[bytes], bytes]
Opinions = dict[tuple[str, int], Rewrite]
"""By name and version of the message."""


def import_all(package: ModuleType) -> None:
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if ".old" not in found.name and "generate" not in found.name:
            importlib.import_module(found.name)


def of_kafka_python() -> Opinions:
    import_all(kafka.protocol)

    def rewriter(cls: Any, version: int) -> Rewrite:
        def rewrite(data: bytes) -> bytes:
            stream = io.BytesIO(data)
            theirs = cls.decode(stream, version=version)
            theirs._header = None  # its decoder forgets the slot that its encoder asks for
            assert not stream.read()
            return bytes(theirs.encode(version=version))

        return rewrite

    return {
        (cls.__name__, version): rewriter(cls, version)
        for cls in ApiMessage.__subclasses__()
        for version in range(cls.valid_versions[0], cls.valid_versions[1] + 1)
    }


def of_aiokafka() -> Opinions:
    import_all(aiokafka.protocol)

    def rewriter(cls: Any) -> Rewrite:
        def rewrite(data: bytes) -> bytes:
            stream = io.BytesIO(data)
            theirs = cls.decode(stream)
            assert not stream.read()
            return bytes(theirs.encode())

        return rewrite

    return {
        (f"{APIS[cls.API_KEY].name}{kind}", cls.API_VERSION): rewriter(cls)
        for kind, base in (("Request", RequestStruct), ("Response", Response))
        for cls in base.__subclasses__()
        if cls.API_KEY in APIS
    }


def of_kio() -> Opinions:
    def rewriter(place: str) -> Rewrite:
        def rewrite(data: bytes) -> bytes:
            module, _, name = place.partition(":")
            cls = getattr(importlib.import_module(module), name)
            theirs, size = entity_reader(cls)(data, 0)
            assert size == len(data)
            buffer = io.BytesIO()
            entity_writer(cls)(buffer, theirs)
            return buffer.getvalue()

        return rewrite

    return {(name, version): rewriter(place) for name, version, place in kio_places()}


def kio_places() -> Iterator[tuple[str, int, str]]:
    """Name, version and ``module:class`` of each message that kio has."""
    for versions in schema_name_map.values():
        for version, places in versions.items():
            yield from ((place.partition(":")[2], version, place) for place in places.values())


OPINIONS = {"kafka-python": of_kafka_python(), "aiokafka": of_aiokafka(), "kio": of_kio()}
