"""What holds for every API: each answer of each version parses to its last byte and carries its correlation id."""

from __future__ import annotations

from random import Random

import pytest

from kafkaproto.api import APIS, codec
from kafkaproto.conformance.bare import bare
from kafkaproto.conformance.offered import OFFERED_BY_3_9
from kafkaproto.conformance.subject import Subject
from kafkaproto.messages.offset_fetch import OffsetFetchRequestGroup

PRODUCE, OFFSET_FETCH = 0, 9


@pytest.mark.rule("X-1", "X-5")
def test_every_version_of_every_api_is_answered_whole(subject: Subject) -> None:
    """Requests without content, several on one connection: nothing is between the answers."""
    for key, (low, high) in OFFERED_BY_3_9.items():
        connection = subject.connect()
        for version in range(low, high + 1):
            request = bare(codec(key, version).request, Random(f"{APIS[key].name} {version}"))
            if key == PRODUCE:
                request.acks = 1
            if key == OFFSET_FETCH and version >= 8:
                request.groups = [OffsetFetchRequestGroup("g")]  # a real broker has no answer to no group
            sent = subject.send(connection, request, version)
            assert subject.answer(connection).correlation_id == sent, (APIS[key].name, version)
