"""Cuts length-prefixed frames out of a stream, in place. Knows bytes and lengths only: no header, no socket, no time.

All connections of a loop share one receive buffer. A connection owns memory only for what it cannot handle yet, and that grows
with the bytes that arrived, never to the length that was announced (W-1): at most twice the bytes that wait and a constant.
A frame is a view that is valid until the next call.
"""

from __future__ import annotations

SHARED_BYTES = 256 * 1024
LENGTH_BYTES = 4
FIRST_BUFFER_BYTES = 4 * 1024
"""What a connection begins with for the beginning of a frame, so that a length that came alone is not read on byte by byte."""
SPARE_BYTES = 4 * 1024 * 1024
KEPT_BUFFER_BYTES = 2 * 1024 * 1024
"""A larger buffer is given up as soon as less than half of it is needed, and is no spare."""
SURPLUS_BYTES = 64 * 1024
"""By so much a spare may be larger than what was asked for."""


class FrameError(Exception):
    """The announced length is negative or above socket.request.max.bytes: the connection is to be closed (W-1)."""


class BufferPool:
    """The shared receive buffer of one loop, and some spare buffers so that large frames do not pay for fresh memory each time."""

    def __init__(self, shared_bytes: int = SHARED_BYTES) -> None:
        self.shared = memoryview(bytearray(shared_bytes))
        self._spares: list[bytearray] = []
        self.spare_bytes = 0

    def take(self, at_least: int) -> bytearray:
        """A buffer of `at_least` bytes; a spare one may be larger by SURPLUS_BYTES."""
        for i, spare in enumerate(self._spares):
            if at_least <= len(spare) <= at_least + SURPLUS_BYTES:
                del self._spares[i]
                self.spare_bytes -= len(spare)
                return spare
        return bytearray(at_least)

    def give_back(self, buffer: bytearray) -> None:
        size = len(buffer)
        if size <= KEPT_BUFFER_BYTES:
            self._spares.append(buffer)
            self.spare_bytes += size
            while self.spare_bytes > SPARE_BYTES:
                self.spare_bytes -= len(self._spares.pop(0))  # the oldest fits what is read now the least


class FrameReader:
    """`get_buffer()` → the caller fills it → `received(n)` → `next_frame()` until None → `keep_rest()`."""

    __slots__ = ("_end", "_max_bytes", "_own", "_own_view", "_pool", "_start", "_view")

    def __init__(self, pool: BufferPool, max_frame_bytes: int) -> None:
        self._pool = pool
        self._max_bytes = max_frame_bytes
        self._own: bytearray | None = None
        self._own_view: memoryview | None = None
        self._view = pool.shared
        self._start = 0
        self._end = 0

    @property
    def waiting_bytes(self) -> int:
        """Bytes that have come and are not handled."""
        return self._end - self._start

    @property
    def owned_bytes(self) -> int:
        """Memory that this connection alone pays for."""
        return 0 if self._own is None else len(self._own)

    def get_buffer(self) -> memoryview:
        """Where the next bytes go; never empty."""
        own = self._own_view
        if own is None:
            return self._pool.shared
        if self._end == len(own):
            self._make_room()
            own = self._own_view
            assert own is not None
        return own[self._end :]

    def received(self, count: int) -> None:
        if self._own is None:
            self._view = self._pool.shared
            self._start = 0
            self._end = count
        else:
            self._end += count

    def next_frame(self) -> memoryview | None:
        """The next whole frame without its length, or None. Raises FrameError as soon as the four length bytes are there."""
        start, end = self._start, self._end
        if end - start < LENGTH_BYTES:
            return None
        view = self._view
        length = int.from_bytes(view[start : start + LENGTH_BYTES], "big", signed=True)
        if length < 0 or length > self._max_bytes:
            raise FrameError(f"a frame of {length} bytes was announced; 0 to {self._max_bytes} are allowed")
        stop = start + LENGTH_BYTES + length
        if stop > end:
            return None
        self._start = stop
        return view[start + LENGTH_BYTES : stop]

    def has_frame(self) -> bool:
        """Whether `next_frame` would return one, or raise."""
        start, end = self._start, self._end
        if end - start < LENGTH_BYTES:
            return False
        length = int.from_bytes(self._view[start : start + LENGTH_BYTES], "big", signed=True)
        return not 0 <= length <= self._max_bytes or end - start >= LENGTH_BYTES + length

    def keep_rest(self) -> None:
        """Before anybody else uses the shared buffer: move what is left into memory of our own, or let that memory go."""
        left = self._end - self._start
        if self._own is None:
            if left:
                rest = self._view[self._start : self._end]
                self._adopt(self._pool.take(self._room_for(left)), rest)
            else:
                self._start = self._end = 0
        elif not left:
            self.release()
        elif len(self._own) > KEPT_BUFFER_BYTES and 2 * left < len(self._own):
            self._adopt(self._pool.take(self._room_for(left)), self._view[self._start : self._end])

    def release(self) -> None:
        """Let all memory go: nothing is waiting, or the connection is over."""
        own, view = self._own, self._own_view
        self._own = self._own_view = None
        self._view = self._pool.shared
        self._start = self._end = 0
        if own is not None and view is not None:
            self._pool.give_back(own)

    def _room_for(self, left: int) -> int:
        """Twice what has arrived, or less where the frame ends sooner."""
        wanted = max(2 * left, FIRST_BUFFER_BYTES)
        if left >= LENGTH_BYTES:
            start = self._start
            whole = LENGTH_BYTES + int.from_bytes(self._view[start : start + LENGTH_BYTES], "big")
            wanted = max(left, min(whole, wanted))
        return wanted + 64

    def _make_room(self) -> None:
        assert self._own is not None
        left = self._end - self._start
        rest = self._view[self._start : self._end]
        old = self._own
        if self._start >= left and self._start >= len(old) // 2:
            self._view[0:left] = bytes(rest)
            self._start, self._end = 0, left
            return
        self._adopt(self._pool.take(self._room_for(left)), rest)
        self._pool.give_back(old)

    def _adopt(self, buffer: bytearray, rest: memoryview) -> None:
        view = memoryview(buffer)
        left = len(rest)
        view[:left] = rest
        self._own, self._own_view, self._view = buffer, view, view
        self._start, self._end = 0, left
