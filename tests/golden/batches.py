"""Record batches for golden runs. Compressed ones are committed as bytes, because a compressor's output depends on its version."""

from __future__ import annotations

from base64 import b85decode
from typing import Any

from kafkaproto.records.batch import NewRecord, build_batch
from kafkaproto.records.compression import Compression
from kafkaproto.records.message_set import build_message_set

TIMESTAMP_MS = 1_700_000_000_000


def values(count: int, size: int = 20) -> list[bytes]:
    return [f"value {i} ".encode().ljust(size, b".") for i in range(count)]


def records(*record_values: bytes | None, keys: bool = False, headers: bool = False) -> list[NewRecord]:
    """Return one record per value, 10 ms apart."""
    return [
        NewRecord(
            value,
            f"key-{i}".encode() if keys else None,
            TIMESTAMP_MS + 10 * i,
            (("trace", b"%d" % i), ("empty", None)) if headers else (),
        )
        for i, value in enumerate(record_values)
    ]


def batch(*record_values: bytes | None, keys: bool = False, headers: bool = False, **options: Any) -> bytes:
    return build_batch(records(*(record_values or (b"v",)), keys=keys, headers=headers), **options)


def message_set(*record_values: bytes | None, magic: int = 1, keys: bool = False) -> bytes:
    return build_message_set(records(*(record_values or (b"v",)), keys=keys), magic=magic)


def make_compressed() -> dict[str, bytes]:
    """Compress the batches of `COMPRESSED`; used once to create it."""
    return {
        kind.name.lower(): batch(*values(12, 60), keys=True, compression=kind)
        for kind in Compression
        if kind is not Compression.NONE
    }


COMPRESSED = {
    name: b85decode(text)
    for name, text in {
        "gzip": (
            "00000000000002t|NsC00+9prcmM$a000XB00E27<!Ar^00E27<!EmI|NsC0|NsC0|NsC0{{R303?GXK00000000A>(#r|LU=T&&"
            "8Id3%h=kxeOE*gXyaN_t3xZkcR!MpYL9D<cEW#ozM!b#|a8Ci>>WnHP{;}=XNq5<w&TX8;8zLE1q6r{pkfWj16i{kVN<&)@P-aj@"
            "L%SKE+@PF>4nCm5pn`_F08nXA$w60@LFbSvlPX%e>jF}3QcX(_4IwoqHJo%)d1@43%HQ6O`ujt@bor(JgHwmg8~-fkTyp~e00"
        ),
        "snappy": (
            "00000000000003C|NsC00^`sz+5iFo000XB00E27<!Ar^00E27<!EmI|NsC0|NsC0|NsC0{{R3041!ZmK~PXx000000RR910RR91"
            "#`6YHjsXAw019hmc`Yz_c42IFWgsvhF3JG_6abC^02BfRNdPeoNdPh8NdN>W1O-U|G7U)pGU7=91Uv=>Ndz-^3EKcO;z<AmPzVJ{"
            "05lCr05sxB00d+T1xWxk4M_ks;z<Amcnk$e05%Ot05;Z102Gh`0E__+1xf%n4N3qv;z|GrpaBpCN&q+wN&q<GN&pD70TKmD067gx"
            "06Er502q=10LTFp3_;!iF;U+DG1A}y0ZRzn0Tu~MRpHX&0ssI"
        ),
        "lz4": (
            "00000000000003D|NsC00^U@WHvj_w000XB00E27<!Ar^00E27<!EmI|NsC0|NsC0|NsC0{{R303<M%g7+^qx%m4rY{|1f$0000A"
            "Yh`&YFnD%hY;|QIFd!}g03cxijsXA^0!aW9F-ZU)F-ZU>At(e%024Av03R|*045<k21x)DGf4m+Gf4m@Ay5cO024Gx03S3-045=1"
            "3P}JHHAw&;HAw&_A$SZ)024Mz03S9<03%_L0RW5v4oUzMH%b5>H%b5|F`xkuN&pi$N&p`?N&qG?v;h)I024V%03SI@03&dc0RYGW"
            "6b#-16fxfdA2HwpB60wd0RY?q7E1sH;Q|lh0v=E<E-o$r00000"
        ),
        "zstd": (
            "00000000000002e|NsC00%`k3EC2)m000XB00E27<!Ar^00E27<!EmI|NsC0|NsC0|NsC0{{R303@EiP{a|wfy#xS61&#p#000VW"
            "WqB<ycy?iIb!8whAT9uo0RR*NF)=6vGBP{{Gc!;KG&E!iH8pq)Ha3s}0E__+H#d+00H6U7I5@Nc5;-}N0RYGW6bvyj+yNFbF(V+b"
            "a|{PM@-E;wWP!%zIdRX{-NT#^#?H;LMu2lfxT{;JopY?ve8gP=?Jy?<^uwGG&<=A#Kp)0VFhYrwF#!"
        ),
    }.items()
}
"""Codec name to a batch of twelve records with keys."""
