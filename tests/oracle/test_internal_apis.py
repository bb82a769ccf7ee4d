"""The constant requests of `kafkaproto.conformance.internal_apis`, decoded by the classes of Kafka 3.9.1 and 4.2.0."""

from __future__ import annotations

import pytest

from kafkaproto.conformance.internal_apis import INTERNAL_APIS, InternalApi
from tests.support.oracle.oracle import Decoded, Oracle, Refused, Releases

pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]


def decoded(kafka: Oracle, name: str, version: int, data: bytes) -> Decoded | None:
    """Decode a message with Kafka's classes. Returns None if this release of Kafka has no such message or version."""
    try:
        return kafka.decode(name, version, data)
    except Refused:
        return None


@pytest.mark.parametrize("api", INTERNAL_APIS, ids=lambda api: api.name)
def test_kafka_decodes_requests_that_the_conformance_suite_stores_as_hex_digits(
    releases: Releases, api: InternalApi
) -> None:
    for version, (_, body) in enumerate(api.requests):
        data = bytes.fromhex(body)
        results = [decoded(kafka, f"{api.name}Request", version, data) for kafka, _ in releases.all]
        assert {result[:2] for result in results if result is not None} == {(len(data), data)}, version
