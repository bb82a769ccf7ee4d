"""Step 2 of the demo: two kafka-python members of a group share the partitions and commit, one leaves, a third joins and resumes.

A record counts as read once its offset is committed: a batch whose commit was rejected because the group rebalanced is not counted, and its
records have to be fetched again.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable

from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import CommitFailedError, KafkaError

from kafkaproto.pipeline.demo.brokers import Brokers
from kafkaproto.pipeline.demo.table import Cell, Progress, same

TOPIC = "demo-group"
GROUP = "demo"
RECORDS = 6_000
PARTITIONS = 6
HALF = RECORDS // 2
TIMEOUT_SECONDS = 30.0
POLL_MS = (
    1_000  # kafka-python 3.0.12 can miss the end of a rebalance that takes longer than a poll, and then waits forever
)
PartitionOffset = tuple[int, int]


class Member:
    """A consumer of the demo's group, which polls in its own thread until `leave`.

    pause: a function that is called with the member. While it returns True, the member polls to stay in the group but fetches no records.
    """

    def __init__(self, brokers: Brokers, name: str, pause: Callable[[Member], bool]) -> None:
        self.name = name
        self.assigned: set[int] = set()
        self.committed: list[PartitionOffset] = []
        self.failure: Exception | None = None
        self._pause = pause
        self._leave = threading.Event()
        self._addresses = brokers.addresses
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def leave(self) -> None:
        self._leave.set()
        self._thread.join(TIMEOUT_SECONDS)

    def _run(self) -> None:
        try:
            self._work()
        except Exception as error:  # noqa: BLE001 - handed to the main thread, which reports it
            self.failure = error

    def _work(self) -> None:
        consumer = KafkaConsumer(
            TOPIC,
            bootstrap_servers=self._addresses,
            client_id=self.name,
            group_id=GROUP,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            max_poll_records=100,
            heartbeat_interval_ms=100,
        )
        try:
            while not self._leave.is_set():
                if self._pause(self):
                    consumer.pause(*consumer.assignment())
                else:
                    consumer.resume(*consumer.paused())
                polled = consumer.poll(POLL_MS)
                self.assigned = {p.partition for p in consumer.assignment()}
                places = [(p.partition, r.offset) for p, batch in polled.items() for r in batch]
                if places and self._commit(consumer):
                    self.committed += places
        finally:
            consumer.close(autocommit=False)
            self.assigned = set()

    @staticmethod
    def _commit(consumer: KafkaConsumer) -> bool:
        try:
            consumer.commit()
        except CommitFailedError:
            return False
        return True


def run(brokers: Brokers, progress: Progress) -> list[Cell]:
    brokers.create_topic(TOPIC, PARTITIONS)
    _fill(brokers)
    members: list[Member] = []

    def count() -> int:
        return sum(len(m.committed) for m in members)

    second_half = threading.Event()

    def pause(member: Member) -> bool:
        """Return True while a member of the demo's group must not fetch. The records are fetched in two halves, one before and one after a rebalance.

        In the first half, a member fetches only while the group has exactly two members and each of them has half of the partitions. A member that
        has committed a quarter of all records stops fetching. The second half starts when two things have happened: the second member has left, and
        the third member has joined and got half of the partitions. In the second half, every member may fetch.
        """
        shared = len(members) == 2 and all(len(m.assigned) == PARTITIONS // 2 for m in members)
        return not second_half.is_set() and (not shared or len(member.committed) >= HALF // 2)

    try:
        members += [Member(brokers, "first", pause), Member(brokers, "second", pause)]
        _wait(members, lambda: count() >= HALF, f"{HALF} records are read")
        first, second = members
        shares = " + ".join(str(len(m.assigned)) for m in members)
        progress.note(
            f"two members have {shares} partitions, have read and committed {len(first.committed)} + {len(second.committed)}"
        )
        second.leave()
        _wait(members, lambda: len(first.assigned) == PARTITIONS, "the first member has all partitions")
        alone = len(first.assigned)
        progress.note(f"the second has left, the first has {alone}")
        third = Member(brokers, "third", pause)
        members.append(third)
        _wait(
            members,
            lambda: len(third.assigned) == len(first.assigned) == PARTITIONS // 2,
            "the first and the third member have half of the partitions each",
        )
        resumed = f"{len(first.assigned)} + {len(third.assigned)}"
        second_half.set()
        _wait(members, lambda: count() >= RECORDS, f"all {RECORDS} records are read")
        progress.note(
            f"a third has joined, the members have {resumed}; committed {len(first.committed)} + {len(second.committed)} + {len(third.committed)}"
        )
    finally:
        for member in members:
            member.leave()
    times = Counter(place for member in members for place in member.committed)
    return [
        same("partitions of the first and second member", "3 + 3", shares),
        same("of the first after the second has left", PARTITIONS, alone),
        same("of the first and third member", "3 + 3", resumed),
        same("lost records", 0, RECORDS - len(times)),
        same("records read again after their commit", 0, sum(n - 1 for n in times.values())),
        same("all three members have read", True, all(member.committed for member in members)),
    ]


def _fill(brokers: Brokers) -> None:
    producer = KafkaProducer(bootstrap_servers=brokers.addresses, linger_ms=20)
    try:
        for i in range(RECORDS):
            producer.send(TOPIC, value=b"%d" % i, partition=i % PARTITIONS)
        producer.flush()
    finally:
        producer.close()


def _wait(members: list[Member], condition: Callable[[], bool], expected_event: str) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        for member in members:
            if member.failure is not None:
                raise member.failure
        if time.monotonic() > deadline:
            members_now = ", ".join(
                f"{m.name}: partitions {sorted(m.assigned)}, {len(m.committed)} committed" for m in members
            )
            raise KafkaError(
                f"timed out after {TIMEOUT_SECONDS} s of waiting until {expected_event} in the group of the demo; "
                f"its members: {members_now}"
            )
        time.sleep(0.01)
