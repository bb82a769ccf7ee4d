"""Transactions of client libraries, whose errors are those that Apache Kafka causes: all of a transaction becomes visible, or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from kafkaproto.conformance.scene import LATEST, list_offsets, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.transactions import NONE
from tests.support.transactions.errors import ERRORS
from tests.support.transactions.scene import BOTH, FIRST_WRITE, STUCK, Copy, Loss, Scene, continue_unless_lost
from tests.support.transactions.stage import STAGES
from tests.support.transactions.transactor import COMMANDS, TransactorError

pytestmark = [pytest.mark.slow, pytest.mark.java, pytest.mark.clients, pytest.mark.timeout(300)]

OURS = [name for name in STAGES if name.startswith("ours")]
APACHE_KAFKA = [name for name in STAGES if name not in OURS]
DEBUGGING_REPLICA = -2
"""The replica id with which ListOffsets returns the log end offset of the leader, not the high watermark."""
TIMEOUT_MS = 1_000
"""The shortest `transaction.timeout.ms` that librdkafka accepts."""


@pytest.fixture(scope="module")
def running(request: pytest.FixtureRequest) -> Iterator[Subject]:
    subject = STAGES[request.param]()
    yield subject
    subject.stop()


@pytest.fixture
def scene(stage: Subject, library: str) -> Scene:
    return Scene(stage, library)


on_every_stage = pytest.mark.parametrize("running", list(STAGES), indirect=True, scope="module")
on_ours = pytest.mark.parametrize("running", OURS, indirect=True, scope="module")
"""Runs a test on the brokers of this project only.

