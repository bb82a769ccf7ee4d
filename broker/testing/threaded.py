"""A cluster in a thread with its own loop: for tests, scripts and notebooks that do not use asyncio themselves."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import Concatenate, TypeVar, Unpack, cast, overload

from kafkaproto.broker.cluster import Cluster
from kafkaproto.broker.runtime.events import Events
from kafkaproto.broker.server.server import Server
from kafkaproto.broker.testing import groups, transactions
from kafkaproto.broker.testing.arguments import check_function, check_int, check_seconds
from kafkaproto.broker.testing.asynchronous import AsyncTestCluster
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
from kafkaproto.broker.testing.warming import load_now

__tracebackhide__ = is_hidden

T = TypeVar("T")
C = TypeVar("C", bound=Handle)
WAIT_SECONDS = 10.0
_LOOK_SECONDS = 0.1
"""How often, in seconds, a thread that waits for a result from the broker's thread checks whether the broker's thread has ended."""


class ClockHandle:
    """The cluster's clock, usable from any thread."""

    def __init__(self, owner: TestCluster) -> None:
        self._owner = owner

    def __repr__(self) -> str:
        return repr(self._owner.state.clock) if self._owner.has_started else "<clock of a cluster that is not started>"

    def now_ms(self) -> int:
        """Return the time of the cluster's clock in milliseconds since the epoch."""
        return self._owner.state.clock.now_ms()

    def advance(self, delta_ms: int) -> None:
        """Let `delta_ms` milliseconds pass at once: throttles, long polls and session timeouts end at their exact times.

        Returns when the brokers have handled everything that became due. Raises TypeError on the system clock and ValueError for a negative time.
        """
        check_int("delta_ms", delta_ms, 0, example=30_000)
        self._owner.wait(self._owner.server.loop.advance(delta_ms))


