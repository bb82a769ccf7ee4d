"""Samples of the project's texts, to be rated by readers who have not seen the code.

`draw` prints a sample as JSON. Two readers rate it independently: for each text `clear` or `unclear`. `keep` adds the sample with both ratings to
`samples.json`, so that every sample that was ever drawn stays visible, also a failed one.

usage: python -m tests.documentation.samples draw KIND SEED > sample.json
       python -m tests.documentation.samples draw helps SEED --all > sample.json
       python -m tests.documentation.samples keep sample.json FIRST.json SECOND.json
       python -m tests.documentation.samples         print the outcome of all samples, and how many help texts are clear

The commits of the samples with the seeds 4711, 8128, 9407, 112417, 231126, 271101 and 624115 are not in the repository: they were never merged. The
texts and verdicts of these samples are kept.

KIND is docstrings, messages (errors, log lines, what programs write to stderr and the timeouts of the conformance suite, but no text of Kafka), tests
(test names) or helps (the help of all programs, and the texts of the report and its tables).

A sample is random, except that of helps: it has the texts that were unclear to a reader in their latest rating, or were never rated in their present
wording. With --all, it has all texts. Its seed only numbers it. A random sample holds if 95 % of its texts are clear to each reader, and a sample of
helps if all of its texts are clear to both.

A rating is a JSON list of booleans, in the order of the texts.
"""

from __future__ import annotations

import ast
import json
import random
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tests.documentation.blocks import ROOT
from tests.documentation.source_texts import docstrings, messages, names_of_tests

KEPT = Path(__file__).with_name("samples.json")
OF_KAFKA = Path(__file__).with_name("texts_of_kafka.json")
"""The error texts that Kafka sends, too, by `tests.support.oracle.texts_of_kafka`: maps each to the Kafka class that contains it."""
PACKAGES = ("kafkaproto", "broker", "pipeline", "benchmarks")
GENERATED = ("kafkaproto/messages/", "kafkaproto/broker", "kafkaproto/pipeline")
"""Generated code, and the links to folders that are searched by themselves."""
MOST_PER_FILE = 2
NEEDED_PERCENT = 95
"""The percentage of the texts of a random sample that must be clear to each reader, rounded up to whole texts."""


class Kind(NamedTuple):
    """A kind of text.

    size: number of texts in a random sample; None if samples are not random, and all of their texts must be clear. texts: returns the (file or
    program, text) of each text in the repository.
    """

    size: int | None
    texts: Callable[[], Iterable[tuple[str, str]]]


