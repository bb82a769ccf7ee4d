"""Code blocks of the README and of docs/ do what their pages say, and the runner notices a block that does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.documentation.blocks import ROOT, PageError, blocks, run_page

FAST = ("docs/index.md", "docs/tutorial.md")
"""Pages that `make test` runs: the first ones that a newcomer reads."""
SPARK = (
    "README.md",
    "docs/how-to/spark.md",
    "docs/how-to/kafka-py.md",
    "docs/how-to/report-in-ci.md",
    "docs/how-to/captures.md",
)


def _pages() -> list[object]:
    """Return a parameter for each page with code blocks, with the markers that name what the page needs."""
    paths = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    names = [path.relative_to(ROOT).as_posix() for path in paths if blocks(path.read_text())]
    return [pytest.param(name, id=name, marks=_markers(name)) for name in names]


def _markers(name: str) -> list[pytest.MarkDecorator]:
    if name in FAST:
        return []
    return [pytest.mark.spark, pytest.mark.slow] if name in SPARK else [pytest.mark.slow]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", _pages())
def test_every_code_block_of_a_documentation_page_runs_without_error(name: str, tmp_path: Path) -> None:
    run_page(ROOT / name, tmp_path)


def run(tmp_path: Path, text: str) -> int:
    page = tmp_path / "page.md"
    page.write_text(text)
    folder = tmp_path / "empty"
    folder.mkdir()
    return run_page(page, folder)


def test_documentation_runner_returns_the_number_of_code_blocks_that_it_ran(tmp_path: Path) -> None:
    page = """
<!-- run: background -->
```bash
kafkaproto broker --topic orders
```

- In a list:

  <!-- run: file greeting.txt -->
  ```toml
  hello = 1
  ```

```python
from pathlib import Path

print(Path("greeting.txt").read_text().strip(), "localhost:9092")
```
```text
hello = 1 ...:9092
```
```bash
exec 3<>/dev/tcp/127.0.0.1/9092; echo open; echo two; echo three
```
```text
open
...
```
<!-- run: status 3 -->
```bash
exit 3
```
<!-- run: needs a container engine -->
```bash
docker compose up
```
"""
    assert run(tmp_path, page) == 4


@pytest.mark.parametrize(
    ("page", "fault"),
    [
        ("```bash\nfalse\n```", r"page.md:2 \(bash\): exit status 1 instead of 0"),
        ("<!-- run: status 2 -->\n```bash\ntrue\n```", "exit status 0 instead of 2"),
        ("```python\nassert 1 == 2\n```", "AssertionError"),
        ("```python\ndef test_wrong():\n    assert 1 == 2\n```", "1 failed"),
        ("```bash\necho right\n```\n```text\nwrong\n```", "the output is\nright"),
        ("```bash\necho right; echo more\n```\n```text\nright\n```", "more"),
        ("```text\noutput\n```", "a block of output without a block above it"),
        ("```java\nclass A {}\n```", "a block in java needs a directive"),
        ("```\nno language\n```", "a block in no language needs a directive"),
        ("<!-- run: background -->\n```bash\nexit 1\n```", "ended at once"),
        ("<!-- run: sometimes -->\n```bash\ntrue\n```", "unknown directive 'sometimes'"),
        ("<!-- run: needs luck -->\n```bash\ntrue\n```", "unknown need 'luck'"),
        ("<!-- run: needs a container engine -->\n```bash\nif\n```", "syntax error"),
        ("<!-- run: needs a container engine -->\n```python\nif\n```", "invalid syntax"),
        ("<!-- run: needs a container engine -->\n```yaml\na: [\n```", "expected the node content"),
        ("<!-- run: needs a container engine -->\n```java\nclass A {}\n```", "cannot be checked"),
        ("<!-- run: needs a checkout -->\n```bash\nmake coffee\n```", "no target .*: make coffee"),
        (
            "<!-- run: needs a checkout -->\n```bash\npip install '.[coffee]'\n```",
            r"no extra .*: pip install '.\[coffee\]'",
        ),
        ("<!-- run: needs a checkout -->\n```bash\nrm -r x\n```", "no extra of the package: rm -r x"),
    ],
)
def test_documentation_runner_raises_page_error_for_a_code_block_that_fails(
    tmp_path: Path, page: str, fault: str
) -> None:
    with pytest.raises(PageError, match=fault):
        run(tmp_path, page + "\n")


def test_documentation_runner_uses_pytest_for_a_code_block_that_contains_tests(tmp_path: Path) -> None:
    assert run(tmp_path, "```python\ndef test_it(kafka_cluster):\n    kafka_cluster.produce('a', ['b'])\n```\n") == 1
