"""Cut, damaged and oversized bodies of requests, for the tests of APIs that change state of several clients (W-5, W-8)."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from kafkaproto.api import ApiKey, codec
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.client import key_of
from kafkaproto.testing import AsyncTestCluster
from tests.support.memory import memory_within
from tests.support.raw import client_of, frame, framed

MIB = 1 << 20
LENGTHS = {
    "int16": b"\x7f\xff",
    "int32": b"\x7f\xff\xff\xff",
    "varint": b"\xff\xff\xff\xff\x07",
    "endless varint": b"\xff" * 6,
    "negative": b"\xff\xff\xff\xfe",
}
"""Bytes that announce as many items or characters as the type allows, or an invalid number."""
RANGES = {release: VirtualCluster(release_name=release).state.apis for release in ("3.9", "4.2")}


class Case(NamedTuple):
    """A valid request of one version. payload: its frame without the length; body: where the body begins in it."""

    request: Any
    version: int
    payload: bytes
    body: int

    @property
    def name(self) -> str:
        return f"{type(self.request).__name__.removesuffix('Request')} {self.version}"

    @property
    def release(self) -> str:
        """Return a release whose brokers offer this version."""
        offered = RANGES["4.2"][ApiKey(key_of(self.request))]
        return "4.2" if offered.min_version <= self.version <= offered.max_version else "3.9"


def cases_of(requests: Iterable[tuple[Any, range]]) -> dict[str, Case]:
    """Return a case for each version of each request, by name."""
    return {case.name: case for case in _cases(requests)}


def _cases(requests: Iterable[tuple[Any, range]]) -> Iterator[Case]:
    for request, versions in requests:
        for version in versions:
            payload = frame(request, version)[4:]
            api = codec(key_of(request), version)
            header = 8 + 2 + len("raw") + (api.request_header_version == 2)
            yield Case(request, version, payload, header)


def missing_versions(cases: Iterable[Case]) -> set[tuple[ApiKey, int]]:
    """Return the offered versions of the APIs of these cases for which there is no case."""
    covered = {(ApiKey(key_of(case.request)), case.version) for case in cases}
    keys = {key for key, _ in covered}
    offered = {
        (ApiKey(key), version)
        for apis in RANGES.values()
        for key, versions in apis.items()
        if key in keys
        for version in range(versions.min_version, versions.max_version + 1)
    }
    return offered - covered


async def rest_of(cluster: AsyncTestCluster, payload: bytes) -> bytes:
    """Send one frame and the end of the stream, and return all bytes that the broker sends until it closes the connection."""
    async with client_of(cluster) as client:
        await client.send_bytes(framed(payload))
        client.finish()
        return await client.rest()


async def check_cuts(cluster: AsyncTestCluster, case: Case) -> None:
    """Check that a request that is cut at any byte gets no response and is not handled."""
    before = len(cluster.journal.requests())
    for cut in range(len(case.payload)):
        assert await rest_of(cluster, case.payload[:cut]) == b"", cut
    assert len(cluster.journal.requests()) == before


async def check_lengths(cluster: AsyncTestCluster, case: Case) -> None:
    """Replace the bytes at every place of the body that may be a length: the client gets a response or is disconnected."""
    with memory_within(4 * MIB):
        for at in range(case.body, len(case.payload)):
            for length in LENGTHS.values():
                damaged = case.payload[:at] + length + case.payload[at + len(length) :]
                sent = await rest_of(cluster, damaged)
                assert len(sent) < 1000, (at, length)


async def send_noise(cluster: AsyncTestCluster, case: Case, rng: random.Random, count: int) -> None:
    """Send requests with random bodies."""
    for _ in range(count):
        noise = rng.choice([rng.randbytes(rng.randrange(300)), bytes(rng.randrange(300))])
        await rest_of(cluster, case.payload[: case.body] + noise)
