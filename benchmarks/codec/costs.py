"""The cost of the codec before the first message: its import, and the first use of an API. Measured in fresh processes, in alternation.

usage: python -m benchmarks.codec.costs API_KEY VERSION

Prints two times in seconds: this codec's and that of the library `construct` for the first use of one API version (see `first_use`).
"""

from __future__ import annotations

import statistics
import subprocess
import sys

import pyperf

MAX_IMPORT_RATIO = 0.5
MAX_FIRST_USE_RATIO = 3.0
TIMED_IMPORT = "import time; begun = time.perf_counter(); import {}; print(time.perf_counter() - begun)"
PAIRS = [("Produce", 0, 9), ("Fetch", 1, 11), ("Metadata", 3, 12), ("OffsetFetch", 9, 8)]


def rows(repeats: int) -> list[tuple[str, float, float]]:
    """Return (name of the measurement, ratio, limit) for the import of the codec and for the first use of some APIs.

    ratio: the time of this codec divided by that of the library `construct`, as the median over all repeats. limit: the largest allowed ratio.
    repeats: how often each cost is measured.
    """
    names = ("kafkaproto", "construct")
    imports = [tuple(float(run("-c", TIMED_IMPORT.format(name))[0]) for name in names) for _ in range(repeats)]
    measurements = [("`import kafkaproto`, against `import construct`", ratio(imports), MAX_IMPORT_RATIO)]
    for name, key, version in PAIRS:
        uses = [tuple(map(float, run("-m", __name__, str(key), str(version)))) for _ in range(repeats)]
        title = f"first use of {name} v{version}, against `Struct.compile()` of request and response"
        measurements.append((title, ratio(uses), MAX_FIRST_USE_RATIO))
    return measurements


def ratio(pairs: list[tuple[float, ...]]) -> float:
    return statistics.median(first / second for first, second in pairs)


def run(*arguments: str) -> list[str]:
    completed = subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.PIPE, text=True)
    return completed.stdout.split()


def first_use(key: int, version: int) -> tuple[float, float]:
    """Return (this codec's time, the time of the library construct) in seconds to be ready for one API version.

    key, version: API key and version.

    This codec imports and compiles its functions; construct compiles the layouts of the request and the response.
    """
    import construct

    from benchmarks.codec.stock import stock
    from kafkaproto.api import codec

    start = pyperf.perf_counter()
    api = codec(key, version)
    _ = api.decode_request, api.encode_request, api.decode_response, api.encode_response
    ours = pyperf.perf_counter() - start
    layout = construct.Struct("request" / stock(api.request), "response" / stock(api.response))
    start = pyperf.perf_counter()
    layout.compile()
    return ours, pyperf.perf_counter() - start


if __name__ == "__main__":
    print(*first_use(int(sys.argv[1]), int(sys.argv[2])))
