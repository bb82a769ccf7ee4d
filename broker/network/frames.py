"""Splitting of a stream of bytes into length-prefixed frames, in place.

All connections of an event loop share one receive buffer. A connection owns memory only for bytes that it cannot handle yet. That memory
grows with the bytes that arrived, not with the announced length (W-1): it is at most twice the unhandled bytes plus a constant. A frame
is a view, valid until the next call of a method of its `FrameReader`. This module does not depend on headers, sockets or time.
"""

from __future__ import annotations

SHARED_BYTES = 256 * 1024
LENGTH_BYTES = 4
HEAD_BYTES = 8
FIRST_BUFFER_BYTES = 4 * 1024
"""The first size in bytes of a connection's buffer for an incomplete frame, unless the whole frame is known to be smaller."""
SPARE_BYTES = 4 * 1024 * 1024
KEPT_BUFFER_BYTES = 2 * 1024 * 1024
"""The size in bytes above which the buffer of a connection counts as large.

A large buffer is replaced by a smaller one as soon as the unhandled bytes fill less than half of it, and is not kept for reuse.
"""
SURPLUS_BYTES = 64 * 1024
"""A spare buffer (one kept for reuse) is not reused if it is larger than needed by more than this number of bytes."""


class FrameError(Exception):
    """Raised if the announced length of a frame is negative or exceeds socket.request.max.bytes; the connection must be closed (W-1)."""


class BufferPool:
    """The shared receive buffer of one event loop, and a few spare buffers so that large frames do not need new memory each time."""

    def __init__(self, shared_bytes: int = SHARED_BYTES) -> None:
        self.shared = memoryview(bytearray(shared_bytes))
        self._spares: list[bytearray] = []
        self.spare_bytes = 0

    def take(self, at_least: int) -> bytearray:
        """Return a buffer of at least `at_least` bytes, and at most SURPLUS_BYTES more. The caller passes it to `give_back` after use."""
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
                self.spare_bytes -= len(self._spares.pop(0))  # the oldest spare fits the current frames least


class FrameReader:
    """Splits the received bytes of one connection into frames.

    For every read from the socket, the caller writes `n` bytes into `get_buffer()`, calls `received(n)`, then `next_frame()` until it returns None,
    then `keep_rest()`.
    """

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
        """Return the number of bytes that were received and not handled yet."""
        return self._end - self._start

    @property
    def owned_bytes(self) -> int:
        """Return the size in bytes of the connection's own buffer; the shared receive buffer does not count."""
        return 0 if self._own is None else len(self._own)

    def get_buffer(self) -> memoryview:
        """Return the memory into which the next bytes are to be received. It is never empty."""
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
        """Return the next whole frame without its length, or None if none has arrived completely.

        Raises FrameError as soon as the four bytes of an invalid length have arrived.
        """
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

    def head(self) -> bytes:
        """Return the first bytes of the next frame that have arrived, at most eight: length, API key and version."""
        return bytes(self._view[self._start : min(self._end, self._start + HEAD_BYTES)])

    def has_frame(self) -> bool:
        """Return whether `next_frame` would return a frame or raise FrameError, instead of returning None."""
        start, end = self._start, self._end
        if end - start < LENGTH_BYTES:
            return False
        length = int.from_bytes(self._view[start : start + LENGTH_BYTES], "big", signed=True)
        return not 0 <= length <= self._max_bytes or end - start >= LENGTH_BYTES + length

    def keep_rest(self) -> None:
        """Copy unhandled bytes from the shared buffer into a buffer of this connection. Without unhandled bytes, free the connection's buffer."""
        unhandled_bytes = self._end - self._start
        if self._own is None:
            if unhandled_bytes:
                unhandled = self._view[self._start : self._end]
                self._adopt(self._pool.take(self._room_for(unhandled_bytes)), unhandled)
            else:
                self._start = self._end = 0
        elif not unhandled_bytes:
            self.release()
        elif len(self._own) > KEPT_BUFFER_BYTES and 2 * unhandled_bytes < len(self._own):
            self._adopt(self._pool.take(self._room_for(unhandled_bytes)), self._view[self._start : self._end])

    def release(self) -> None:
        """Free all memory that this reader holds. Call it when all bytes were handled, or when the connection is closed."""
        own, view = self._own, self._own_view
        self._own = self._own_view = None
        self._view = self._pool.shared
        self._start = self._end = 0
        if own is not None and view is not None:
            self._pool.give_back(own)

    def _room_for(self, left: int) -> int:
        """Return the size in bytes of the buffer for an incomplete frame of which `left` bytes have arrived.

        The size is 64 + max(2 * `left`, FIRST_BUFFER_BYTES). Once the frame's length has arrived, the size is at most 64 + the frame's whole size.
        """
        size = max(2 * left, FIRST_BUFFER_BYTES)
        if left >= LENGTH_BYTES:
            start = self._start
            frame_bytes = LENGTH_BYTES + int.from_bytes(self._view[start : start + LENGTH_BYTES], "big")
            size = max(left, min(frame_bytes, size))
        return size + 64

    def _make_room(self) -> None:
        assert self._own is not None
        unhandled_bytes = self._end - self._start
        unhandled = self._view[self._start : self._end]
        old_buffer = self._own
        if self._start >= unhandled_bytes and self._start >= len(old_buffer) // 2:
            self._view[0:unhandled_bytes] = bytes(unhandled)
            self._start, self._end = 0, unhandled_bytes
            return
        self._adopt(self._pool.take(self._room_for(unhandled_bytes)), unhandled)
        self._pool.give_back(old_buffer)

    def _adopt(self, buffer: bytearray, rest: memoryview) -> None:
        view = memoryview(buffer)
        size = len(rest)
        view[:size] = rest
        self._own, self._own_view, self._view = buffer, view, view
        self._start, self._end = 0, size