def _of_modules(
    folders: Sequence[str], texts: Callable[[ast.Module], Iterator[str]]
) -> Callable[[], Iterable[tuple[str, str]]]:
    """Return a function that returns the (path of the file, text) of each text in the modules of the folders. It reads them once."""

    @cache
    def texts_of_folders() -> tuple[tuple[str, str], ...]:
        paths = (path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")))
        named = ((path.relative_to(ROOT).as_posix(), path) for path in paths)
        return tuple(
            (name, text)
            for name, path in named
            if not name.startswith(GENERATED)
            for text in texts(ast.parse(path.read_text()))
        )

    return texts_of_folders


def _helps() -> Iterator[tuple[str, str]]:
    from tests.documentation import helps  # needs the extra "spark", unlike this module

    yield from helps.texts()


KINDS = {
    "docstrings": Kind(40, _of_modules(PACKAGES, docstrings)),
    "messages": Kind(20, _of_modules(PACKAGES, messages)),
    "tests": Kind(30, _of_modules(("tests", "kafkaproto/conformance"), names_of_tests)),
    "helps": Kind(None, _helps),
}


def unclear(kind: str) -> set[str]:
    """Return the texts of the kept samples of a kind that were unclear to both readers."""
    return {
        text["text"]
        for sample in _kept()
        if sample["kind"] == kind
        for text in sample["texts"]
        if not any(text["clear"])
    }


def clear_helps() -> list[tuple[str, str]]:
    """Return the (program or place, text) of each present help text that was clear to both readers in its latest rating."""
    latest = {
        (text["file"], text["text"]): all(text["clear"])
        for sample in _kept()
        if sample["kind"] == "helps"
        for text in sample["texts"]
    }
    return [text for text in KINDS["helps"].texts() if latest.get(text, False)]


def _kept() -> list[dict[str, Any]]:
    """Return the samples in `KEPT`, the oldest first."""
    samples: list[dict[str, Any]] = json.loads(KEPT.read_text())
    return samples


def of_kafka() -> set[str]:
    """Return the error texts that Kafka sends, too. These texts are not rated, because the broker must send them word for word."""
    return set(json.loads(OF_KAFKA.read_text()))


def draw(kind: str, seed: int, *, with_clear: bool = False) -> dict[str, Any]:
    """Return a sample: kind, seed, commit, and the texts with their files or programs.

    At most `MOST_PER_FILE` texts of a random sample come from one file. with_clear: whether a sample of helps also has the texts of `clear_helps`.
    """
    excluded = of_kafka() if kind == "messages" else set()
    candidates = [(path, text) for path, text in KINDS[kind].texts() if text not in excluded]
    size = KINDS[kind].size
    if size is None and not with_clear:
        clear = set(clear_helps())
        candidates = [text for text in candidates if text not in clear]
    drawn = candidates if size is None else _random(candidates, size, seed)
    chosen = [{"file": path, "text": text} for path, text in drawn]
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return {"kind": kind, "seed": seed, "commit": commit.stdout.strip(), "texts": chosen}


def _random(candidates: list[tuple[str, str]], size: int, seed: int) -> Iterator[tuple[str, str]]:
    random.Random(seed).shuffle(candidates)
    per_file: dict[str, int] = defaultdict(int)
    for path, text in candidates:
        if per_file[path] < MOST_PER_FILE and sum(per_file.values()) < size:
            per_file[path] += 1
            yield path, text


def needed(kind: str, texts: int) -> int:
    """Return how many texts of a sample must be clear to each reader. kind, texts: the kind of the sample, and the number of its texts."""
    percent = 100 if KINDS[kind].size is None else NEEDED_PERCENT
    return -(-texts * percent // 100)


def outcome(sample: dict[str, Any]) -> str:
    """Return one line: kind, seed, commit, how many texts were clear to each reader, and whether that is enough."""
    least = needed(sample["kind"], len(sample["texts"]))
    clear = [sum(text["clear"][reader] for text in sample["texts"]) for reader in range(2)]
    verdict = "holds" if min(clear) >= least else "failed"
    return (
        f"{sample['kind']}, seed {sample['seed']}, {sample['commit']}: clear to the readers {clear[0]} and {clear[1]} "
        f"of {len(sample['texts'])} (needed {least}): {verdict}"
    )


def keep(sample: dict[str, Any], ratings: Sequence[list[bool]], path: Path = KEPT) -> None:
    """Add a sample with its two ratings to the file. Raises ValueError if a rating does not have one value for each text."""
    for rating in ratings:
        if len(rating) != len(sample["texts"]):
            raise ValueError(f"a rating must have {len(sample['texts'])} values (got {len(rating)})")
    for text, *clear in zip(sample["texts"], *ratings, strict=True):
        text["clear"] = clear
    stored = json.loads(path.read_text()) if path.exists() else []
    path.write_text(json.dumps([*stored, sample], indent=1, ensure_ascii=False) + "\n")


def outcomes() -> Iterator[str]:
    """Yield the outcome of each kept sample, the oldest first, and then how many of the present help texts are clear."""
    yield from map(outcome, _kept())
    yield (
        f"helps: {len(clear_helps())} of {len(list(KINDS['helps'].texts()))} present texts are clear to both readers "
        "in their latest rating"
    )


def main() -> int:
    match sys.argv[1:]:
        case ["draw", kind, seed] if kind in KINDS:
            _print(draw(kind, int(seed)))
        case ["draw", "helps", seed, "--all"]:
            _print(draw("helps", int(seed), with_clear=True))
        case ["keep", sample, first, second]:
            keep(json.loads(Path(sample).read_text()), [json.loads(Path(path).read_text()) for path in (first, second)])
        case []:
            sys.stdout.writelines(f"{line}\n" for line in outcomes())
        case _:
            sys.stderr.write(f"{__doc__}\n")
            return 2
    return 0


def _print(sample: dict[str, Any]) -> None:
    json.dump(sample, sys.stdout, indent=1, ensure_ascii=False)


if __name__ == "__main__":
    sys.exit(main())
