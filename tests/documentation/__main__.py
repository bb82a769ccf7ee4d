"""Check that the generated pages of docs/ are current, or write them."""

from __future__ import annotations

import argparse
import sys

from tests.documentation import pages


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.documentation", description=__doc__)
    parser.add_argument(
        "--write", action="store_true", help="write the pages, instead of reporting those that are not current"
    )
    if parser.parse_args().write:
        pages.write()
    stale = pages.outdated()
    for name in stale:
        sys.stderr.write(f"docs/{name} is not current: run python -m tests.documentation --write\n")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
