"""XXH3 compared with the hashes of the reference library (xxhash 4.1.0 for Python) at the boundaries between its methods."""

from __future__ import annotations

import pytest

from kafkaproto.xxh3 import xxh3_64


@pytest.mark.rule("GO-8")
@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (0, 0x2D06800538D394C2),
        (1, 0x13E608BC156DEFED),
        (2, 0x1C9074B93943B86C),
        (3, 0xA9088DDA485B481C),
        (4, 0x6D9253B16C8B1ED3),
        (8, 0x60539DB630471163),
        (9, 0xFEFF668361D723A8),
        (16, 0xB8C859B0F030B585),
        (17, 0x714A04408E79B80F),
        (32, 0x19FF4EE1D6BA1A55),
        (33, 0x3E44983AD21679C8),
        (64, 0x287EB1FA9E4BE2C1),
        (65, 0x829218DE4D798646),
        (96, 0xF084E7CFBC624743),
        (97, 0x1DAA83271A8E7B7C),
        (128, 0x67425A03650261BF),
        (129, 0xC664BF3311C6ABC4),
        (144, 0x606A17FA700BB932),
        (240, 0x64556DC6B462A6CF),
        (241, 0x8BEADD3A8874FE17),
        (256, 0x3C38817F6D79C0DA),
        (1024, 0x9B81661C641C72B1),
        (1025, 0x806C2072ED713576),
        (1088, 0x2F8781E01841F0DA),
        (2049, 0x55AED42C9F1554B6),
        (5000, 0x799AADDD7339581D),
    ],
)
def test_xxh3_hash_of_0_to_5000_bytes_is_the_hash_that_the_reference_library_gives(size: int, expected: int) -> None:
    assert xxh3_64(bytes(i * 7 + 3 & 255 for i in range(size))) == expected
