"""What an incremental fetch leaves unsaid (KIP-227): of each session what was asked in its steps before, and what is due to be told.

Must be told of all fetches of a run in their order. Where a step is missing, nothing is made up: only what a request says itself is
known, until its session begins anew. What is known can be carried on as JSON. Must never know rows beyond the columns of a step.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kafkaproto.trace.cutting import read_heads
from kafkaproto.trace.format import Exchange

FINAL_EPOCH, FIRST_EPOCH = -1, 0
LAST_EPOCH = 2**31 - 1

Key = tuple[str, bytes, int]
"""(topic name, topic id, partition) as requests have it: one of the first two is empty."""


class Asked(NamedTuple):
    """Of a partition of a fetch: its fetch_offset, partition_max_bytes and current_leader_epoch."""

    offset: int
    limit_bytes: int
    epoch: int


class Step(NamedTuple):
    """asked: what a fetch asks for, in whatever step of its session. The rest: the columns of the same name, None where that cannot be
    known."""

    asked: dict[Key, Asked]
    session_expected: int | None = None
    session_missing: int | None = None
    session_strays: int | None = None
    asked_partitions: int | None = None
    more: bool | None = None

    def columns(self) -> dict[str, Any]:
        return {name: value for name, value in self._asdict().items() if name != "asked"}


class _Session:
    """epoch: of the step that comes next. told: the high watermark that each partition was told last. due: since when it has another."""

    __slots__ = ("asked", "connection", "due", "epoch", "told")

    def __init__(self, connection: int, asked: dict[Key, Asked], epoch: int = 1) -> None:
        self.epoch = epoch
        self.connection = connection
        self.asked = asked
        self.told: dict[Key, int] = {}
        self.due: dict[Key, int] = {}


class Sessions:
    """The sessions of all brokers of one run."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, int], _Session] = {}
        self._having: dict[tuple[int, Key], set[tuple[int, int]]] = {}
        """(broker, partition) to the sessions that have it."""
        self._of: dict[int, set[tuple[int, int]]] = {}
        """A connection to the sessions whose last step came over it."""

    def carried(self) -> list[Any]:
        """All that it knows, as JSON has it."""
        return [
            [broker, number, one.connection, one.epoch, [_told(one, which) for which in one.asked]]
            for (broker, number), one in self._open.items()
        ]

    @classmethod
    def carrying(cls, carried: list[Any]) -> Sessions:
        """The same again. Raises TypeError, ValueError or AttributeError for anything else."""
        made = cls()
        for broker, number, connection, epoch, partitions in carried:
            session = _Session(connection, {}, epoch)
            for topic, topic_id, partition, offset, limit_bytes, leader_epoch, told, due in partitions:
                which = topic, bytes.fromhex(topic_id), partition
                session.asked[which] = Asked(offset, limit_bytes, leader_epoch)
                if told is not None:
                    session.told[which] = told
                if due is not None:
                    session.due[which] = due
            made._begin((broker, number), session)
        return made

    def let_go(self, connection: int) -> None:
        """Nothing comes over a connection any more: the sessions whose last step it had are forgotten. Clients begin new ones elsewhere; of
        one that goes on after all only what its requests say themselves is known, as in a capture."""
        for key in self._of.pop(connection, ()):
            self._close(key)

    def step(self, one: Exchange, request: Any, response: Any, throttle_ms: int) -> Step:
        """A fetch, its answer if that is known, and for how long it is throttled: then it is empty (KIP-219)."""
        named = {
            (t.topic, t.topic_id, p.partition): Asked(p.fetch_offset, p.partition_max_bytes, p.current_leader_epoch)
            for t in request.topics
            for p in t.partitions
        }
        if response is None:
            self._close((one.broker, request.session_id))
            return Step(named)
        answered = _answered(response)
        key = one.broker, request.session_id
        step = (self._full if _is_full(request) else self._incremental)(one, key, request, response, named)
        if response.error_code == 0 and step.asked_partitions is not None and not throttle_ms:
            missing = self._missing(one, key, request, step.asked, answered)
            strays = len(answered.keys() - step.asked.keys())
            step = step._replace(
                session_missing=missing, session_strays=strays, more=_more(request, step.asked, answered)
            )
        self._note(one, request, response, answered)
        return step

    def _full(self, one: Exchange, key: tuple[int, int], request: Any, response: Any, named: dict[Key, Asked]) -> Step:
        self._close(key)
        if request.session_epoch == FIRST_EPOCH and response.session_id and not response.error_code:
            self._begin((one.broker, response.session_id), _Session(one.connection, named))
        return Step(named, asked_partitions=len(named))

    def _incremental(
        self, one: Exchange, key: tuple[int, int], request: Any, response: Any, named: dict[Key, Asked]
    ) -> Step:
        session = self._open.get(key)
        if session is None:
            return Step(named)
        expected = session.epoch if session.connection == one.connection else None
        if session.epoch != request.session_epoch or response.error_code:
            self._close(key)
            return Step(named, session_expected=expected)
        for which in named:
            self._having.setdefault((key[0], which), set()).add(key)
        session.asked.update(named)
        for topic in request.forgotten_topics_data:
            for partition in topic.partitions:
                self._forget(key, session, (topic.topic, topic.topic_id, partition))
        session.epoch = 1 if session.epoch == LAST_EPOCH else session.epoch + 1
        self._of[session.connection].discard(key)
        session.connection = one.connection
        self._of.setdefault(one.connection, set()).add(key)
        return Step(session.asked, expected, asked_partitions=len(session.asked))

    def _missing(
        self, one: Exchange, key: tuple[int, int], request: Any, asked: dict[Key, Asked], answered: dict[Key, Any]
    ) -> int:
        """Of a full fetch what is not answered; of an incremental one whose high watermark had moved before it was there."""
        if _is_full(request):
            return len(asked.keys() - answered.keys())
        session = self._open.get(key)
        if session is None:
            return 0
        begun_ns = one.handled_ns or one.received_ns
        return sum(since_ns < begun_ns and which not in answered for which, since_ns in session.due.items())

    def _note(self, one: Exchange, request: Any, response: Any, answered: dict[Key, Any]) -> None:
        """What a session was told, and what is due to all the others that have a partition of this answer."""
        own = (one.broker, response.session_id)
        session = self._open.get(own)
        for which, data in answered.items():
            if session is not None and which in session.asked:
                session.due.pop(which, None)
                session.told[which] = data.high_watermark if data.error_code == 0 else -1
            for key in self._having.get((one.broker, which), ()):
                other = self._open[key]
                if key == own or data.error_code or data.high_watermark < 0:
                    continue
                if 0 <= other.told.get(which, -1) < data.high_watermark:
                    other.due.setdefault(which, one.ready_ns)

    def _begin(self, key: tuple[int, int], session: _Session) -> None:
        self._close(key)
        self._open[key] = session
        self._of.setdefault(session.connection, set()).add(key)
        for which in session.asked:
            self._having.setdefault((key[0], which), set()).add(key)

    def _forget(self, key: tuple[int, int], session: _Session, which: Key) -> None:
        session.asked.pop(which, None)
        session.told.pop(which, None)
        session.due.pop(which, None)
        self._has_not(key, which)

    def _close(self, key: tuple[int, int]) -> None:
        session = self._open.pop(key, None)
        if session is not None:
            self._of.get(session.connection, set()).discard(key)
            for which in session.asked:
                self._has_not(key, which)

    def _has_not(self, key: tuple[int, int], which: Key) -> None:
        having = self._having.get((key[0], which), set())
        having.discard(key)
        if not having:
            self._having.pop((key[0], which), None)


def _told(session: _Session, which: Key) -> list[Any]:
    topic, topic_id, partition = which
    return [topic, topic_id.hex(), partition, *session.asked[which], session.told.get(which), session.due.get(which)]


def _is_full(request: Any) -> bool:
    return bool(request.session_epoch in (FINAL_EPOCH, FIRST_EPOCH))


def _answered(response: Any) -> dict[Key, Any]:
    return {(t.topic, t.topic_id, p.partition_index): p for t in response.responses for p in t.partitions}


def _more(request: Any, asked: dict[Key, Asked], answered: dict[Key, Any]) -> bool:
    """Whether a partition that is answered has something below its end that the client has not got."""
    for which, data in answered.items():
        end = data.last_stable_offset if request.isolation_level else data.high_watermark
        heads = read_heads(data.records or b"")
        if heads:
            reached = heads[-1].next_offset
        elif which in asked:
            reached = asked[which].offset
        else:
            continue
        if reached < end:
            return True
    return False
