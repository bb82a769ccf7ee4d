"""The list "What is not done yet" of the README, made from what the code says of itself: a gap list kept by hand rots.

usage: python -m tests.not_done [--write]
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from kafkaproto.api import APIS
from kafkaproto.broker.cluster import Cluster
from kafkaproto.broker.config.definitions import BROKER_SETTINGS, TOPIC_SETTINGS
from kafkaproto.broker.config.release import RELEASES
from kafkaproto.releases import versions

PAGE = Path(__file__).resolve().parent.parent / "README.md"
BEGIN, END = "<!-- not done -->", "<!-- /not done -->"

KAFKA_3_9 = {APIS[key].name: (key, low, high) for key, (low, high) in sorted(versions("3.9").items()) if key in APIS}
"""Name to (key, lowest, highest version) of all stable APIs on the listener of a 3.9 broker, those between brokers left out."""


def missing_apis() -> list[str]:
    """What is not answered at all, by key."""
    offered = Cluster().apis
    return [name for name, (key, _, _) in KAFKA_3_9.items() if key not in offered]


def narrower_apis() -> list[str]:
    """What is answered in fewer versions than Kafka 3.9 has."""
    offered = Cluster().apis
    found = []
    for name, (key, low, high) in KAFKA_3_9.items():
        one = offered.get(key)
        if one is not None and (one.min_version, one.max_version) != (low, high):
            found.append(f"{name} {one.min_version} to {one.max_version} (Kafka: {low} to {high})")
    return found


def settings_without_effect() -> list[str]:
    """Settings that are accepted and, so far, change nothing."""
    broker = {name for name, setting in BROKER_SETTINGS.items() if not setting.acts}
    return sorted(broker) + sorted(
        name for name, setting in TOPIC_SETTINGS.items() if not setting.acts and name not in broker
    )


def text() -> str:
    """The list, as the README has it."""
    missing, narrower, idle = missing_apis(), narrower_apis(), settings_without_effect()
    lines = [
        f"- **APIs of Kafka 3.9 that are not answered yet ({len(missing)} of {len(KAFKA_3_9)}):** {', '.join(missing) or 'none'}. "
        "They are not advertised either, so clients know.",
        f"- **APIs answered in fewer versions:** {', '.join(narrower) or 'none'}.",
        f"- **Releases:** {', '.join(RELEASES)} and no other.",
        f"- **Settings that are accepted, and say so when set, but change nothing yet ({len(idle)}):** "
        + ", ".join(f"`{name}`" for name in idle)
        + ".",
    ]
    return "\n".join(lines)


def rewritten(page: str) -> str:
    """The README with the list as it should be. Raises ValueError when it has no place for it."""
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        raise ValueError(f"README.md must have {BEGIN} and {END} once")
    return re.sub(f"{BEGIN}.*{END}", lambda _: f"{BEGIN}\n{text()}\n{END}", page, flags=re.DOTALL)


def main() -> int:
    page = PAGE.read_text()
    wanted = rewritten(page)
    if "--write" in sys.argv[1:]:
        PAGE.write_text(wanted)
        return 0
    if page != wanted:
        sys.stderr.write(
            "README.md: the list of what is not done is not current; run python -m tests.not_done --write\n"
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
