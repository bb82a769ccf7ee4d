"""What the codec costs before the first message: its import, and the first use of an API. In fresh processes, in turn.

usage: python -m benchmarks.codec.costs API_KEY VERSION     (prints two times in seconds: ours and stock construct's)
"""

from __future__ import annotations

import statistics
import subprocess
import sys

import pyperf

IMPORT_WANTED = 0.5
FIRST_USE_WANTED = 3.0
TIMED_IMPORT = "import time; begun = time.perf_counter(); import {}; print(time.perf_counter() - begun)"
PAIRS = [("Produce", 0, 9), ("Fetch", 1, 11), ("Metadata", 3, 12), ("OffsetFetch", 9, 8)]


def rows(repeats: int) -> list[tuple[str, float, float]]:
    """What, the ratio, and the most that it may be."""
    names = ("kafkaproto", "construct")
    imports = [tuple(float(run("-c", TIMED_IMPORT.format(name))[0]) for name in names) for _ in range(repeats)]
    found = [("`import kafkaproto`, against `import construct`", ratio(imports), IMPORT_WANTED)]
    for name, key, version in PAIRS:
        uses = [tuple(map(float, run("-m", __name__, str(key), str(version)))) for _ in range(repeats)]
        title = f"first use of {name} v{version}, against `Struct.compile()` of request and response"
        found.append((title, ratio(uses), FIRST_USE_WANTED))
    return found


def ratio(pairs: list[tuple[float, ...]]) -> float:
    return statistics.median(first / second for first, second in pairs)


def run(*arguments: str) -> list[str]:
    done = subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.split()


def first_use(key: int, version: int) -> tuple[float, float]:
    """Seconds for the four functions of a pair, its module's import included; and for construct's compiler."""
    import construct

    from benchmarks.codec.stock import stock
    from kafkaproto.api import codec

    begun = pyperf.perf_counter()
    api = codec(key, version)
    _ = api.decode_request, api.encode_request, api.decode_response, api.encode_response
    ours = pyperf.perf_counter() - begun
    layout = construct.Struct("request" / stock(api.request), "response" / stock(api.response))
    begun = pyperf.perf_counter()
    layout.compile()
    return ours, pyperf.perf_counter() - begun


if __name__ == "__main__":
    print(*first_use(int(sys.argv[1]), int(sys.argv[2])))
