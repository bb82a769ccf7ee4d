"""CRC-32C, the checksum of record batches. Import this module and call `checksum.crc32c(...)`, instead of importing the function.

The package that computes the checksum is imported at the first call, because the import would take a tenth of a broker's start time. This call
replaces the function in this module by the package's; a function imported by name would not be replaced, and so would be slower.
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
