"""Transactions of client libraries whose broker is killed with `kill -9`, and started again on the same port and data directory.

All brokers of a cluster are one process, so `kill -9` ends all of them: no other broker can take over as coordinator, and the tests have one broker.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.broker.kills import broker_processes
from tests.support.groups.killed import TOPIC, KilledBroker
from tests.support.transactions.errors import ERRORS, is_from_killed_broker
from tests.support.transactions.scene import BOTH, FURTHER_MS, STUCK, STUCK_SECONDS
from tests.support.transactions.transactor import COMMANDS, Transactor, TransactorError

pytestmark = [pytest.mark.slow, pytest.mark.java, pytest.mark.clients, pytest.mark.timeout(200)]

ALL = ["before", "continued", "interrupted", "end"]
"""The values of all transactions that are committed."""


class Copy:
    """A client library that writes to both partitions of a topic in transactions, and adds offsets of its group to them.

    Topic, transactional id and group have the name of the library. library: a key of `COMMANDS`.
    """

    def __init__(self, library: str, broker: KilledBroker, stack: ExitStack) -> None:
        self.library = library
        self._broker = broker
        self._stack = stack
        self.transactor = self._start()

    def _start(self) -> Transactor:
        return self._stack.enter_context(Transactor(self.library, self._broker.bootstrap))

    def replace(self) -> Transactor:
        """Start another process of the library, and return the former one."""
        former, self.transactor = self.transactor, self._start()
        return former

    def init(self) -> None:
        self.transactor.init(self.library, self.library, TOPIC)

    def begin(self, value: str, *partitions: int) -> None:
        self.transactor.call("begin")
        self.write(value, *partitions)

    def write(self, value: str, *partitions: int) -> None:
        for partition in partitions:
            self.transactor.call("send", topic=self.library, partition=partition, value=value)

    def add_offset(self, offset: int) -> None:
        self.transactor.call("offsets", topic=TOPIC, offset=offset)

    def commit(self) -> None:
        self.transactor.call("commit")

    def is_committed(self) -> bool:
        """Wait for the response to a commit, and return whether it succeeded.

        franz-go 1.22.2 sometimes and kafkajs 2.2.4 always report an error if the broker is killed during the commit. kafka-python rarely drops the
        request (`STUCK`), and then never responds. The transaction is then either committed, or aborted by the next process. Raises
        TransactorError for an error that a killed broker does not explain.
        """
        if self.library == STUCK[0] and not self.transactor.responds(STUCK_SECONDS):
            return False
        try:
            self.transactor.response("commit")
        except TransactorError as error:
            if not is_from_killed_broker(self.library, error.name):
                raise
            return False
        return True

    def check_open(self) -> None:
        """Check that a consumer does not read the open transaction."""
        read = self.transactor.read(self.library, len(BOTH), "read_committed", "before", FURTHER_MS)
        assert read == [["before"]] * 2, self.library

    def check_fenced(self, former: Transactor) -> None:
        """Check that a former process cannot commit."""
        with pytest.raises(TransactorError) as raised:
            former.call("commit")
        assert raised.value.name == ERRORS[self.library].fenced

    def check_end(self, *, is_committed: bool) -> None:
        """Write the last transaction, and check the records and the committed offset.

        is_committed: whether the commit of "interrupted" succeeded. Otherwise, its transaction may still be committed, with its offset.
        """
        self.begin("end", *BOTH)
        self.commit()
        committed, uncommitted = (
            self.transactor.read(self.library, len(BOTH), level, "end")
            for level in ("read_committed", "read_uncommitted")
        )
        without = [value for value in ALL if value != "interrupted"]
        allowed = [([ALL] * 2, 2)] if is_committed else [([ALL] * 2, 2), ([without] * 2, 1)]
        assert (committed, self._broker.committed(self.library)[TOPIC, 0]) in allowed, self.library
        assert uncommitted == [["before", "continued", "abandoned", "interrupted", "end"], ALL], self.library


@pytest.mark.parametrize("release", ["3.9", "4.2"])
def test_transactions_of_client_libraries_survive_kill_9_of_their_broker(tmp_path: Path, release: str) -> None:
    with ExitStack() as stack:
        processes, topics = stack.enter_context(broker_processes()), dict.fromkeys(COMMANDS, len(BOTH))
        broker = KilledBroker(processes, tmp_path / "data", release, {}, topics)
        copies = [Copy(library, broker, stack) for library in COMMANDS]
        # All libraries share the broker and its kills, which keeps the test short.
        with broker.running():
            broker.produce()
            broker.produce()
            for copy in copies:
                copy.init()
                copy.begin("before", *BOTH)
                copy.commit()
                copy.begin("continued", 0)
                copy.add_offset(1)
        with broker.running():
            for copy in copies:
                copy.check_open()
                copy.write("continued", 1)
                copy.commit()
                # It gets no offset: librdkafka 2.16.0 never adds one after its group coordinator was lost in a kill (confluentinc/librdkafka#5511).
                copy.begin("abandoned", 0)
        with broker.running(0):
            abandoned = [copy.replace() for copy in copies]
            for copy, former in zip(copies, abandoned, strict=True):
                copy.init()
                copy.check_fenced(former)
                former.kill()
                copy.begin("interrupted", *BOTH)
                copy.add_offset(2)
            for copy in copies:
                copy.transactor.send("commit")
        with broker.running():
            outcomes = [copy.is_committed() for copy in copies]
            for copy in copies:
                copy.replace().kill()
            for copy, is_committed in zip(copies, outcomes, strict=True):
                copy.init()
                copy.check_end(is_committed=is_committed)
