"""A test cluster in the running event loop: for asyncio programs and tests."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping
from types import TracebackType
from typing import Any, Concatenate, TypeVar, Unpack, cast, overload

from kafkaproto.broker.server.server import Server
from kafkaproto.broker.testing import groups, transactions
from kafkaproto.broker.testing.arguments import check_function, check_int, check_seconds
from kafkaproto.broker.testing.decorating import P, R, S, decorated
from kafkaproto.broker.testing.group_views import GroupSeen
from kafkaproto.broker.testing.groups import Wait
from kafkaproto.broker.testing.handle import Condition, Handle
from kafkaproto.broker.testing.options import (
    Arguments,
    Options,
    Topics,
    arguments_of,
    in_python_words,
    new_cluster,
)
from kafkaproto.broker.testing.records import StoredRecord
from kafkaproto.broker.testing.tracebacks import is_hidden, without_frames_of_the_broker
from kafkaproto.broker.testing.transaction_views import TransactionSeen
from kafkaproto.broker.testing.waiting import Watch, end_waits, timed_out

__tracebackhide__ = is_hidden

T = TypeVar("T")
C = TypeVar("C", bound=Handle)
WAIT_SECONDS = 10.0


class AsyncClock:
    """The clock of a cluster in the running event loop. `advance` must be awaited."""

    def __init__(self, owner: AsyncTestCluster) -> None:
        self._owner = owner

    def __repr__(self) -> str:
        return repr(self._owner.state.clock) if self._owner.has_started else "<clock of a cluster that is not started>"

    def now_ms(self) -> int:
        """Return the time of the cluster's clock in milliseconds since the epoch."""
        return self._owner.state.clock.now_ms()

    async def advance(self, delta_ms: int) -> None:
        """Let `delta_ms` milliseconds pass at once, and fire each timer at its exact time.

        Raises TypeError if the cluster runs on the system clock, which cannot be advanced, and ValueError for a negative time.
        """
        check_int("delta_ms", delta_ms, 0, example=30_000)
        await self._owner.server.loop.advance(delta_ms)


