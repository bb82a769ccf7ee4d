"""CRC-32C, which every record batch carries. Always called as `checksum.crc32c(...)`.

The package that computes it is imported at the first checksum: its import costs a broker a tenth of its start.
"""

from __future__ import annotations

from collections.abc import Callable

Buffer = bytes | bytearray | memoryview


def _first(data: Buffer) -> int:
    global crc32c
    from crc32c import crc32c as computed

    crc32c = computed
    return crc32c(data)


crc32c: Callable[[Buffer], int] = _first
