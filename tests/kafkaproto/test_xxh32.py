"""xxHash32 compared with published vectors, and the header checksums of lz4 frames."""

from __future__ import annotations

import lz4.frame
import pytest

from kafkaproto.records.lz4_header import with_broken_checksum, with_right_checksum
from kafkaproto.records.xxh32 import xxh32


@pytest.mark.parametrize(
    ("data", "seed", "expected"),
    [
        (b"", 0, 0x02CC5D05),
        (b"", 0x9E3779B1, 0x36B78AE7),
        (b"a", 0, 0x550D7456),
        (b"abc", 0, 0x32D153FF),
        (b"Nobody inspects the spammish repetition", 0, 0xE2293B2F),
    ],
)
def test_xxhash32_of_the_published_test_inputs_is_the_published_hash(data: bytes, seed: int, expected: int) -> None:
    assert xxh32(data, seed) == expected


@pytest.mark.parametrize("store_size", [True, False])
def test_fixing_a_wrong_lz4_header_checksum_restores_the_original_frame(store_size: bool) -> None:
    frame = lz4.frame.compress(b"data " * 100, store_size=store_size)
    at = 14 if store_size else 6
    broken = with_broken_checksum(frame)
    assert broken != frame and broken[:at] + frame[at : at + 1] + broken[at + 1 :] == frame
    with pytest.raises(RuntimeError, match="header"):
        lz4.frame.decompress(broken)
    assert with_right_checksum(broken) == frame


def test_fixing_the_lz4_header_checksum_does_not_change_a_truncated_frame() -> None:
    frame = lz4.frame.compress(b"", store_size=False)
    for cut in range(7):
        assert with_right_checksum(frame[:cut]) == frame[:cut]
