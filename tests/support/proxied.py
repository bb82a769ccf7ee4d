"""The recording proxy in a thread, in front of a broker."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kafkaproto.broker.proxy.server import Proxy


@contextmanager
def proxied(to: str, trace: Path, port: int = 0) -> Iterator[str]:
    """Run a proxy in a thread and yield its address for clients."""
    host, _, number = to.rpartition(":")
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def run(work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    async def made() -> Proxy:
        return Proxy((host, int(number)), trace, port=port)

    proxy = run(made())
    try:
        run(proxy.start())
        try:
            yield proxy.bootstrap
        finally:
            run(proxy.stop())
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