Such a test stops a broker, holds back one follower, or starts a process for each step of a transaction, and it does so for each library. Apache Kafka
takes seconds to stop and start a broker, and a test can suspend only a whole broker of it, not one follower. On Apache Kafka, one stop of the
coordinator serves all libraries, and `test_second_producer_with_the_same_transactional_id_fences_the_first` leaves a transaction open.
"""
on_apache_kafka = pytest.mark.parametrize("running", APACHE_KAFKA, indirect=True, scope="module")
each_library = pytest.mark.parametrize("library", list(COMMANDS))


@on_every_stage
@each_library
def test_read_committed_consumer_reads_only_records_of_committed_transactions(scene: Scene) -> None:
    with scene.transactor() as transactor:
        transactor.init(scene.transactional_id)
        scene.transact(transactor, "kept", commit=True)
        scene.transact(transactor, "dropped", commit=False)
        transactor.call("begin")
        scene.write(transactor, "open", *BOTH)
        assert scene.read_open(transactor, "kept", "open") == ([["kept"]] * 2, [["kept", "dropped", "open"]] * 2)
        transactor.call("commit")
        scene.transact(transactor, "end", commit=True)
        assert scene.read(transactor) == ([["kept", "open"]] * 2, [["kept", "dropped", "open"]] * 2)


@on_every_stage
@each_library
def test_second_producer_with_the_same_transactional_id_fences_the_first(scene: Scene) -> None:
    with scene.transactor() as first, scene.transactor() as second:
        first.init(scene.transactional_id)
        first.call("begin")
        scene.write(first, "of the first", 0)
        second.init(scene.transactional_id)
        with pytest.raises(TransactorError) as raised:
            first.call("commit")
        assert raised.value.name == ERRORS[scene.library].fenced
        scene.transact(second, "end", commit=True)
        assert scene.read(second) == ([[], []], [["of the first"], []])


@on_every_stage
@each_library
def test_transaction_that_times_out_is_aborted(scene: Scene) -> None:
    with scene.transactor() as late, scene.transactor() as successor:
        late.init(scene.transactional_id, timeout_ms=TIMEOUT_MS)
        late.call("begin")
        scene.write(late, "late", 0)
        scene.producer.wait_for("CompleteAbort")
        with pytest.raises(TransactorError) as raised:
            scene.write(late, "later", 0)
        assert raised.value.name == ERRORS[scene.library].late
        successor.init(scene.transactional_id)
        scene.transact(successor, "end", commit=True)
        assert scene.read(successor) == ([[], []], [["late"], []])


@on_every_stage
@each_library
def test_txn_offset_commits_take_effect_only_if_the_transaction_is_committed(scene: Scene) -> None:
    copy = Copy(scene)
    with scene.transactor() as transactor:
        copy.init(transactor)
        for offset, end, committed in ((3, "abort", NONE), (2, "commit", 2), (4, "abort", 2)):
            transactor.call("begin")
            scene.write(transactor, str(offset), *BOTH)
            before = copy.committed()
            copy.add_offset(transactor, offset)
            assert copy.committed() == before
            transactor.call(end)
            wait_until(
                scene.subject, lambda expected=committed: copy.committed() == expected, f"{committed} is committed"
            )
    assert copy.read_all() == ([["2"]] * 2, [["3", "2", "4"]] * 2)


@on_ours
@each_library
def test_transaction_of_a_client_killed_at_any_step_is_never_partly_visible(scene: Scene) -> None:
    copy = Copy(scene)
    offset = 0
    is_complete = False
    while not is_complete:
        offset += 1
        with scene.transactor() as transactor:
            steps = copy.steps(transactor, offset)
            is_complete = offset == len(steps)
            for step in steps[:offset]:
                step()
    for command in ("commit", "abort"):
        offset += 1
        with scene.transactor() as transactor:
            for step in copy.steps(transactor, offset)[:-1]:
                step()
            transactor.send(command)
            scene.subject.pass_ms(3)
    offset += 1
    with scene.transactor() as transactor:
        for step in copy.steps(transactor, offset)[:-1]:
            step()
        transactor.call("abort")
    complete, unsure = str(offset - 3), str(offset - 2)
    committed, uncommitted = copy.read_all()
    assert committed in ([[complete, unsure]] * 2, [[complete]] * 2)
    assert copy.committed() == int(committed[0][-1])
    written = [str(number) for number in range(FIRST_WRITE, offset + 1)]
    assert uncommitted == [written, written[1:]]


@on_ours
@pytest.mark.parametrize("library", ["franz-go"])
def test_franz_go_killed_between_txn_offset_commit_and_end_txn_commits_no_offset(scene: Scene) -> None:
    """franz-go sends TxnOffsetCommit only when it commits. The other libraries are killed after it at one of the steps of a transaction."""
    copy = Copy(scene)
    offsets, index = scene.group.offsets, scene.group.index

    def end() -> int:
        end_offset: int = list_offsets(offsets, LATEST, replica_id=DEBUGGING_REPLICA, index=index).offset
        return end_offset

    follower = next(broker for broker in range(3) if broker != scene.group.coordinator())
    with scene.transactor() as transactor:
        copy.init(transactor)
        transactor.call("begin")
        scene.write(transactor, "lost", *BOTH)
        copy.add_offset(transactor, 1)
        end_before = end()
        # The coordinator stores the offset, but does not respond while a follower in the ISR lacks it.
        scene.subject.hold_follower(offsets.name, index, follower)
        transactor.send("commit")
        wait_until(scene.subject, lambda: end() > end_before, "the coordinator has stored the offset")
    scene.subject.release_follower(offsets.name, index, follower)
    assert scene.producer.describe().transaction_state == "Ongoing"
    assert copy.read_all() == ([[], []], [["lost"], ["lost"]])
    assert copy.committed() == NONE


@on_ours
@each_library
@pytest.mark.parametrize("kind", ["transaction coordinator", "group coordinator"])
def test_transaction_continues_while_its_coordinator_broker_is_stopped(stage: Subject, library: str, kind: str) -> None:
    def scenario(libraries: list[str]) -> list[str]:
        scene = Scene(stage, library)
        coordinators = [scene.producer, scene.group]
        with scene.transactor() as transactor:
            loss = Loss(scene, transactor)
            stage.stop_broker(coordinators[kind == "group coordinator"].coordinator())
            expected = loss.resume(is_stuck=(library, kind) == STUCK)
        stage.restore()
        loss.check(expected)
        return libraries if loss.is_lost else []

    continue_unless_lost(scenario, [library])


@on_apache_kafka
def test_clients_except_kafka_python_continue_transactions_if_the_coordinator_stops(stage: Subject) -> None:
    def scenario(libraries: list[str]) -> list[str]:
        # One stop of a broker for all clients: Apache Kafka takes seconds to stop and start one.
        with ExitStack() as stack:
            scenes = [Scene(stage, library, index=0) for library in libraries]
            losses = [Loss(scene, stack.enter_context(scene.transactor())) for scene in scenes]
            stage.stop_broker(scenes[0].producer.coordinator())
            expected = [loss.resume(is_stuck=loss.scene.library == STUCK[0]) for loss in losses]
        stage.restore()
        for loss, levels in zip(losses, expected, strict=True):
            loss.check(levels)
        return [loss.scene.library for loss in losses if loss.is_lost]

    continue_unless_lost(scenario, list(COMMANDS))


@on_ours
@each_library
def test_commit_completes_if_the_coordinator_stops_before_the_markers_are_replicated(scene: Scene) -> None:
    copy = Copy(scene)
    with scene.transactor() as transactor:
        copy.init(transactor)
        scene.transact(transactor, "before", commit=True)
        transactor.call("begin")
        scene.write(transactor, "decided", *BOTH)
        copy.add_offset(transactor, 1)
        # While a follower in the ISR lacks the markers, they are not committed.
        follower = scene.group.coordinator()
        for partition in BOTH:
            scene.subject.hold_follower(scene.topic.name, partition, follower)
        transactor.call("commit")
        coordinator = scene.producer.coordinator()
        scene.subject.stop_broker(coordinator)
        scene.subject.start_broker(coordinator)
        assert scene.producer.coordinator() != coordinator
        scene.producer.wait_for("PrepareCommit")
        read_values = scene.read_open(transactor, "before", "decided")
        assert read_values == ([["before"]] * 2, [["before", "decided"]] * 2)
        for partition in BOTH:
            scene.subject.release_follower(scene.topic.name, partition, follower)
        scene.producer.wait_for("CompleteCommit")
        assert scene.read_open(transactor, "decided", "decided") == ([["before", "decided"]] * 2,) * 2
        assert copy.committed() == 1
