"""Test the published distributions, sdist and wheel, in empty environments.

The sdist runs its fast tests, the wheel runs a command of each extra. Everything is installed from
the package index, so this takes minutes; `make long` runs it.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

from tests.support.pipeline.recorded import traffic, write

ROOT = Path(__file__).resolve().parent.parent


class NotAsPublished(Exception):
    """A step that failed. The message names it and ends with the output."""


def run(step: str, *command: str | Path, cwd: Path) -> str:
    """Run a command without the packages and settings of this process, and return its output. Raises NotAsPublished."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST", "MAKE"))
    }
    completed = subprocess.run([*command], cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    if completed.returncode:
        raise NotAsPublished(
            f"{step}: exit status {completed.returncode}\n{completed.stdout[-4000:]}{completed.stderr[-4000:]}"
        )
    return completed.stdout


def distributions(folder: Path) -> tuple[Path, Path]:
    """Build (sdist, wheel) of the committed files; the wheel is built from the sdist."""
    run("copy the checkout", "git", "clone", "--quiet", str(ROOT), str(folder / "checkout"), cwd=folder)
    run("build", sys.executable, "-m", "build", "--outdir", "dist", "checkout", cwd=folder)
    [sdist], [wheel] = (folder / "dist").glob("*.tar.gz"), (folder / "dist").glob("*.whl")
    return sdist, wheel


def fast_tests_of(sdist: Path, folder: Path) -> str:
    """Unpack the sdist, run `make test` in it, and return pytest's last line."""
    shutil.unpack_archive(sdist, folder / "sdist")
    [source] = (folder / "sdist").iterdir()
    output = run("make test of the sdist", "make", "test", cwd=source)
    return re.sub(r" in [\d.]+s.*", "", output.strip().splitlines()[-1])


def installed(wheel: Path, extra: str, folder: Path) -> Path:
    """Install the wheel with an extra into an empty environment below `folder`, and return the folder of its programs."""
    environment = folder / f"environment-{extra}"
    venv.create(environment, with_pip=True)
    run(
        f"install kafkaproto[{extra}]",
        environment / "bin" / "pip",
        "install",
        "--quiet",
        f"{wheel}[{extra}]",
        cwd=folder,
    )
    return environment / "bin"


def demo_of(wheel: Path, folder: Path) -> str:
    """Run the demo without Spark with the extra `demo`, and return its last line."""
    python = installed(wheel, "demo", folder) / "python"
    output = run("the demo", python, "-m", "kafkaproto.pipeline.demo", "--without-spark", cwd=folder)
    return re.sub(r"; \d+ s in all", "", output.strip().splitlines()[-1])


def conformance_of(wheel: Path, folder: Path) -> str:
    """Run a part of the suite on the wheel's own broker with the extra `conformance`, and return pytest's last line."""
    script = installed(wheel, "conformance", folder) / "kafkaproto"
    settings = run("the settings", script, "conformance", "--settings", "default", cwd=folder).splitlines()
    settings += [f"{broker}.broker.rack=r{broker}" for broker in range(3)]
    command = [script, "broker", "--brokers", "3", "--port", "0", "--semantics", "kafka", *(f"-c{s}" for s in settings)]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        try:
            part = ("-k", "test_fetch_sizes or quota_levels")
            output = run("the suite", script, "conformance", "--bootstrap", address, *part, cwd=folder)
        finally:
            process.terminate()
    return re.sub(r" in [\d.]+s.*", "", output.strip().splitlines()[-1])


def report_of(wheel: Path, folder: Path) -> str:
    """Report a small trace with the extra `spark`, and return the verdict's line."""
    bin_folder = installed(wheel, "spark", folder)
    write(folder / "trace", traffic())
    output = run("kafkaproto report", bin_folder / "kafkaproto", "report", "trace", cwd=folder)
    if not (folder / "trace.tables" / "report.html").is_file():
        raise NotAsPublished(f"kafkaproto report: no page was written\n{output}")
    return next(line for line in output.splitlines() if "rules broken" in line)


def lines() -> list[str]:
    """Run all tests and return a line of docs/long-run.md for each. Raises NotAsPublished."""
    with tempfile.TemporaryDirectory(prefix="kafkaproto-") as name:
        folder = Path(name)
        sdist, wheel = distributions(folder)
        start_s = time.monotonic()
        tests = fast_tests_of(sdist, folder)
        tests_s, start_s = time.monotonic() - start_s, time.monotonic()
        verdict = report_of(wheel, folder)
        report_s = time.monotonic() - start_s
        demo, suite = demo_of(wheel, folder), conformance_of(wheel, folder)
        return [
            f"- Sdist: unpacked into an empty folder, `make test` gives {tests}; in {tests_s:.0f} s.",
            f'- Wheel with the extra `spark` in an empty environment: `kafkaproto report` of a trace says "{verdict}"; '
            f"in {report_s:.0f} s.",
            f'- Wheel with the extra `demo`: the demo without Spark says "{demo}".',
            f"- Wheel with the extra `conformance`: the suite's fetch sizes and quota levels give {suite}.",
        ]


def main() -> int:
    argparse.ArgumentParser(
        prog="python -m tests.distribution", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    try:
        sys.stdout.write("\n".join(lines()) + "\n")
    except NotAsPublished as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
