"""A cluster in a thread with its own loop: for tests, scripts and notebooks that are not asyncio themselves."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TypeVar, Unpack

from kafkaproto.broker.server.server import Server
from kafkaproto.broker.testing.handle import Condition, Handle
from kafkaproto.broker.testing.options import Options, Topics, new_cluster
from kafkaproto.broker.testing.waiting import JournalWatch

T = TypeVar("T")
WAIT_SECONDS = 10.0


class ClockHandle:
    """The cluster's clock, from any thread."""

    def __init__(self, owner: TestCluster) -> None:
        self._owner = owner

    def now_ms(self) -> int:
        return self._owner.state.clock.now_ms()

    def advance(self, delta_ms: int) -> None:
        """Let `delta_ms` pass at once: throttles, long polls, sessions and elections fire at their exact times; returns when all is done."""
        self._owner.wait(self._owner.server.loop.advance(delta_ms))


async def _thread_id() -> int:
    return threading.get_ident()


class TestCluster(Handle):
    """Made by `cluster()`. Methods may be called from any thread, and from the conditions of `wait_for`."""

    __test__ = False  # pytest: not a test class

    def __init__(self, server: Server, topics: Topics, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(server, topics)
        self.clock = ClockHandle(self)
        self._loop = loop
        self._thread_id = self.wait(_thread_id())

    def wait(self, coroutine: Coroutine[object, object, T]) -> T:
        """Run a coroutine of the broker in its loop and wait for it. Raises RuntimeError once the cluster has been stopped."""
        if self._loop.is_closed():
            coroutine.close()
            raise RuntimeError("the cluster is stopped: use it inside its `with` block")
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def _run(self, action: Callable[[], T]) -> T:
        if threading.get_ident() == self._thread_id:
            # From a condition of `wait_for`, which is looked at in the broker's own loop: waiting for it would wait for ever.
            return self.server.loop.call(action)

        async def act() -> T:
            result = self.server.loop.call(action)
            await self.server.settled()
            return result

        return self.wait(act())

    def wait_for(self, condition: Condition, timeout_s: float = WAIT_SECONDS) -> object:
        """Wait until `condition(journal)` is true and return what it returned; looked at after every entry, so no test sleeps.

        Raises what the condition raises, and TimeoutError with the last requests in its text.
        """
        journal = self.state.journal
        found: Future[object] = Future()

        def look() -> None:
            if found.done():
                return
            try:
                if value := condition(journal):
                    found.set_result(value)
            except Exception as error:  # noqa: BLE001 - raised to the one who waits
                found.set_exception(error)

        watch = JournalWatch(look)

        def begin() -> None:
            self.state.events.attach(watch)
            look()

        self._run(begin)
        try:
            return found.result(timeout_s)
        except TimeoutError:
            if found.done():
                raise
            raise TimeoutError(
                f"nothing fulfilled the condition within {timeout_s} s; last requests:\n{self.explain()}"
            ) from None
        finally:
            self._run(lambda: self.state.events.detach(watch))


@contextmanager
def cluster(
    brokers: int = 1,
    topics: Topics | None = None,
    config: Mapping[str, object] | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    **options: Unpack[Options],
) -> Iterator[TestCluster]:
    """A running cluster in a thread.

    topics: name to partitions, or to the arguments of `create_topic`. config: Kafka's broker settings, `1.broker.rack` for one broker.
    options, see `Options`: clock "jump" (wall time that `clock.advance` moves on), "manual" (stands still) or "system"; semantics, …
    Raises ConfigError, ValueError.
    """
    state = new_cluster(brokers, config, options)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="kafkaproto", daemon=True)
    thread.start()

    async def start() -> Server:
        server = Server(state, host, port, trace=options.get("trace"))
        await server.start()
        return server

    try:
        server = asyncio.run_coroutine_threadsafe(start(), loop).result()
        try:
            made = TestCluster(server, topics or {}, loop)
            made.create_topics()
            yield made
        finally:
            asyncio.run_coroutine_threadsafe(server.stop(), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
