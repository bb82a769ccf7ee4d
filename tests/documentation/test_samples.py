"""Samples of texts: the same seed draws the same sample, at most two texts come from a file, and kept samples are whole."""

from __future__ import annotations

import ast
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kafkaproto.conformance import scene
from tests.documentation import samples, source_texts

pytestmark = pytest.mark.timeout(300)

MODULE = '''
"""A module."""

LIMIT = 3
"""The limit."""


class Thing:
    """A thing."""

    def __init__(self) -> None:
        self.size = 1
        """The size."""

    def act(self, count: int) -> str:
        """Act."""
        logger.warning("acted %d times", count)
        raise ValueError(f"count must be at least {LIMIT} (got {count})")


def test_thing(): ...
'''


def test_sampler_for_clarity_ratings_finds_docstrings_messages_and_test_names() -> None:
    module = ast.parse(MODULE)
    assert sorted(source_texts.docstrings(module)) == [
        "LIMIT = 3\nThe limit.",
        "class Thing\nA thing.",
        "def Thing.act(self, count: int) -> str\nAct.",
        "module\nA module.",
        "self.size = 1\nThe size.",
    ]
    assert sorted(source_texts.messages(module)) == [
        "acted {count} times",
        "count must be at least {LIMIT} (got {count})",
    ]
    assert list(source_texts.names_of_tests(module)) == ["test_thing"]


@pytest.mark.parametrize(
    ("code", "texts"),
    [
        ('raise EncodeError(path, f"{shown(obj)} is not a list")', ["{path}: {shown(obj)} is not a list"]),
        ('raise DecodeError("frame", pos, "is cut off")', ["frame at byte {pos}: is cut off"]),
        ('raise OptionError(bound.name, "has no end")', ["option {bound.name}: has no end"]),
        ('raise KafkaError(ErrorCode.NONE, f"There is no topic {name}.")', ["There is no topic {name}."]),
        (
            'def f():\n    reason = f"{n} bytes are left"\n    raise DecodeError(path, 0, reason)',
            ["{path} at byte 0: {n} bytes are left"],
        ),
        ('raise ValueError(f"tag {tag} is repeated" if tag >= 0 else "a tag is negative")', ["tag {tag} is repeated"]),
        ('logger.error("%s cannot be cleaned: %s", self.name, error)', ["{self.name} cannot be cleaned: {error}"]),
        (
            'raise argparse.ArgumentTypeError(f"must be at least 1 (got {n})")',
            ["argument --OPTION: must be at least 1 (got {n})"],
        ),
        ('raise unknown("id", given, "the id of a group", known)', ["id must be the id of a group (got {given})"]),
        ('raise _unknown(name, "topic setting")', []),
        ('raise SpecError(f"{where}: {rule}")', []),
        ('raise type(error)(f"{self.address} {error}")', []),
        ('logger.info("%s", line)', []),
        ('logger.warning("broker %d: %s", broker_id, text)', []),
        (
            'self.fail(where, f"{text} does not fit into {kind}")',
            ["{self.name}: {where}: {text} does not fit into {kind}"],
        ),
        (
            'self.fail(where, "flexible versions of no use: none")',
            ["{self.name}: {where}: flexible versions of no use: none"],
        ),
        ('parser.error(f"--size must be at least 1 (got {size})")', ["--size must be at least 1 (got {size})"]),
        ('parser().error("--size N is missing")', ["--size N is missing"]),
        ('pytest.exit("--bootstrap is missing", 4)', ["--bootstrap is missing"]),
        ('sys.stderr.write(f"tool: no file matches {name}\\n")', ["tool: no file matches {name}"]),
        ('sys.stderr.write("tool: " + f"no file matches {name}")', ["tool: no file matches {name}"]),
        ('def f():\n    line = f"no file matches {n}"\n    sys.stderr.write(line)', ["no file matches {n}"]),
        ('print("no file matches", name, file=sys.stderr)', ["no file matches {name}"]),
        ('print("a line on standard output")', []),
        ('sys.stderr.write(f"some tool: {error}\\n")', []),
        ('outcome.error("producer_byte_rate")', []),
        ("self.cluster.fail(error)", []),
        ('wait_until(subject, is_listed, f"topic {name} exists")', ["timed out waiting until topic {name} exists"]),
        ('wait_until(subject, is_set, f"{key}={value}")', ["timed out waiting until {key}={value}"]),
        (
            'def f():\n    event = f"broker {i} leads"\n    wait_until(subject, leads, event)',
            ["timed out waiting until broker {i} leads"],
        ),
        ("self._wait_until(now_ms + delay_ms)", []),
    ],
)
def test_sampler_of_texts_extracts_the_texts_of_error_messages_from_source_code(code: str, texts: list[str]) -> None:
    assert list(source_texts.messages(ast.parse(code))) == texts


def test_sampler_of_texts_collects_timeout_messages_of_the_conformance_suite() -> None:
    raised = source_texts.messages(ast.parse(Path(scene.__file__).read_text()))
    assert f"{source_texts.TIMEOUT}{{expected_event}}" in raised
    text = f"{source_texts.TIMEOUT}broker 0 is the only in-sync replica of {{strict.name}}-0 and of {{easy.name}}-0"
    assert ("kafkaproto/conformance/test_in_sync.py", text) in samples.KINDS["messages"].texts()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [name for name, kind in samples.KINDS.items() if kind.size])
