"""UnregisterBroker for a running broker: it is fenced until it is restarted, as in Kafka 3.9.1 and 4.2.0."""

from __future__ import annotations

import pytest

from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.messages.unregister_broker import UnregisterBrokerRequest


@pytest.mark.rule("AD-26")
def test_running_broker_that_is_unregistered_is_fenced_until_its_restart() -> None:
    cluster = VirtualCluster(2)
    controller = cluster.state.controller
    controller.put_topic(controller.plan_topic("shared", assignment={0: [1, 0]}))
    controller.put_topic(controller.plan_topic("alone", assignment={0: [1]}))
    cluster.run()

    def states() -> list[tuple[int, tuple[int, ...]]]:
        partitions = [controller.image.topics[name].partitions[0] for name in ("shared", "alone")]
        return [(p.leader, p.isr) for p in partitions]

    def unregister() -> int:
        return int(cluster.connect(0).ask(UnregisterBrokerRequest(1), 0).error_code)

    assert unregister() == 0
    assert not controller.image.is_alive(1) and states() == [(0, (0,)), (-1, (1,))]
    cluster.advance(1000)
    assert unregister() == 102 and states() == [(0, (0,)), (-1, (1,))]
    with pytest.raises(KafkaError, match="broker 1, but no such broker is registered"):
        controller.plan_topic("new", assignment={0: [1]})
    cluster.state.stop_broker(1)
    cluster.state.start_broker(1)
    cluster.run()
    cluster.advance(1000)
    assert controller.image.is_alive(1) and states() == [(0, (0, 1)), (1, (1,))]
    assert unregister() == 0