class AsyncTestCluster(Handle):
    """A cluster in the running event loop, made by `async_cluster()`. Methods that wait are coroutines; all other methods act at once.

    It runs from `start` to `stop`, in an `async with` block, or during each call of a coroutine function that it decorates.
    """

    def __init__(self, arguments: Arguments) -> None:
        super().__init__(arguments)
        self.clock = AsyncClock(self)
        """The cluster's clock. For example, `await clock.advance(30_000)` lets 30 seconds pass at once."""

    async def start(self) -> AsyncTestCluster:
        """Start the cluster in the running loop and return it.

        Raises RuntimeError if the cluster runs already, ConfigError or ValueError for invalid arguments, KafkaError for an invalid topic.
        """
        if self._running:
            raise RuntimeError("the cluster is already running; call stop() before start()")
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            raise RuntimeError(
                "an asynchronous cluster needs a running asyncio event loop; without one, for example under trio, use `with cluster()`"
            ) from None
        with in_python_words():
            state = new_cluster(self._arguments)
            server = Server(
                state, self._arguments.host, self._arguments.port, trace=self._arguments.options.get("trace")
            )
            await server.start()
            self._server, self._running, self._process_id = server, True, os.getpid()
            try:
                self.create_topics()
            except BaseException:
                await self.stop()
                raise
        return self

    async def stop(self) -> None:
        """Stop the cluster, if it is running: close connections and listeners, and raise RuntimeError in pending `wait_for...` calls."""
        self._refuse_in_fork()
        if self._running:
            self._running = False
            end_waits(self.state.events)
            await self.server.stop()

    async def __aenter__(self) -> AsyncTestCluster:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._is_in_fork():  # a child that leaves the block leaves the cluster to its parent
            await self.stop()

    @overload
    def __call__(
        self, function: Callable[Concatenate[C, P], Coroutine[Any, Any, R]]
    ) -> Callable[P, Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[S, C, P], Coroutine[Any, Any, R]]
    ) -> Callable[Concatenate[S, P], Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(self, function: Callable[..., Coroutine[Any, Any, R]]) -> Callable[..., Coroutine[Any, Any, R]]: ...
    def __call__(self, function: Callable[..., Coroutine[Any, Any, R]]) -> Callable[..., Coroutine[Any, Any, R]]:
        """Decorate a coroutine function, so that each call runs with a new cluster. A parameter `kafka` of the function receives the cluster.

        Callers leave out the argument `kafka`, because the decorator adds it. A type checker checks the other arguments if `kafka` is the first
        parameter, or the second as in methods. Raises TypeError for anything but coroutine functions.
        """
        return decorated(function, None, lambda: AsyncTestCluster(self._arguments))

    def _run(self, action: Callable[[], T]) -> T:
        loop = self._running_server().loop
        with without_frames_of_the_broker():
            return loop.call(action)

    async def settled(self) -> None:
        """Wait until the listeners of brokers that were started again are open. Raises ConfigError if another process took a port."""
        await self.server.settled()

    # ---- waiting -----------------------------------------------------------------------------------------------------------------

    async def wait_for(self, condition: Condition, timeout_s: float = WAIT_SECONDS) -> object:
        """Wait until `condition(journal)` returns a true value, and return that value.

        condition: a plain function, called now and after each event that can make it true, such as a request, throttle or append. Its argument is the
        cluster's `journal`, the list of requests, throttles and other events. Raises the exception of the condition, if it raises one. After
        `timeout_s` seconds raises TimeoutError, whose message contains the last requests.
        """
        check_function("condition", condition)
        journal = self.state.journal
        return await self._wait(
            lambda: condition(journal) or None, lambda: "nothing fulfilled the condition", timeout_s
        )

    async def wait_for_group(
        self,
        group_id: str,
        members: int | None = None,
        state: str | None = None,
        timeout_s: float = WAIT_SECONDS,
    ) -> GroupSeen:
        """Wait until a group of either protocol has `members` members and the state `state`, and return it. None accepts any value.

        state: such as "Stable" or "Empty"; in a classic group also "PreparingRebalance", in a KIP-848 group also "Assigning" or "Reconciling". Raises
        TypeError for an argument of a wrong type, ValueError for an unknown state or an impossible combination, such as 2 members and "Empty", and
        TimeoutError after `timeout_s` seconds.
        """
        return cast(GroupSeen, await self._wait_state(groups.for_group(group_id, members, state), timeout_s))

    async def move_coordinator(self, group_id: str, broker_id: int, timeout_s: float = WAIT_SECONDS) -> GroupSeen:
        """Move the coordinator of a group to another broker, wait until that broker has loaded the group, and return the group.

        The broker becomes the leader of the group's partition of `__consumer_offsets`, so that other groups of this partition move, too. Raises
        ValueError if there is no such group or broker, or if the broker has no in-sync replica of the partition, and TimeoutError if the group is
        not loaded after `timeout_s` seconds.
        """
        check_seconds("timeout_s", timeout_s)
        self._lead_group(group_id, broker_id)
        return cast(GroupSeen, await self._wait_state(groups.for_coordinator(group_id, broker_id), timeout_s))

    async def wait_for_transaction(
        self, transactional_id: str, state: str, timeout_s: float = WAIT_SECONDS
    ) -> TransactionSeen:
        """Wait until a transactional id has the state `state`, such as "CompleteCommit", and return its transaction.

        Raises ValueError for an unknown state, and TimeoutError after `timeout_s` seconds.
        """
        return cast(
            TransactionSeen, await self._wait_state(transactions.for_transaction(transactional_id, state), timeout_s)
        )

    async def wait_for_records(
        self, topic: str, count: int, partition: int | None = None, timeout_s: float = WAIT_SECONDS
    ) -> list[StoredRecord]:
        """Wait until a topic, or one partition, has at least `count` records, and return all its records.

        partition: None for the whole topic. Raises TimeoutError after `timeout_s` seconds.
        """
        return cast(list[StoredRecord], await self._wait_state(groups.for_records(topic, count, partition), timeout_s))

    async def _wait_state(self, wait: Wait, timeout_s: float) -> object:
        state = self.state
        return await self._wait(lambda: wait.reached(state), lambda: wait.describe(state), timeout_s)

    async def _wait(
        self, condition: Callable[[], object | None], describe: Callable[[], str], timeout_s: float
    ) -> object:
        check_seconds("timeout_s", timeout_s)
        self._running_server()
        fulfilled: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        watch = Watch(condition, fulfilled)
        events = self.state.events
        events.attach(watch)
        try:
            watch.check()
            return await asyncio.wait_for(fulfilled, timeout_s)
        except TimeoutError:
            if fulfilled.done() and not fulfilled.cancelled():
                raise
            raise timed_out(timeout_s, describe(), self.explain()) from None
        finally:
            events.detach(watch)


def async_cluster(
    brokers: int = 1,
    topics: Topics | None = None,
    config: Mapping[str, object] | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    **options: Unpack[Options],
) -> AsyncTestCluster:
    """Return a cluster for the running event loop.

    topics: maps names to numbers of partitions, or to the arguments of `create_topic`. config: maps Kafka's broker settings to values;
    `1.broker.rack` is the setting `broker.rack` of broker 1 only. host, port: the first broker listens on `port`, the others on the next ports;
    with port 0, each gets a free port. options: see `Options`.
    """
    return AsyncTestCluster(arguments_of(brokers, topics, config, host, port, options))
