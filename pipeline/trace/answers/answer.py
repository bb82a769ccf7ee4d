"""What an answer is: a question, and tables that are small however large the trace was, each with the query that made it.

Must never know an answer, nor how it is shown.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from kafkaproto.pipeline.trace.audit.rule import NAMES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafkaproto.pipeline.trace.audit.rule import Tables

MOST_ROWS = 1000
"""Of one table of an answer; who wants more asks its query."""

GIVEN_UP = "NOT answered AND coalesce(acks, -1) <> 0"
"""SQL: a request without the answer that it should have had. Its connection ended first, as each consumer's does that is closed while a fetch
waits, or a capture has not the answer."""
WHOLE = "answered AND trouble IS NULL"
"""SQL: a request whose answer is known whole."""

FAMILY = (
    "regexp_replace(regexp_replace(coalesce(client_id, '(none)'), '[0-9a-f]{{8}}(-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}', '*'), "
    "'(^|-)[0-9]+(?=-|$)', '$1*')"
)
"""SQL: a client-id without what differs between clients of one kind: UUIDs, and numbers between dashes or at the end. Its braces are doubled, as
`Tables.sql` takes them."""


class Query(NamedTuple):
    """One table of an answer. make: SQL for `Tables.sql`, or a function that returns the rows."""

    name: str
    about: str
    make: str | Callable[[Tables], DataFrame]

    @property
    def source(self) -> str:
        """The query as a reader can run it over views with the names of the tables, or the source of the function."""
        if isinstance(self.make, str):
            return inspect.cleandoc(self.make).format(**dict(zip(NAMES, NAMES, strict=True)))
        return f"# {self.make.__module__}\n{inspect.getsource(self.make)}"

    def frame(self, tables: Tables) -> DataFrame:
        """Rows, not yet computed. Raises what Spark raises."""
        return tables.sql(self.make) if isinstance(self.make, str) else self.make(tables)


class Answer(NamedTuple):
    """name: of its folder and its place in the report. question: as a user asks it."""

    name: str
    question: str
    queries: tuple[Query, ...]


class Found(NamedTuple):
    """A table as it came out: at most `MOST_ROWS` rows, `more` if there were others."""

    query: Query
    columns: list[str]
    rows: list[dict[str, Any]]
    more: bool


def found(query: Query, tables: Tables) -> Found:
    frame = query.frame(tables)
    rows = [
        {name: float(value) if isinstance(value, Decimal) else value for name, value in row.asDict().items()}
        for row in frame.limit(MOST_ROWS + 1).collect()
    ]
    return Found(query, frame.columns, rows[:MOST_ROWS], len(rows) > MOST_ROWS)
