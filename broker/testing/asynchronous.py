"""A cluster in the loop that runs already: for asyncio programs and tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TypeVar, Unpack

from kafkaproto.broker.server.server import Server
from kafkaproto.broker.testing.handle import Condition, Handle
from kafkaproto.broker.testing.options import Options, Topics, new_cluster
from kafkaproto.broker.testing.waiting import JournalWatch

T = TypeVar("T")


class AsyncClock:
    """The cluster's clock: the same as in a thread, but `advance` is awaited."""

    def __init__(self, owner: AsyncTestCluster) -> None:
        self._owner = owner

    def now_ms(self) -> int:
        return self._owner.state.clock.now_ms()

    async def advance(self, delta_ms: int) -> None:
        """Let `delta_ms` pass at once, each timer at its exact time."""
        await self._owner.server.loop.advance(delta_ms)


class AsyncTestCluster(Handle):
    """Made by `async_cluster()`. Its methods act at once; `clock.advance`, `settled` and `wait_for` are awaited."""

    def __init__(self, server: Server, topics: Topics) -> None:
        super().__init__(server, topics)
        self.clock = AsyncClock(self)

    def _run(self, action: Callable[[], T]) -> T:
        return self.server.loop.call(action)

    async def settled(self) -> None:
        """After `broker(i).start()`: its listeners are open again."""
        await self.server.settled()

    async def wait_for(self, condition: Condition, timeout_s: float = 10.0) -> object:
        """Wait until `condition(journal)` is true and return what it returned; looked at after every entry.

        Raises what the condition raises, and TimeoutError with the last requests.
        """
        journal = self.state.journal
        found: asyncio.Future[object] = asyncio.get_running_loop().create_future()

        def look() -> None:
            if found.done():
                return
            try:
                if value := condition(journal):
                    found.set_result(value)
            except Exception as error:  # noqa: BLE001 - raised to the one who waits
                found.set_exception(error)

        watch = JournalWatch(look)
        self.state.events.attach(watch)
        try:
            look()
            return await asyncio.wait_for(found, timeout_s)
        except TimeoutError:
            raise TimeoutError(
                f"nothing fulfilled the condition within {timeout_s} s; last requests:\n{self.explain()}"
            ) from None
        finally:
            self.state.events.detach(watch)


@asynccontextmanager
async def async_cluster(
    brokers: int = 1,
    topics: Topics | None = None,
    config: Mapping[str, object] | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    **options: Unpack[Options],
) -> AsyncIterator[AsyncTestCluster]:
    """A running cluster in the running loop; the arguments are those of `kafkaproto.testing.cluster`."""
    state = new_cluster(brokers, config, options)
    server = Server(state, host, port, trace=options.get("trace"))
    await server.start()
    try:
        made = AsyncTestCluster(server, topics or {})
        made.create_topics()
        yield made
    finally:
        await server.stop()