class TestCluster(Handle):
    """A cluster in a thread, made by `cluster()`. Any thread may call its methods.

    A condition of `wait_for` may call only methods that read. The cluster runs from `start` to `stop`, in a `with` block, or during each call of a
    function that it decorates. In an `async with` block, a cluster with the same arguments runs in the running event loop; the block gets an
    `AsyncTestCluster`.
    """

    __test__ = False  # pytest: not a test class

    def __init__(self, arguments: Arguments) -> None:
        super().__init__(arguments)
        self.clock = ClockHandle(self)
        """The cluster's clock. For example, `clock.advance(30_000)` lets 30 seconds pass at once."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._asynchronous: AsyncTestCluster | None = None
        self._starting = threading.Lock()
        """A lock that is held while the cluster starts or stops, because any thread may start or stop it."""

    # ---- start and stop --------------------------------------------------------------------------------------------------------

    def start(self) -> TestCluster:
        """Start the cluster and return it. After `stop` it can start again, as a new cluster unless it has a data directory.

        Raises RuntimeError if the cluster runs already, ConfigError or ValueError for invalid arguments, KafkaError for an invalid topic.
        """
        with self._starting:
            self._start()
        return self

    def _start(self) -> None:
        if self._running:
            raise RuntimeError("the cluster is already running; call stop() before start()")
        with in_python_words():
            state = new_cluster(self._arguments)
            load_now()
            _ = state.apis
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="kafkaproto", daemon=True)
            self._thread.start()
            try:
                self._server = self.wait(self._serve(state))
                self._running, self._process_id = True, os.getpid()
                self.create_topics()
            except BaseException:
                self._end()
                raise

    async def _serve(self, state: Cluster) -> Server:
        server = Server(state, self._arguments.host, self._arguments.port, trace=self._arguments.options.get("trace"))
        await server.start()
        return server

    def stop(self) -> None:
        """Stop the cluster, if it is running: close connections and listeners, and raise RuntimeError in pending `wait_for...` calls."""
        self._refuse_in_fork()
        self._refuse_in_condition()
        with self._starting:
            if self._running:
                self._end()

    def _refuse_in_condition(self) -> None:
        """Raise RuntimeError if called by a condition of `wait_for`. A condition runs in the broker's thread, which cannot wait for itself."""
        if self._thread is threading.current_thread():
            raise RuntimeError(
                "the condition of wait_for must not stop the cluster or wait, because it runs inside the broker; it may only read the cluster"
            )

    def _end(self) -> None:
        assert self._loop is not None
        assert self._thread is not None
        try:
            if self._running:
                self.wait(self._stop_serving())
        finally:
            self._running = False
            try:
                self.wait(_finish_calls())
            finally:
                self._loop.call_soon_threadsafe(self._loop.stop)
                self._thread.join()
                self._loop.close()

    async def _stop_serving(self) -> None:
        end_waits(self.state.events)
        try:
            await self.server.stop()
        finally:
            self._running = False
            end_waits(self.state.events)  # those that began meanwhile

    def __enter__(self) -> TestCluster:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._is_in_fork():  # a child that leaves the block leaves the cluster to its parent
            self.stop()

    async def __aenter__(self) -> AsyncTestCluster:
        if self._asynchronous is not None and self._asynchronous.is_running:
            raise RuntimeError(
                "the cluster is already running in an `async with` block; create another one with cluster()"
            )
        self._asynchronous = AsyncTestCluster(self._arguments)
        return await self._asynchronous.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._asynchronous is not None
        await self._asynchronous.stop()

    @overload
    def __call__(self, function: Callable[Concatenate[C, P], R]) -> Callable[P, R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[S, C, P], R]) -> Callable[Concatenate[S, P], R]: ...
    @overload
    def __call__(self, function: Callable[..., R]) -> Callable[..., R]: ...
    def __call__(self, function: Callable[..., R]) -> Callable[..., R]:
        """Decorate a function or coroutine function, so that each call runs with a new cluster. A parameter `kafka` receives the cluster.

        Callers leave out the argument `kafka`, because the decorator adds it. A type checker checks the other arguments if `kafka` is the first
        parameter, or the second as in methods. Raises TypeError for classes and generators.
        """
        return decorated(function, lambda: TestCluster(self._arguments), lambda: AsyncTestCluster(self._arguments))

    # ---- into the broker's loop --------------------------------------------------------------------------------------------------

    def wait(self, coroutine: Coroutine[object, object, T]) -> T:
        """Run a coroutine in the broker's loop, wait for it and return its result. Raises RuntimeError unless the cluster runs."""
        loop, thread = self._loop, self._thread
        try:
            self._refuse_in_fork()
            self._refuse_in_condition()
            if loop is None or thread is None or not thread.is_alive():
                self._running_server()
                raise _stopped()
            try:
                future = asyncio.run_coroutine_threadsafe(coroutine, loop)
            except RuntimeError:  # the loop is closed
                raise _stopped() from None
        except BaseException:
            coroutine.close()
            raise
        while True:
            try:
                return future.result(_LOOK_SECONDS)
            except TimeoutError:
                if future.done():  # the coroutine itself may raise TimeoutError
                    return future.result()
                if not thread.is_alive():  # the loop ended before it came to the coroutine
                    coroutine.close()
                    raise _stopped() from None

    def _run(self, action: Callable[[], T]) -> T:
        server = self._running_server()
        if self._thread is threading.current_thread():
            # A condition of `wait_for` runs in the broker's own thread, which cannot wait for itself.
            return server.loop.call(action)

        async def act() -> T:
            self._running_server()  # it may have stopped since the call
            result = server.loop.call(action)
            await server.settled()
            return result

        with without_frames_of_the_broker():
            return self.wait(act())

    # ---- waiting -----------------------------------------------------------------------------------------------------------------

    def wait_for(self, condition: Condition, timeout_s: float = WAIT_SECONDS) -> object:
        """Wait until `condition(journal)` returns a true value, and return that value.

        condition: a plain function, called now and after each event that can make it true, such as a request, throttle or append. Its argument is the
        cluster's `journal`, the list of requests, throttles and other events. Raises the exception of the condition, if it raises one. After
        `timeout_s` seconds raises TimeoutError, whose message contains the last requests.
        """
        check_function("condition", condition)
        journal = self.state.journal
        return self._wait(lambda: condition(journal) or None, lambda: "nothing fulfilled the condition", timeout_s)

    def wait_for_group(
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
        return cast(GroupSeen, self._wait_state(groups.for_group(group_id, members, state), timeout_s))

    def move_coordinator(self, group_id: str, broker_id: int, timeout_s: float = WAIT_SECONDS) -> GroupSeen:
        """Move the coordinator of a group to another broker, wait until that broker has loaded the group, and return the group.

        The broker becomes the leader of the group's partition of `__consumer_offsets`, so that other groups of this partition move, too. Raises
        ValueError if there is no such group or broker, or if the broker has no in-sync replica of the partition, and TimeoutError if the group is
        not loaded after `timeout_s` seconds.
        """
        check_seconds("timeout_s", timeout_s)
        self._lead_group(group_id, broker_id)
        return cast(GroupSeen, self._wait_state(groups.for_coordinator(group_id, broker_id), timeout_s))

    def wait_for_transaction(
        self, transactional_id: str, state: str, timeout_s: float = WAIT_SECONDS
    ) -> TransactionSeen:
        """Wait until a transactional id has the state `state`, such as "CompleteCommit", and return its transaction.

        Raises ValueError for an unknown state, and TimeoutError after `timeout_s` seconds.
        """
        return cast(TransactionSeen, self._wait_state(transactions.for_transaction(transactional_id, state), timeout_s))

    def wait_for_records(
        self, topic: str, count: int, partition: int | None = None, timeout_s: float = WAIT_SECONDS
    ) -> list[StoredRecord]:
        """Wait until a topic, or one partition, has at least `count` records, and return all its records.

        partition: None for the whole topic. Raises TimeoutError after `timeout_s` seconds.
        """
        return cast(list[StoredRecord], self._wait_state(groups.for_records(topic, count, partition), timeout_s))

    def _wait_state(self, wait: Wait, timeout_s: float) -> object:
        state = self.state
        return self._wait(lambda: wait.reached(state), lambda: wait.describe(state), timeout_s)

    def _wait(self, condition: Callable[[], object | None], describe: Callable[[], str], timeout_s: float) -> object:
        check_seconds("timeout_s", timeout_s)
        self._refuse_in_condition()
        fulfilled: Future[object] = Future()
        watch = Watch(condition, fulfilled)

        events = self.state.events

        def begin() -> None:
            self._running_server()
            events.attach(watch)
            watch.check()

        self._run(begin)
        try:
            return fulfilled.result(timeout_s)
        except TimeoutError:
            if fulfilled.done():
                raise
            raise timed_out(timeout_s, self._run(describe), self.explain()) from None
        finally:
            assert self._loop is not None
            assert self._thread is not None
            _detach(watch, events, self._loop, self._thread)


def _detach(watch: Watch, events: Events, loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    """Detach the observer of a finished wait from the cluster's events. Returns when it is detached or the broker's thread has ended.

    watch: the observer, which checked the condition of the wait after each event. loop, thread: the broker's event loop and its thread; the
    observer is detached in this thread.
    """
    detached = threading.Event()

    def detach() -> None:
        events.detach(watch)
        detached.set()

    with contextlib.suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(detach)
    while not detached.wait(0.05) and thread.is_alive():
        pass


async def _finish_calls() -> None:
    """Wait until the calls that other threads run in the broker's loop have returned, at most one second. Call it before the loop stops."""
    calls = asyncio.all_tasks() - {asyncio.current_task()}
    if calls:
        await asyncio.wait(calls, timeout=1)
        await asyncio.sleep(0)


def _stopped() -> RuntimeError:
    return RuntimeError("the cluster is stopped: it stopped during the call")


def cluster(
    brokers: int = 1,
    topics: Topics | None = None,
    config: Mapping[str, object] | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    **options: Unpack[Options],
) -> TestCluster:
    """Return a cluster that runs in a thread. Use it in `with`, with `start()` and `stop()`, in `async with`, or as a decorator.

    topics: maps names to numbers of partitions, or to the arguments of `create_topic`. config: maps Kafka's broker settings to values;
    `1.broker.rack` is the setting `broker.rack` of broker 1 only. host, port: the first broker listens on `port`, the others on the next ports; with
    port 0, each gets a free port. options: see `Options`. Raises TypeError or ValueError for invalid arguments; settings are checked when the cluster
    starts.
    """
    return TestCluster(arguments_of(brokers, topics, config, host, port, options))
