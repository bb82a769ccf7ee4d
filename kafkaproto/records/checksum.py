"""CRC-32C, the checksum of record batches. Always call it as `checksum.crc32c(...)`.

The package that computes it is imported when the first checksum is computed, because the import would take a tenth of a broker's start time.
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
