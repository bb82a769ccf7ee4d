"""The list of missing features, generated from the APIs and settings in the code, so that it cannot become outdated."""

from __future__ import annotations

import re

from kafkaproto.api import APIS
from kafkaproto.broker.cluster import Cluster
from kafkaproto.broker.config.definitions import definitions_of
from kafkaproto.broker.config.release import RELEASES
from kafkaproto.releases import versions

BEGIN, END = "<!-- not done -->", "<!-- /not done -->"

KAFKA_3_9 = {APIS[key].name: (key, low, high) for key, (low, high) in sorted(versions("3.9").items()) if key in APIS}
"""Name to (key, lowest version, highest version) of the stable APIs on a client listener of Kafka 3.9."""


def missing_apis() -> list[str]:
    """Return the names of the unsupported APIs of Kafka 3.9, ordered by key."""
    offered = Cluster().apis
    return [name for name, (key, _, _) in KAFKA_3_9.items() if key not in offered]


def narrower_apis() -> list[str]:
    """Return the APIs with fewer versions than in Kafka 3.9, with both ranges."""
    offered = Cluster().apis
    narrower = []
    for name, (key, low, high) in KAFKA_3_9.items():
        api = offered.get(key)
        if api is not None and (api.min_version, api.max_version) != (low, high):
            narrower.append(f"{name} {api.min_version} to {api.max_version} (Kafka: {low} to {high})")
    return narrower


def settings() -> str:
    """Return how many settings each release has, and how many of them have an effect here."""
    parts = []
    for release in ("3.9", "4.2"):
        definitions = definitions_of(release)
        every = [s for table in (definitions.broker, definitions.topic, definitions.group) for s in table.values()]
        kafkas = [s for s in every if not s.hidden and not s.foreign]
        acting, refused = sum(s.acts for s in kafkas), sum(s.refusal is not None for s in kafkas)
        parts.append(
            f"of the {len(kafkas)} settings of Kafka {definitions.table}, {acting} act and {refused} accept only certain values"
        )
    return "; ".join(parts)


def text() -> str:
    """Return the list as Markdown."""
    missing, narrower = missing_apis(), narrower_apis()
    lines = [
        f"- **Missing APIs:** {', '.join(missing) or 'none'} of the {len(KAFKA_3_9)} of Kafka 3.9; of Kafka 4.2, those of share and streams groups. "
        "They are not advertised, so clients see that they are missing.",
        f"- **APIs served in fewer versions:** {', '.join(narrower) or 'none'}.",
        f"- **Releases:** `--release` takes {', '.join(RELEASES[:-1])} and {RELEASES[-1]}, and no other release.",
        f"- **Settings:** {settings()}. The rest are accepted and described and change nothing; the log says so when one is set at start.",
    ]
    return "\n".join(lines)


def rewritten(page: str) -> str:
    """Return the page with the current list. Raises ValueError if the page has no place for it."""
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        raise ValueError(f"the page must have {BEGIN} and {END} once")
    return re.sub(f"{BEGIN}.*{END}", lambda _: f"{BEGIN}\n{text()}\n{END}", page, flags=re.DOTALL)
