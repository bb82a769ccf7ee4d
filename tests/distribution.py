"""What is published, tried in empty environments: the sdist runs its own fast tests, the wheel with the extra `spark` reports a trace.

Everything is installed from the package index, so this takes minutes; `make long` runs it.

usage: python -m tests.distribution
"""

from __future__ import annotations

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
    done = subprocess.run([*command], cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotAsPublished(f"{step}: exit status {done.returncode}\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout


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
    said = run("make test of the sdist", "make", "test", cwd=source)
    return re.sub(r" in [\d.]+s.*", "", said.strip().splitlines()[-1])


def report_of(wheel: Path, folder: Path) -> str:
    """Install the wheel with the extra `spark` into an empty environment, report a small trace, and return the verdict's line."""
    venv.create(folder / "environment", with_pip=True)
    bin_folder = folder / "environment" / "bin"
    run("install kafkaproto[spark]", bin_folder / "pip", "install", "--quiet", f"{wheel}[spark]", cwd=folder)
    write(folder / "trace", traffic())
    said = run("kafkaproto report", bin_folder / "kafkaproto", "report", "trace", cwd=folder)
    if not (folder / "trace.tables" / "report.html").is_file():
        raise NotAsPublished(f"kafkaproto report: no page was written\n{said}")
    return next(line for line in said.splitlines() if "rules broken" in line)


def lines() -> list[str]:
    """Try both, and return a line of LONG.md for each. Raises NotAsPublished."""
    with tempfile.TemporaryDirectory(prefix="kafkaproto-") as name:
        folder = Path(name)
        sdist, wheel = distributions(folder)
        begun = time.monotonic()
        tests = fast_tests_of(sdist, folder)
        tests_s, begun = time.monotonic() - begun, time.monotonic()
        verdict = report_of(wheel, folder)
        return [
            f"- Sdist: unpacked into an empty folder, `make test` gives {tests}; in {tests_s:.0f} s.",
            f'- Wheel with the extra `spark` in an empty environment: `kafkaproto report` of a trace says "{verdict}"; '
            f"in {time.monotonic() - begun:.0f} s.",
        ]


def main() -> int:
    try:
        sys.stdout.write("\n".join(lines()) + "\n")
    except NotAsPublished as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
