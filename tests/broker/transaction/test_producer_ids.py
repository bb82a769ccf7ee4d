"""Blocks of producer ids (TX-11)."""

from __future__ import annotations

import pytest

from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.transaction.producer_ids import BLOCK_SIZE, ProducerIds
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.init_producer_id import InitProducerIdRequest
from tests.support.broker.transaction_bench import TransactionBench

DELAY_MS = 40


class Blocks:
    """A controller that counts the blocks it assigned."""

    def __init__(self) -> None:
        self.count = 0

    def assign(self) -> int:
        self.count += 1
        return (self.count - 1) * BLOCK_SIZE


@pytest.mark.rule("TX-11")
def test_broker_assigns_no_producer_ids_before_it_receives_a_producer_id_block() -> None:
    ids = ProducerIds(Blocks().assign, lambda: DELAY_MS)
    for now_ms in (1000, 1000 + DELAY_MS - 1):
        with pytest.raises(KafkaError) as raised:
            ids.next_id(now_ms)
        assert raised.value.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert ids.next_id(1000 + DELAY_MS) == 0


@pytest.mark.rule("TX-11")
@pytest.mark.parametrize(("pause_ms", "errors"), [(DELAY_MS, 0), (DELAY_MS - 1, 1)])
def test_next_producer_id_block_is_requested_when_90_percent_of_a_block_is_used(pause_ms: int, errors: int) -> None:
    blocks = Blocks()
    ids = ProducerIds(blocks.assign, lambda: DELAY_MS)
    assert ids.take() == 0
    assert [ids.next_id(0) for _ in range(900)] == list(range(1, 901))  # the last of these requests the next block
    assert [ids.next_id(0) for _ in range(99)] == list(range(901, 1000)) and blocks.count == 1
    if errors:
        with pytest.raises(KafkaError):
            ids.next_id(pause_ms)
    assert ids.next_id(pause_ms + errors) == 1000 and blocks.count == 2


@pytest.mark.rule("TX-11", "P-22")
def test_init_producer_id_gets_retriable_error_while_the_broker_has_no_producer_ids() -> None:
    bench = TransactionBench({"kafkaproto.producer.id.block.ms": str(DELAY_MS)})
    request = InitProducerIdRequest(None, 60_000, -1, -1)
    start_ms = bench.now_ms()
    errors = []
    while not errors or errors[-1]:
        errors.append(bench.ask_once(request, 4, broker_id=1).error_code)
        bench.pass_ms(10)
    assert set(errors[:-1]) == {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
    assert bench.now_ms() - start_ms >= DELAY_MS
    assert bench.ask_once(request, 4, broker_id=2).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    bench.cluster.state.stop_broker(1)
    bench.cluster.state.start_broker(1)
    assert bench.ask_once(request, 4, broker_id=1).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    bench.stop()
