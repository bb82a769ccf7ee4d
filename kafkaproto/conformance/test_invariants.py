"""Tests for every API: each response in each version decodes to its last byte and carries the request's correlation id."""

from __future__ import annotations

from random import Random

import pytest

from kafkaproto.api import APIS, codec
from kafkaproto.conformance.bare import bare
from kafkaproto.conformance.needs import SESSION_SLOTS
from kafkaproto.conformance.offered import OFFERED_BY_3_9
from kafkaproto.conformance.subject import Subject
from kafkaproto.messages.add_partitions_to_txn import AddPartitionsToTxnTransaction
from kafkaproto.messages.offset_fetch import OffsetFetchRequestGroup

PRODUCE, OFFSET_FETCH, ADD_PARTITIONS_TO_TXN, DESCRIBE_ACLS, UNREGISTER_BROKER = 0, 9, 24, 29, 64


@pytest.mark.needs(at_least={"max.incremental.fetch.session.cache.slots": SESSION_SLOTS})
@pytest.mark.rule("X-1", "X-5")
def test_broker_sends_a_decodable_response_to_every_version_of_every_api(subject: Subject) -> None:
    """The test sends an almost empty request in each version, all versions of an API over one connection, and decodes every response."""
    for key in subject.offered():
        low, high = OFFERED_BY_3_9[key]
        connection = subject.connect()
        for version in subject.served(key, range(low, high + 1)):
            request = bare(codec(key, version).request, Random(f"{APIS[key].name} {version}"))
            if key == PRODUCE:
                request.acks = 1
            if key == OFFSET_FETCH and version >= 8:
                request.groups = [
                    OffsetFetchRequestGroup("g")
                ]  # a real broker does not respond to a request without groups
            if key == ADD_PARTITIONS_TO_TXN and version >= 4:
                request.transactions = [AddPartitionsToTxnTransaction("x")]  # nor to one without transactions
            if key == DESCRIBE_ACLS:  # a broker closes the connection if one of these is unknown
                request.resource_type_filter = request.pattern_type_filter = 3
                request.operation = request.permission_type = 3
            if key == UNREGISTER_BROKER:
                request.broker_id = -1  # a broker that exists would be fenced
            sent = subject.send(connection, request, version)
            assert subject.answer(connection).correlation_id == sent, (APIS[key].name, version)
