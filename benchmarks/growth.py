"""How the cost of a request grows: with its partitions, with the connections, with the length of the log. Writes a picture and BENCHMARKS.md.

Every number is a multiple of the first one of its row, so that flat is flat and linear is linear on any machine.

usage: python -m benchmarks.growth [--quick]      (needs the extra "plots")
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import raw_client as client
from benchmarks.race import ours, running
from benchmarks.report import write_section
from kafkaproto.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kafkaproto.messages.metadata import MetadataRequest

PICTURE = Path(__file__).with_name("growth.png")
MB = 1_000_000
Points = dict[int, float]


def seconds_each(work: Callable[[], object], least: int = 15, budget_s: float = 1.0) -> float:
    """The median of many calls."""
    times: list[float] = []
    begun = time.perf_counter()
    while len(times) < least or time.perf_counter() - begun < budget_s:
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def by_partitions(address: str, counts: list[int]) -> Points:
    """Seconds of a full fetch of so many partitions without records."""
    found = {}
    for count in counts:
        topic = client.new_topic(address, count)
        asked = [FetchPartition(i, -1, 0, -1, -1, 1024) for i in range(count)]
        data = client.frame(11, FetchRequest(max_bytes=MB, topics=[FetchTopic(topic.name, partitions=asked)]))
        with client.connect(address) as sock:

            def work(sock=sock, data=data) -> None:  # type: ignore[no-untyped-def]
                sock.sendall(data)
                client.read_answer(sock)

            found[count] = seconds_each(work)
        client.delete_topic(address, topic.name)
    return found


def by_connections(address: str, counts: list[int]) -> Points:
    """Seconds of a round trip on one connection while so many others are open, and idle."""
    found, others = {}, []
    data = client.frame(1, MetadataRequest([]))
    try:
        for count in counts:
            while len(others) < count:
                others.append(client.connect(address))
                others[-1].sendall(data)
                client.read_answer(others[-1])

            def work(sock=others[0]) -> None:  # type: ignore[no-untyped-def]
                sock.sendall(data)
                client.read_answer(sock)

            found[count] = seconds_each(work, least=500)
    finally:
        for sock in others:
            sock.close()
    return found


def by_log_length(address: str, megabytes: list[int]) -> Points:
    """Seconds of a fetch of one 16 KB batch at any offset of a log of so many MB."""
    topic = client.new_topic(address)
    batch = client.batch_of(16, 1000)
    chance = random.Random(1)
    found, written = {}, 0
    with client.connect(topic.leader) as sock:
        for size in megabytes:
            count = size * MB // len(batch) - written
            client.produce(topic.leader, topic.name, batch, count)
            written += count

            def work(records: int = written * 16) -> None:
                asked = [FetchPartition(0, -1, chance.randrange(records), -1, -1, 1)]
                request = FetchRequest(max_bytes=1, topics=[FetchTopic(topic.name, partitions=asked)])
                sock.sendall(client.frame(11, request))
                assert len(client.read_answer(sock)) > len(batch)

            found[size] = seconds_each(work, least=500)
            print(f"log of {size} MB done", file=sys.stderr, flush=True)
    client.delete_topic(address, topic.name)
    return found


def multiples(points: Points) -> Points:
    first = next(iter(points.values()))
    return {x: y / first for x, y in points.items()}


def draw(panels: list[tuple[str, str, Points]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(panels), figsize=(12, 3.6), layout="constrained")
    for axis, (title, unit, points) in zip(axes, panels, strict=True):
        found = multiples(points)
        xs, ys = list(found), list(found.values())
        axis.loglog(xs, ys, marker="o", label="measured")
        axis.loglog(xs, [x / xs[0] for x in xs], linestyle=":", color="grey", label="linear")
        axis.set(title=title, xlabel=unit, ylabel="time of a request, multiple of the first", ylim=(0.3, None))
        axis.legend()
    figure.savefig(PICTURE, dpi=110)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--quick", action="store_true", help="small numbers, no picture and no BENCHMARKS.md: to see that it works"
    )
    options = parser.parse_args()
    partitions, connections, megabytes = [1, 10, 100, 1000, 10_000], [1, 10, 100, 1000], [1, 10, 100, 1000, 5000]
    if options.quick:
        partitions, connections, megabytes = [1, 10], [1, 10], [1, 2]
    broker = ours(memory="1G")
    with running([broker]):
        panels = [
            ("full fetch", "partitions in the request", by_partitions(broker.address, partitions)),
            ("round trip", "connections that are open", by_connections(broker.address, connections)),
            ("fetch anywhere in a log", "MB in the log", by_log_length(broker.address, megabytes)),
        ]
    rows = [
        (f"{title}: {unit}", ", ".join(f"{x}: {y:.2g}" for x, y in multiples(points).items()))
        for title, unit, points in panels
    ]
    if options.quick:
        print(rows)
        return 0
    draw(panels)
    print(
        write_section(
            "growth",
            "How cost grows",
            "python -m benchmarks.growth",
            "The time of a request as a multiple of the first one's of its row: flat where the work is the same, linear where there is "
            "more of it.\n\n"
            f"![time of a request against partitions, connections and log length](benchmarks/{PICTURE.name})",
            ("what", "multiples"),
            rows,
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
