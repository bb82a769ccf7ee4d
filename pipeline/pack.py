"""`kafkaproto pack OUT.zip`: writes the package kafkaproto as an archive for `spark-submit --py-files`."""

from __future__ import annotations

import os
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import kafkaproto
from kafkaproto.pipeline.options import parser

PACKAGE = Path(kafkaproto.__file__).parent


def pack(out: Path) -> list[str]:
    """Write the package kafkaproto as a zip archive to the file `out`, and return the sorted names of the archived files.

    Raises OSError if the archive cannot be written.
    """
    files = [
        Path(folder, name)
        for folder, _, names in os.walk(PACKAGE, followlinks=True)  # in a checkout, broker and pipeline are links
        if Path(folder).name != "__pycache__"
        for name in names
    ]
    members = {str(file.relative_to(PACKAGE.parent)): file for file in files}
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(members):
            archive.write(members[name], name)
    return sorted(members)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser("pack").parse_args(arguments)
    if options.main:
        sys.stdout.write(f"{PACKAGE / 'cli.py'}\n")
        return 0
    try:
        names = pack(options.out)
    except OSError as error:
        sys.stderr.write(f"kafkaproto pack: {options.out}: {error.strerror}\n")
        return 2
    sys.stdout.write(f"{options.out}: {len(names)} files\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
