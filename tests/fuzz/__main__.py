"""Fuzzes with atheris: ``python -m tests.fuzz SECONDS [TARGET...]``, the time shared by the targets.

Starts from the committed corpus and puts what it found, minimised, back into it. A crash is printed with the file of its
bytes, and the exit status is 1.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from kafkaproto.records.batch import NewRecord, build_batch
from kafkaproto.records.compression import Compression
from kafkaproto.records.message_set import build_message_set
from tests.fuzz import corpus
from tests.fuzz.targets import LONGEST, REQUESTS, RESPONSES, TARGETS
from tests.support.codec.values import Values


def seeds(target: str) -> list[bytes]:
    """Something valid of every layout, for a corpus that is not there yet."""
    if target == "records":
        made = [NewRecord(b"value", key=b"key", headers=[("h", None)]), NewRecord(None)]
        old = [NewRecord(b"value", b"key", 1000), NewRecord(None, None, 1001)]
        found = [build_batch(made * 3, compression=kind) for kind in Compression]
        found += [
            build_message_set(old, magic=magic, compression=kind)
            for magic in (0, 1)
            for kind in Compression
            if kind is not Compression.ZSTD
        ]
        return [*found, found[0] + found[-1]]
    entries = REQUESTS if target == "requests" else RESPONSES
    found = []
    for number, entry in enumerate(entries):
        values = Values(entry.id)
        obj = values.object(entry.layout, "tiny")
        values.add_unknown_tags(entry.layout, obj)
        found.append(number.to_bytes(2, "big") + entry.layout.encode(obj))
    return found


def fuzz(target: str, seconds: int, scratch: Path) -> int:
    """Exit status of the fuzzer."""
    before, after = scratch / target, scratch / f"{target}-minimised"
    before.mkdir()
    after.mkdir()
    known = corpus.load(target) if (corpus.FOLDER / f"{target}.zip").exists() else []
    for number, data in enumerate([*known, *seeds(target)]):
        (before / f"{number:06}").write_bytes(data)
    command = [sys.executable, "-m", "tests.fuzz.inside", target]
    limits = [f"-max_len={LONGEST}", "-timeout=20", "-rss_limit_mb=4096"]
    crash = f"-artifact_prefix={Path.cwd()}/crash-{target}-"
    status = subprocess.run(
        [*command, str(before), f"-max_total_time={seconds}", crash, *limits], check=False
    ).returncode
    if status == 0:
        subprocess.run([*command, "-merge=1", str(after), str(before), *limits], check=True)
        # a merge keeps what reaches new lines, and layouts share their lines
        corpus.save(target, [*seeds(target), *(path.read_bytes() for path in after.iterdir())])
    return status


def main(arguments: list[str]) -> int:
    seconds, targets = int(arguments[0]), arguments[1:] or list(TARGETS)
    with tempfile.TemporaryDirectory() as scratch:
        failed = [target for target in targets if fuzz(target, seconds // len(targets), Path(scratch))]
    sys.stdout.write(f"failed: {', '.join(failed)}\n" if failed else f"{seconds} s: nothing found\n")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
