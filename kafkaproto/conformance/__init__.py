"""The conformance suite: black-box tests of any Kafka broker over its socket.

Install it with `pip install '.[conformance]'` in a checkout and run `kafkaproto conformance --bootstrap HOST:PORT`. The tests use only the
protocol, never the inside of a broker.
"""

from pkgutil import iter_modules

try:
    import pytest
except ModuleNotFoundError:  # the command's help must work without the extra
    pass
else:
    # A failing assert in a helper shows its values, as in a test module. pytest 9.2 warns if the package, which is imported already, is named.
    pytest.register_assert_rewrite(*(f"{__name__}.{module.name}" for module in iter_modules(__path__)))
