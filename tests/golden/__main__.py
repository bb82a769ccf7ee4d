"""Write the golden runs, or show their changes.

python -m tests.golden --write       rewrite the committed files
python -m tests.golden --diff        print decoded differences between the working tree's files and the code
python -m tests.golden --diff REV    compare with the files of a git revision
"""

from __future__ import annotations

import argparse
import sys

from tests.golden.decoding import MOST_DIFFERENCES, report
from tests.golden.files import RUNS, committed, write


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.golden",
        description="Rewrite the golden runs, the recorded responses in tests/golden/data, or show how this broker differs from them.",
    )
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--write", action="store_true", help="run the broker and rewrite the files in tests/golden/data")
    mode.add_argument(
        "--diff",
        nargs="?",
        const="",
        metavar="REV",
        help="print the differences between the broker and the files, decoded; with REV, the files of this git revision",
    )
    parser.add_argument(
        "--all", action="store_true", help="with --diff: print all differences of a run, not only the first ones"
    )
    options = parser.parse_args()
    if options.write:
        for name in write():
            sys.stdout.write(f"{name}\n")
        return 0
    status = 0
    for name, run in RUNS.items():
        most = None if options.all else MOST_DIFFERENCES
        if text := report(name, committed(name, options.diff or None), run(), most):
            sys.stdout.write(f"{text}\n\n")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
