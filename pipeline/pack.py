"""`python -m pipeline.pack OUT.zip`: what executors import, for `spark-submit --py-files`: kafkaproto, pipeline, and of broker what pipeline needs.

What is needed is found by reading the imports, wherever in a module they stand. Must never import what it packs.
"""

from __future__ import annotations

import argparse
import ast
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WHOLE = ("kafkaproto", "pipeline")
IN_PARTS = "broker"


def pack(out: Path) -> list[str]:
    """Write the archive; the names in it."""
    files = {path for package in WHOLE for path in sorted((ROOT / package).rglob("*")) if _is_code(path)}
    waiting = [path for path in files if path.suffix == ".py"]
    while waiting:
        for path in _imported(waiting.pop()):
            if path not in files:
                files.add(path)
                waiting.append(path)
    names = sorted(str(path.relative_to(ROOT)) for path in files)
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.write(ROOT / name, name)
    return names


def _is_code(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts


def _imported(path: Path) -> Iterator[Path]:
    """The files of `IN_PARTS` that a module imports, with the packages around them."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == IN_PARTS:
                for end in range(1, len(parts) + 1):
                    stem = ROOT.joinpath(*parts[:end])
                    yield from (file for file in (stem / "__init__.py", stem.with_suffix(".py")) if file.is_file())


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m pipeline.pack", description="What Spark's executors import.")
    parser.add_argument("out", type=Path, help="the archive, for spark-submit --py-files")
    options = parser.parse_args(arguments)
    try:
        names = pack(options.out)
    except OSError as error:
        sys.stderr.write(f"pack: {options.out}: {error.strerror}\n")
        return 2
    sys.stdout.write(f"{options.out}: {len(names)} files\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
