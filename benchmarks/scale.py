"""How the pipeline grows: synthetic traces from trace to page, against what Spark needs to turn the same trace into Parquet once.

Each size is a process of its own with 4 GB for the driver. The whole report makes the tables itself, so its ratio cannot be below 1.

usage: python -m benchmarks.scale [--sizes 1000000,10000000] [--check]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from benchmarks.report import write_section
from benchmarks.synthetic import write

WANTED = 4.0
DRIVER_MEMORY = "4g"
SIZES = (1_000_000, 10_000_000)
LOOK_S = 5.0
PICTURE = Path(__file__).with_name("scale.svg")


def measured(size: int, folder: Path) -> dict[str, float]:
    """Seconds for Parquet once and for the whole, in a process of its own."""
    environment = os.environ | {"PYSPARK_SUBMIT_ARGS": f"--driver-memory {DRIVER_MEMORY} pyspark-shell"}
    command = [sys.executable, "-m", "benchmarks.scale", "--one", str(folder)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        most_mb = 0.0
        while process.poll() is None:
            most_mb = max([most_mb, *_peaks_mb(process.pid)])
            time.sleep(LOOK_S)
        told = process.stdout.read()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return {"requests": size, **json.loads(told.splitlines()[-1]), "worker_mb": most_mb}


def _peaks_mb(pid: int) -> Iterator[float]:
    """The most memory that each Python process below `pid` ever had: Spark's workers."""
    for task in Path(f"/proc/{pid}/task").glob("*"):
        try:
            children = (task / "children").read_text().split()
        except OSError:
            continue
        for child in children:
            yield from _peaks_mb(int(child))
            with suppress(OSError):
                status = dict(line.split(":", 1) for line in Path(f"/proc/{child}/status").read_text().splitlines())
                if "python" in status["Name"] and "VmHWM" in status:
                    yield int(status["VmHWM"].split()[0]) / 1000


def one(folder: Path) -> dict[str, float]:
    """In this process: Parquet of the trace, then everything from the trace on, into another folder."""
    from kafkaproto.pipeline.session import local_session
    from kafkaproto.pipeline.trace.progress import Progress
    from kafkaproto.pipeline.trace.report.making import Wanted, make
    from kafkaproto.pipeline.trace.tables import build, with_spark

    trace = folder / "trace"
    with local_session("kafkaproto scale") as spark:
        spark.range(10).count()
        begun = time.perf_counter()
        build(trace, folder / "once", partial(with_spark, spark))
        parquet = time.perf_counter() - begun
        shutil.rmtree(folder / "once")
        begun = time.perf_counter()
        outcomes = make(spark, Wanted(folder / "whole", trace), Progress()).outcomes
        whole = time.perf_counter() - begun
    broken = sum(bool(outcome.broken) for outcome in outcomes)
    return {"parquet_s": parquet, "whole_s": whole, "broken": broken}


def draw(found: list[dict[str, float]]) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "scale"  # names within the picture are the same each time
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
    sizes = [each["requests"] / 1e6 for each in found]
    for key, label in (("whole_s", "from trace to page"), ("parquet_s", "Parquet once")):
        axes.plot(sizes, [each[key] for each in found], marker="o", label=label)
    axes.set(xlabel="million requests", ylabel="seconds", xlim=(0, None), ylim=(0, None))
    axes.legend()
    figure.savefig(PICTURE, metadata={"Date": None})


def tell(found: list[dict[str, float]], sizes: str) -> None:
    """The picture, and the section of BENCHMARKS.md."""
    found = sorted(found, key=lambda each: each["requests"])
    draw(found)
    rows = [
        [
            f"{each['requests']:,.0f}", f"{each['parquet_s']:.0f}", f"{each['whole_s']:.0f}",
            f"{each['whole_s'] / each['parquet_s']:.2f}", f"{1e6 * each['whole_s'] / each['requests']:.0f}",
            f"{each['worker_mb']:.0f}",
        ]
        for each in found
    ]  # fmt: skip
    text = (
        f"Synthetic traces (`benchmarks/synthetic.py`), half of the traffic on one connection; {DRIVER_MEMORY} for the driver, two cores. "
        f"Asked: at most {WANTED:g} times what Parquet once takes, and growth in a straight line.\n\n![seconds by size](benchmarks/scale.svg)"
    )
    head = ["requests", "Parquet once, s", "trace to page, s", "ratio", "µs per request", "largest Python worker, MB"]
    command = f"python -m benchmarks.scale --sizes {sizes}"
    print(write_section("scale", "The pipeline on large traces", command, text, head, rows))


def main() -> int:
    """Exit status 1 with --check when the whole takes more than is allowed, or a rule does not hold."""
    parser = argparse.ArgumentParser(description="The pipeline on large traces.")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="requests, with commas between")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        print(json.dumps(one(options.one)))
        return 0
    found = []
    for size in map(int, options.sizes.split(",")):
        with tempfile.TemporaryDirectory(prefix="kafkaproto-scale-") as scratch:
            trace_bytes = write(Path(scratch) / "trace", size)
            print(f"{size:,} requests, {trace_bytes / 1e6:,.0f} MB of trace", flush=True)
            found.append(measured(size, Path(scratch)))
            print(found[-1], flush=True)
    tell(found, options.sizes)
    bad = [each for each in found if each["whole_s"] > WANTED * each["parquet_s"] or each["broken"]]
    return int(options.check and bool(bad))


if __name__ == "__main__":
    sys.exit(main())
