"""Changes the resources of an AlterConfigs or IncrementalAlterConfigs request one by one, each with its own result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from kafkaproto.broker.errors import KafkaError
from kafkaproto.error_codes import ErrorCode


class NamedResource(Protocol):
    """Interface of a resource in a request: the fields that AlterConfigs and IncrementalAlterConfigs have in common."""

    resource_type: int
    resource_name: str


A = TypeVar("A", bound=NamedResource)


def one_by_one(resources: Sequence[A], alter: Callable[[A], None]) -> Iterator[tuple[A, int, str | None]]:
    """Change the resources of a request one by one, and yield (entry of the request, error code, message) for each.

    alter: a function that changes one resource, or raises KafkaError. Without an error the code is 0 and the message None. If two entries
    name the same resource, neither is applied, and each has error INVALID_REQUEST (42).
    """
    times = Counter((resource.resource_type, resource.resource_name) for resource in resources)
    for resource in resources:
        try:
            if times[(resource.resource_type, resource.resource_name)] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            alter(resource)
        except KafkaError as error:
            yield resource, error.error_code, error.message
        else:
            yield resource, 0, None
