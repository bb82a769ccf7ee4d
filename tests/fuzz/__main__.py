"""Fuzz the decoders with atheris, starting from the committed corpus.

Inputs that reach new code are minimised and added to the corpus. For a crash, atheris writes the
input to a file and prints its path, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.programs import choice_of
from kafkaproto.records.batch import NewRecord, build_batch
from kafkaproto.records.compression import Compression
from kafkaproto.records.message_set import build_message_set
from tests.fuzz import corpus
from tests.fuzz.targets import LONGEST, REQUESTS, RESPONSES, TARGETS
from tests.support.codec.values import Values


def seeds(target: str) -> list[bytes]:
    """Return valid bytes of every layout, for a corpus that does not exist yet."""
    if target == "records":
        new_records = [NewRecord(b"value", key=b"key", headers=[("h", None)]), NewRecord(None)]
        old = [NewRecord(b"value", b"key", 1000), NewRecord(None, None, 1001)]
        seeds_made = [build_batch(new_records * 3, compression=kind) for kind in Compression]
        seeds_made += [
            build_message_set(old, magic=magic, compression=kind)
            for magic in (0, 1)
            for kind in Compression
            if kind is not Compression.ZSTD
        ]
        return [*seeds_made, seeds_made[0] + seeds_made[-1]]
    entries = REQUESTS if target == "requests" else RESPONSES
    seeds_made = []
    for number, entry in enumerate(entries):
        values = Values(entry.id)
        obj = values.object(entry.layout, "tiny")
        values.add_unknown_tags(entry.layout, obj)
        seeds_made.append(number.to_bytes(2, "big") + entry.layout.encode(obj))
    return seeds_made


def fuzz(target: str, seconds: int, scratch: Path) -> int:
    """Fuzz one target and return the exit status of the fuzzer."""
    before, after = scratch / target, scratch / f"{target}-minimised"
    before.mkdir()
    after.mkdir()
    saved_inputs = corpus.load(target) if (corpus.FOLDER / f"{target}.zip").exists() else []
    for number, data in enumerate([*saved_inputs, *seeds(target)]):
        (before / f"{number:06}").write_bytes(data)
    command = [sys.executable, "-m", "tests.fuzz.inside", target]
    limits = [f"-max_len={LONGEST}", "-timeout=20", "-rss_limit_mb=4096"]
    crash = f"-artifact_prefix={Path.cwd()}/crash-{target}-"
    status = subprocess.run(
        [*command, str(before), f"-max_total_time={seconds}", crash, *limits], check=False
    ).returncode
    if status == 0:
        subprocess.run([*command, "-merge=1", str(after), str(before), *limits], check=True)
        # a merge keeps inputs that reach new lines, and layouts share lines
        corpus.save(target, [*seeds(target), *(path.read_bytes() for path in after.iterdir())])
    return status


def main(arguments: list[str] | None = None) -> int:
    """Run the command line. Return 1 if a target crashed."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("seconds", type=int, metavar="SECONDS", help="time for all decoders together, in seconds")
    parser.add_argument(
        "targets",
        nargs="*",
        type=choice_of(TARGETS),
        metavar="TARGET",
        help=f"decoders to fuzz: {', '.join(TARGETS)} (default: all)",
    )
    options = parser.parse_args(arguments)
    seconds, targets = options.seconds, options.targets or list(TARGETS)
    with tempfile.TemporaryDirectory() as scratch:
        failed = [target for target in targets if fuzz(target, seconds // len(targets), Path(scratch))]
    sys.stdout.write(f"failed: {', '.join(failed)}\n" if failed else f"{seconds} s: no crash\n")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
