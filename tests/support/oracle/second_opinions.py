"""The message versions of kafka-python, aiokafka and kio, each as a function from bytes to bytes.

Each function decodes a message with the other library and encodes the result. The messages are found by inspecting the libraries. This
module contains no list of messages and no known differences.
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
    warnings.simplefilter("ignore")  # kafka-python uses a deprecated part of importlib
    import aiokafka.protocol
    import kafka.protocol
    from aiokafka.protocol.api import RequestStruct, Response
    from kafka.protocol.api_message import ApiMessage
    from kio.schema.index import schema_name_map
    from kio.serial import entity_reader, entity_writer

Rewrite = Callable[[bytes], bytes]
Opinions = dict[tuple[str, int], Rewrite]
"""Maps (message name, version) to the function."""


def import_all(package: ModuleType) -> None:
    for walk_package in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if ".old" not in walk_package.name and "generate" not in walk_package.name:
            importlib.import_module(walk_package.name)


def of_kafka_python() -> Opinions:
    import_all(kafka.protocol)

    def rewriter(cls: Any, version: int) -> Rewrite:
        def rewrite(data: bytes) -> bytes:
            stream = io.BytesIO(data)
            theirs = cls.decode(stream, version=version)
            theirs._header = None  # its decoder does not set the slot that its encoder reads
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
    """Yield name, version and ``module:class`` of each message in kio."""
    for versions in schema_name_map.values():
        for version, places in versions.items():
            yield from ((place.partition(":")[2], version, place) for place in places.values())


OPINIONS = {"kafka-python": of_kafka_python(), "aiokafka": of_aiokafka(), "kio": of_kio()}
