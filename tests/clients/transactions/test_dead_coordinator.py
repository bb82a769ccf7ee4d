"""Transactions of client libraries whose coordinator's broker dies without a controlled shutdown.

No broker takes over before the dead broker's session with the controller has expired (M-14). Until then, the metadata names the dead broker as leader
and coordinator. The tests run on the brokers of this project only: Apache Kafka takes seconds to stop and start a broker, for each library.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafkaproto.conformance.subject import Subject
from tests.support.conformance.ours import Ours
from tests.support.conformance.virtual import NEWER_RELEASE, RELEASE
from tests.support.transactions.scene import STUCK, Levels, Loss, Scene, continue_unless_lost
from tests.support.transactions.stage import CHANGES, PROFILE
from tests.support.transactions.transactor import COMMANDS

pytestmark = [
    *(pytest.mark.slow, pytest.mark.java, pytest.mark.clients, pytest.mark.timeout(300)),
    pytest.mark.rule("M-14"),
]

SESSION_MS = 1_000
WITHOUT_HANDOVER = CHANGES | {
    "controlled.shutdown.enable": "false",
    "broker.session.timeout.ms": str(SESSION_MS),
    "broker.heartbeat.interval.ms": "1",  # the session lasts for the whole timeout after a stop
}
"""Settings with which a broker does not report its stop to the controller: other brokers take over only after the session timeout."""


@pytest.fixture(scope="module", params=[RELEASE, NEWER_RELEASE])
def running(request: pytest.FixtureRequest) -> Iterator[Subject]:
    subject = Ours(PROFILE, "kafka", request.param, WITHOUT_HANDOVER)
    yield subject
    subject.stop()


@pytest.mark.parametrize("library", list(COMMANDS))
def test_transaction_continues_at_another_broker_after_its_coordinator_broker_died(
    stage: Subject, library: str
) -> None:
    def scenario(libraries: list[str]) -> list[str]:
        scene = Scene(stage, library)
        with scene.transactor() as transactor:
            loss = Loss(scene, transactor)
            coordinator, died_ms = scene.producer.coordinator(), stage.now_ms()
            stage.stop_broker(coordinator)
            expected = loss.resume(is_stuck=library == STUCK[0])
            if any(expected.committed):
                assert stage.now_ms() - died_ms >= SESSION_MS
                transactor.call("begin")
                scene.write(transactor, "open", 0)
                expected = Levels([["1"]] * 2, [["1", "open"], ["1"]])
        stage.restore()
        assert scene.producer.coordinator() != coordinator
        loss.check(expected)
        return libraries if loss.is_lost else []

    continue_unless_lost(scenario, [library])
