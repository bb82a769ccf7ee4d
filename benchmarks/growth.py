"""Measure how the time of a request grows with partitions, connections and the length of the log.

The program writes a chart and docs/benchmarks.md. Every number in a table row is divided by the
first number of the row: absolute times depend on the machine, but the shape of the growth does not.
The module needs the extra "spark".
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections.abc import Callable

from benchmarks import raw_client as client
from benchmarks.race import ours, running
from benchmarks.report import PAGE, write_section
from kafkaproto.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kafkaproto.messages.metadata import MetadataRequest

PICTURE = PAGE.parent / "images" / "growth.png"
MB = 1_000_000
Points = dict[int, float]


def seconds_each(work: Callable[[], object], least: int = 15, budget_s: float = 1.0) -> float:
    """Return the median time of a call of `work` in seconds. `work` is called at least `least` times, and for at least `budget_s` seconds."""
    times: list[float] = []
    run_start = time.perf_counter()
    while len(times) < least or time.perf_counter() - run_start < budget_s:
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def by_partitions(address: str, counts: list[int]) -> Points:
    """Measure full fetches of partitions without records. Returns a dict that maps a number of partitions to the seconds per fetch.

    address: host:port of the broker. counts: the numbers of partitions to measure.
    """
    seconds_by_count = {}
    for count in counts:
        topic = client.new_topic(address, count)
        partitions = [FetchPartition(i, -1, 0, -1, -1, 1024) for i in range(count)]
        data = client.frame(11, FetchRequest(max_bytes=MB, topics=[FetchTopic(topic.name, partitions=partitions)]))
        with client.connect(address) as sock:

            def work(sock=sock, data=data) -> None:  # type: ignore[no-untyped-def]
                sock.sendall(data)
                client.read_response_frame(sock)

            seconds_by_count[count] = seconds_each(work)
        client.delete_topic(address, topic.name)
    return seconds_by_count


def by_connections(address: str, counts: list[int]) -> Points:
    """Measure round trips on one connection while others are idle. Returns a dict that maps a number of open connections to seconds per round trip.

    address: host:port of the broker. counts: the numbers of open connections to measure.
    """
    seconds_by_count, connections = {}, []
    data = client.frame(1, MetadataRequest([]))
    try:
        for count in counts:
            while len(connections) < count:
                connections.append(client.connect(address))
                connections[-1].sendall(data)
                client.read_response_frame(connections[-1])

            def work(sock=connections[0]) -> None:  # type: ignore[no-untyped-def]
                sock.sendall(data)
                client.read_response_frame(sock)

            seconds_by_count[count] = seconds_each(work, least=500)
    finally:
        for sock in connections:
            sock.close()
    return seconds_by_count


def by_log_length(address: str, megabytes: list[int]) -> Points:
    """Measure fetches of one 16 KB batch at a random offset. Returns a dict that maps a size of the log in MB to the seconds per fetch.

    address: host:port of the broker. megabytes: the sizes of the log to measure.
    """
    topic = client.new_topic(address)
    batch = client.batch_of(16, 1000)
    generator = random.Random(1)
    seconds_by_size, written = {}, 0
    with client.connect(topic.leader) as sock:
        for size in megabytes:
            count = size * MB // len(batch) - written
            client.produce(topic.leader, topic.name, batch, count)
            written += count

            def work(records: int = written * 16) -> None:
                partitions = [FetchPartition(0, -1, generator.randrange(records), -1, -1, 1)]
                request = FetchRequest(max_bytes=1, topics=[FetchTopic(topic.name, partitions=partitions)])
                sock.sendall(client.frame(11, request))
                assert len(client.read_response_frame(sock)) > len(batch)

            seconds_by_size[size] = seconds_each(work, least=500)
            print(
                f"a fetch of one batch from a log of {size} MB takes {seconds_by_size[size] * 1e6:.0f} µs (median)",
                file=sys.stderr,
                flush=True,
            )
    client.delete_topic(address, topic.name)
    return seconds_by_size


def multiples(points: Points) -> Points:
    first = next(iter(points.values()))
    return {x: y / first for x, y in points.items()}


def draw(panels: list[tuple[str, str, Points]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(panels), figsize=(12, 3.6), layout="constrained")
    for axis, (title, unit, points) in zip(axes, panels, strict=True):
        ratios = multiples(points)
        xs, ys = list(ratios), list(ratios.values())
        axis.loglog(xs, ys, marker="o", label="measured")
        axis.loglog(xs, [x / xs[0] for x in xs], linestyle=":", color="grey", label="linear")
        axis.set(title=title, xlabel=unit, ylabel="time of a request, multiple of the first", ylim=(0.3, None))
        axis.legend()
    figure.savefig(PICTURE, dpi=110)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.growth", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="measure small numbers only, as a trial; writes no chart and no docs/benchmarks.md",
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
        # two digits without an exponent: 840, not 8.4e+02
        (f"{title}: {unit}", ", ".join(f"{x}: {float(f'{y:.2g}'):g}" for x, y in multiples(points).items()))
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
            "The time of a request as a multiple of the first number of its row: constant where the work is the same, linear where it grows.\n\n"
            f"![time of a request against partitions, connections and log length](images/{PICTURE.name})",
            ("measurement", "multiples"),
            rows,
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
