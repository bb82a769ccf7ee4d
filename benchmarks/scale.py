"""Measure how the pipeline scales: the time from a synthetic trace to the report page, divided by the time to convert the trace to Parquet once.

Each size runs in a process of its own with 4 GB for the Spark driver. The report also converts the trace, so the ratio cannot be below 1.
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

from benchmarks.report import PAGE, write_section
from benchmarks.synthetic import write

MAX_RATIO = 4.0
DRIVER_MEMORY = "4g"
SIZES = (1_000_000, 10_000_000)
POLL_S = 5.0
PICTURE = PAGE.parent / "images" / "scale.svg"


def measure_size(size: int, folder: Path) -> dict[str, float]:
    """Measure the pipeline with a trace of `size` requests, in a separate process.

    folder: has the trace in its subfolder `trace`, and receives the tables and the report. Returns a dict: `requests` (the size), `parquet_s` and
    `whole_s` (the seconds to write the tables as Parquet, and for the whole report), `broken` (number of audit rules that the trace breaks),
    `worker_mb` (the largest memory of a Python worker of Spark, in MB).
    """
    environment = os.environ | {"PYSPARK_SUBMIT_ARGS": f"--driver-memory {DRIVER_MEMORY} pyspark-shell"}
    command = [sys.executable, "-m", "benchmarks.scale", "--one", str(folder)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        peak_mb = 0.0
        while process.poll() is None:
            peak_mb = max([peak_mb, *_peaks_mb(process.pid)])
            time.sleep(POLL_S)
        output = process.stdout.read()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return {"requests": size, **json.loads(output.splitlines()[-1]), "worker_mb": peak_mb}


def _peaks_mb(pid: int) -> Iterator[float]:
    """Yield the peak memory in MB of each Python process that descends from process `pid`; these are Spark's workers."""
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


def measure_here(folder: Path) -> dict[str, float]:
    """Measure in this process the time from trace to Parquet and then, with another output folder, the time from trace to report page.

    folder: has the trace in its subfolder `trace`, and receives the tables and the report. Returns a dict: `parquet_s` and `whole_s` (the two times
    in seconds), and `broken` (the number of audit rules that the trace breaks).
    """
    from kafkaproto.pipeline.session import local_session
    from kafkaproto.pipeline.trace.progress import Progress
    from kafkaproto.pipeline.trace.report.making import ReportOptions, make
    from kafkaproto.pipeline.trace.tables import build, with_spark

    trace = folder / "trace"
    with local_session("kafkaproto scale") as spark:
        spark.range(10).count()
        start = time.perf_counter()
        build(trace, folder / "once", partial(with_spark, spark))
        parquet = time.perf_counter() - start
        shutil.rmtree(folder / "once")
        start = time.perf_counter()
        outcomes = make(spark, ReportOptions(folder / "whole", trace), Progress()).outcomes
        whole = time.perf_counter() - start
    broken = sum(bool(outcome.broken) for outcome in outcomes)
    return {"parquet_s": parquet, "whole_s": whole, "broken": broken}


def draw(results: list[dict[str, float]]) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "scale"  # makes the ids within the SVG reproducible
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
    sizes = [each["requests"] / 1e6 for each in results]
    for key, label in (("whole_s", "from trace to page"), ("parquet_s", "Parquet once")):
        axes.plot(sizes, [each[key] for each in results], marker="o", label=label)
    axes.set(xlabel="million requests", ylabel="seconds", xlim=(0, None), ylim=(0, None))
    axes.legend()
    figure.savefig(PICTURE, metadata={"Date": None})


def write_report(results: list[dict[str, float]], sizes: str) -> None:
    """Draw the chart of the results and write the section of docs/benchmarks.md.

    results: what `measure_size` returned for each size. sizes: the sizes, separated by commas, as in the option `--sizes`.
    """
    results = sorted(results, key=lambda each: each["requests"])
    draw(results)
    rows = [
        [
            f"{each['requests']:,.0f}", f"{each['parquet_s']:.0f}", f"{each['whole_s']:.0f}",
            f"{each['whole_s'] / each['parquet_s']:.2f}", f"{1e6 * each['whole_s'] / each['requests']:.0f}",
            f"{each['worker_mb']:.0f}",
        ]
        for each in results
    ]  # fmt: skip
    text = (
        f"Synthetic traces (`benchmarks/synthetic.py`), half of the traffic on one connection; {DRIVER_MEMORY} for the driver, two cores. "
        f"Limit: {MAX_RATIO:g} times the time of Parquet once, with linear growth.\n\n![seconds by size](images/scale.svg)"
    )
    head = ["requests", "Parquet once, s", "trace to page, s", "ratio", "µs per request", "largest Python worker, MB"]
    command = f"python -m benchmarks.scale --sizes {sizes}"
    print(write_section("scale", "The pipeline on large traces", command, text, head, rows))


def main() -> int:
    """Measure how long the pipeline takes for large traces and write the results. Returns the exit status.

    Without the option `--check`, the status is 0. With the option, the status is 1 if a trace breaks a rule of the audit, or if a report takes more
    than four times (`MAX_RATIO`) as long as the conversion of the trace to Parquet.
    """
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scale",
        description="Measure the pipeline on large traces, and write docs/benchmarks.md.",
    )
    parser.add_argument(
        "--sizes",
        default=",".join(map(str, SIZES)),
        metavar="N,...",
        help="numbers of requests in the traces, separated by commas (default: %(default)s)",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="exit with status 1 if a limit of time or memory is exceeded, or if the traces break a rule of the audit",
    )
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        print(json.dumps(measure_here(options.one)))
        return 0
    results = []
    for size in map(int, options.sizes.split(",")):
        with tempfile.TemporaryDirectory(prefix="kafkaproto-scale-") as scratch:
            trace_bytes = write(Path(scratch) / "trace", size)
            print(f"{size:,} requests, {trace_bytes / 1e6:,.0f} MB of trace", flush=True)
            results.append(measure_size(size, Path(scratch)))
            print(results[-1], flush=True)
    write_report(results, options.sizes)
    bad = [each for each in results if each["whole_s"] > MAX_RATIO * each["parquet_s"] or each["broken"]]
    return int(options.check and bool(bad))


if __name__ == "__main__":
    sys.exit(main())
