"""Transaction requests that a producer sends at once over one socket: the next transaction must wait even if the last one completes at once."""

from __future__ import annotations

import pytest

from kafkaproto.conformance.client import Connection
from kafkaproto.conformance.scene import new_topic
from kafkaproto.conformance.transactions import Producer
from kafkaproto.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kafkaproto.messages.end_txn import EndTxnRequest
from tests.support.conformance.ours import OursManual

CONCURRENT = 51


@pytest.mark.rule("TX-25", "TX-39")
@pytest.mark.parametrize(("release", "version"), [("3.9", 3), ("4.2", 3), ("4.2", 5)])
def test_add_partitions_pipelined_behind_end_txn_gets_error_concurrent_transactions(release: str, version: int) -> None:
    """EndTxn and AddPartitionsToTxn arrive in one TCP segment, and the completion takes 0 ms (`kafkaproto.transaction.completion.ms`).

    The clock is manual, because a broker on a busy machine handles the second request so much later that the completion is over.
    """
    subject = OursManual("default", "kafka", release, {"kafkaproto.transaction.completion.ms": "0"})
    try:
        topic, producer = new_topic(subject), Producer(subject)
        producer.init()
        producer.add_once_free(topic)
        assert producer.send(topic, 0) == (0, 0)
        connection: Connection = subject.connect(producer.coordinator())
        end = EndTxnRequest(producer.id, producer.producer_id, producer.epoch, True)
        next_epoch = producer.epoch + (1 if version == 5 else 0)
        named = [AddPartitionsToTxnTopic(topic.name, [0])]
        add = AddPartitionsToTxnRequest([], producer.id, producer.producer_id, next_epoch, named)
        requests = [(end, version), (add, 3), (add, 3)]
        connection.send_bytes(b"".join(connection.frame(*request, subject.now_ms()) for request in requests))
        end_response, *add_responses = [subject.answer(connection).message for _ in requests]
        assert end_response.error_code == 0
        for response in add_responses:
            [listed] = response.results_by_topic_v3_and_below
            assert listed.results_by_partition[0].partition_error_code == CONCURRENT
        producer.epoch = next_epoch
        producer.add_once_free(topic)
        assert producer.send(topic, 1 if version == 3 else 0) == (0, 2)
    finally:
        subject.close_connections()
        subject.stop()
