"""The methods of a test cluster. Each method runs in the broker's event loop as one step, between two requests, whichever thread calls it.

`TestCluster` (in a thread) and `AsyncTestCluster` (in the running event loop) differ in how they reach the loop and how they wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from kafkaproto.broker.observe import metrics
from kafkaproto.broker.observe.details import printable
from kafkaproto.broker.observe.journal import EventSeen, Journal, RequestSeen, ThrottleSeen
from kafkaproto.broker.observe.metrics import Metrics
from kafkaproto.broker.observe.undeliverable_log import undeliverable_text
from kafkaproto.broker.requests.undeliverable import undeliverable_now
from kafkaproto.broker.runtime.clock import JumpClock
from kafkaproto.broker.testing.arguments import check_int, counted
from kafkaproto.broker.testing.base import Base
from kafkaproto.broker.testing.brokers import BrokerMethods
from kafkaproto.broker.testing.groups import GroupMethods
from kafkaproto.broker.testing.hanging_transactions import hanging_transactions
from kafkaproto.broker.testing.options import Arguments
from kafkaproto.broker.testing.quotas import QuotaMethods
from kafkaproto.broker.testing.telemetry import TelemetryMethods
from kafkaproto.broker.testing.topics import TopicMethods, check_topics
from kafkaproto.broker.testing.tracebacks import is_hidden, without_frames_of_the_broker
from kafkaproto.broker.testing.transactions import TransactionMethods

__tracebackhide__ = is_hidden

Condition = Callable[[Journal], object]


class Handle(TopicMethods, QuotaMethods, GroupMethods, TransactionMethods, BrokerMethods, TelemetryMethods):
    """The base class of `TestCluster` and `AsyncTestCluster`, with the methods that both share."""

    def __init__(self, arguments: Arguments) -> None:
        check_topics(arguments.topics)
        self._arguments = arguments
        self._topics = arguments.topics
        self.journal = JournalReader(self)
        """The requests, throttles and other events of the cluster so far."""

    def __repr__(self) -> str:
        name = type(self).__name__
        if not self._running:
            return f"<{name} not running>"
        known_topics = self.state.controller.image.topics.values()
        topics = ", ".join(f"{topic.name} ({len(topic.partitions)})" for topic in known_topics if not topic.internal)
        return f"<{name} {self.bootstrap}, topics: {topics or 'none'}>"

    # ---- addresses -----------------------------------------------------------------------------------------------------------

    @property
    def bootstrap_servers(self) -> list[str]:
        """The host:port of each broker, in the order of broker ids."""
        return self.server.bootstrap

    @property
    def bootstrap(self) -> str:
        """The host:port of all brokers, separated by commas, as most clients accept it."""
        return ",".join(self.server.bootstrap)

    # ---- state ---------------------------------------------------------------------------------------------------------------

    def metrics(
        self, name: str | None = None, group: str | None = None, broker: int | None = None, **tags: str
    ) -> Metrics:
        """Return the current values of Kafka's metrics that match name, group, broker id and tags, by `MetricName`; None matches all.

        Example: `c.metrics("byte-rate", "Produce", user="alice")`; write dashes in the names of tags as underscores.
        """
        matching = {(key.replace("_", "-"), value) for key, value in tags.items()}
        series = self._run(lambda: metrics.snapshot(self.state, self.state.actions.now_ms))
        return {
            key: value
            for key, value in series.items()
            if name in (None, key.name)
            and group in (None, key.group)
            and broker in (None, key.broker_id)
            and matching <= set(key.tags)
        }

    def reset(self) -> None:
        """Bring the cluster back to the state that it had right after its start, and close all connections.

        The initial topics remain, without records. Groups, quotas, changed settings and journal entries are removed. With clock="jump",
        the clock shows wall time again, even if `clock.advance` has moved it forward.
        """

        def act() -> None:
            self.state.reset()
            if isinstance(self.state.clock, JumpClock):
                self.state.clock.reset()

        self._run(act)
        self.create_topics()

    # ---- what happened -------------------------------------------------------------------------------------------------------

    def explain(self, count: int = 20) -> str:
        """Return the last `count` requests as text, one per line, newest last. Times count from the cluster's start or last reset.

        At most `count` rebalances of groups and at most `count` transactions follow, one per line. Then there is a line for each batch that a client
        can never fetch because of its quota (Q-14), and for each hanging transaction (TX-76). After `stop`, the lines about batches and
        hanging transactions are missing.
        """
        check_int("count", count, 0, example=20)
        state = self.state

        def find() -> tuple[list[RequestSeen], list[str], list[str]]:
            nodes = state.nodes if self._running else []
            undeliverable = [facts for node in nodes for facts in undeliverable_now(node)]
            hanging = hanging_transactions(state) if self._running else ()
            warnings = [*map(undeliverable_text, undeliverable), *hanging]
            histories = *state.rebalances.latest(count), *state.transaction_history.latest(count)
            return list(state.journal.latest(count)), list(map(str, histories)), warnings

        latest, histories, warnings = self._read(find)
        return "\n".join([*map(str, reversed(latest)), *histories, *dict.fromkeys(warnings)])

    def conversations(self, count: int = 10) -> str:
        """Return the last `count` requests of each client id as text, one per line, oldest first.

        Before the requests of a client id there is a line with the client id and the number of all its requests that the journal (the list of
        requests and events) contains.
        """
        check_int("count", count, 0, example=10)
        by_client: dict[str, list[RequestSeen]] = {}
        for request in self.journal.requests():
            by_client.setdefault(request.client_id or "(none)", []).append(request)
        return "\n\n".join("\n".join(_conversation(client, requests, count)) for client, requests in by_client.items())


def _conversation(client_id: str, requests: list[RequestSeen], count: int) -> Iterator[str]:
    yield f"client id {printable(client_id)}: {counted(len(requests), 'request')}" + (
        f", the last {count}" if len(requests) > count else ""
    )
    yield from (f"  {request}" for request in islice(requests, max(0, len(requests) - count), None))


class JournalReader:
    """Reads the journal of a cluster: its requests, throttles and other events. Any thread may use it, also after the cluster has stopped."""

    def __init__(self, cluster: Base) -> None:
        self._cluster = cluster

    def __repr__(self) -> str:
        if not self._cluster.has_started:
            return "<journal of a cluster that is not started>"
        counts = self._cluster.state.journal.counts()
        return f"<journal of {', '.join(counted(count, noun) for noun, count in counts.items())}>"

    def requests(
        self, api: str | None = None, client_id: str | None = None, broker: int | None = None
    ) -> list[RequestSeen]:
        """Return the completed requests, oldest first. api: the API's name, such as "Produce". broker: a broker id. None matches all.

        Raises ValueError for an unknown API.
        """
        journal = self._cluster.state.journal
        with without_frames_of_the_broker(ValueError):
            return self._cluster._read(lambda: journal.requests(api, client_id, broker))

    def throttles(self, api: str | None = None, client_id: str | None = None) -> list[ThrottleSeen]:
        """Return the throttles so far, oldest first. api: the API's name, such as "Produce". None matches all.

        Raises ValueError for an unknown API.
        """
        with without_frames_of_the_broker(ValueError):
            return self._cluster._read(lambda: self._cluster.state.journal.throttles(api, client_id))

    def events(self, kind: str | None = None) -> list[EventSeen]:
        """Return the events so far that are neither requests nor throttles, oldest first.

        kind: the kind of event, such as "broker", "leader", "isr", "group" or "transaction"; None for all kinds.
        """
        return self._cluster._read(lambda: self._cluster.state.journal.events(kind))