def test_sampler_of_texts_draws_equal_samples_for_equal_seeds(kind: str) -> None:
    sample = samples.draw(kind, 1)
    assert sample == samples.draw(kind, 1) and sample["texts"] != samples.draw(kind, 2)["texts"]
    assert len(sample["texts"]) == samples.KINDS[kind].size
    assert max(Counter(text["file"] for text in sample["texts"]).values()) <= samples.MOST_PER_FILE


def test_clarity_sample_fails_if_one_of_two_readers_rates_2_of_20_texts_as_unclear(tmp_path: Path) -> None:
    samples_file = tmp_path / "samples.json"
    size = 20

    def sample() -> dict[str, Any]:
        texts = [{"file": "a.py", "text": "a text"} for _ in range(size)]
        return {"kind": "messages", "seed": 1, "commit": "abc", "texts": texts}

    for second, verdict in (([True] * size, "holds"), ([False, False] + [True] * (size - 2), "failed")):
        samples.keep(sample(), ([True] * size, second), samples_file)
        assert samples.outcome(json.loads(samples_file.read_text())[-1]).endswith(verdict)
    with pytest.raises(ValueError, match=f"must have {size} values"):
        samples.keep(sample(), ([True], [True]), samples_file)


def test_sample_of_help_texts_omits_texts_rated_clear_in_their_latest_rating(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [("tool", name) for name in ("clear", "fixed", "spoilt", "doubtful", "unrated")]
    samples_file = tmp_path / "samples.json"
    monkeypatch.setattr(samples, "KEPT", samples_file)
    monkeypatch.setitem(samples.KINDS, "helps", samples.Kind(None, lambda: texts))

    def rate(seed: int, **clear: tuple[bool, bool]) -> str:
        rated = [{"file": "tool", "text": text} for text in clear]
        sample = {"kind": "helps", "seed": seed, "commit": "abc", "texts": rated}
        samples.keep(sample, [[of_text[reader] for of_text in clear.values()] for reader in range(2)], samples_file)
        return list(samples.outcomes())[-2].rpartition(" ")[2]

    assert rate(1, clear=(True, True), fixed=(False, False), spoilt=(True, True), removed=(True, True)) == "failed"
    assert rate(2, fixed=(True, True), spoilt=(True, False), doubtful=(False, True)) == "failed"
    assert rate(3, clear=(True, True)) == "holds"
    drawn = [text["text"] for text in samples.draw("helps", 4)["texts"]]
    assert drawn == ["spoilt", "doubtful", "unrated"]
    assert len(samples.draw("helps", 4, with_clear=True)["texts"]) == len(texts)
    last = list(samples.outcomes())[-1]
    assert last == "helps: 2 of 5 present texts are clear to both readers in their latest rating"


def test_help_text_needs_a_new_clarity_rating_if_its_program_or_wording_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples_file = tmp_path / "samples.json"
    monkeypatch.setattr(samples, "KEPT", samples_file)
    sample = {"kind": "helps", "seed": 1, "commit": "abc", "texts": [{"file": "tool", "text": "a name"}]}
    samples.keep(sample, [[True], [True]], samples_file)
    present = [("tool", "a name"), ("other tool", "a name"), ("tool", "the name")]
    monkeypatch.setitem(samples.KINDS, "helps", samples.Kind(None, lambda: present))
    assert samples.clear_helps() == [("tool", "a name")]


@pytest.mark.parametrize(
    ("options", "texts"), [([], ["unclear"]), (["--all"], ["clear", "unclear"])], ids=["default", "all"]
)
def test_help_text_sampling_omits_texts_rated_clear_unless_option_all_is_given(
    options: list[str],
    texts: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    samples_file = tmp_path / "samples.json"
    monkeypatch.setattr(samples, "KEPT", samples_file)
    present = [("tool", "clear"), ("tool", "unclear")]
    monkeypatch.setitem(samples.KINDS, "helps", samples.Kind(None, lambda: present))
    rated = [{"file": file, "text": text} for file, text in present]
    samples.keep(
        {"kind": "helps", "seed": 1, "commit": "abc", "texts": rated}, [[True, False], [True, True]], samples_file
    )
    monkeypatch.setattr("sys.argv", ["samples", "draw", "helps", "2", *options])
    assert samples.main() == 0
    assert [text["text"] for text in json.loads(capsys.readouterr().out)["texts"]] == texts


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.spark if kind == "helps" else ()) for kind in samples.KINDS]
)
def test_repository_contains_no_text_that_both_readers_have_rated_as_unclear(kind: str) -> None:
    unclear = samples.unclear(kind) - samples.of_kafka()
    assert [(path, text) for path, text in samples.KINDS[kind].texts() if text in unclear] == []


def test_each_stored_sample_of_texts_has_two_complete_ratings_and_a_unique_seed() -> None:
    """A sample that failed stays in the file, too: `python -m tests.documentation.samples` prints which one of a kind is the latest."""
    stored_samples = json.loads(samples.KEPT.read_text())
    assert len({(sample["kind"], sample["seed"]) for sample in stored_samples}) == len(stored_samples)
    for sample in stored_samples:
        texts = samples.KINDS[sample["kind"]].size or len(sample["texts"])
        ratings = list(zip(*(text["clear"] for text in sample["texts"]), strict=True))
        assert [len(rating) for rating in ratings] == [texts] * 2
        holds = min(map(sum, ratings)) >= samples.needed(sample["kind"], texts)
        assert samples.outcome(sample).endswith("holds" if holds else "failed")
