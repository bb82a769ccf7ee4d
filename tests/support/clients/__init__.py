"""Real client libraries against the broker, over sockets.

The libraries are imported here once, because kafka-python emits warnings on import. Warnings from this project's code remain errors.
"""

import warnings

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", r".*Use files\(\) instead", DeprecationWarning)
    import aiokafka  # noqa: F401
    import kafka
    import kafka.admin  # noqa: F401

KAFKA_PYTHON_WARNINGS = r"ignore:.*Use files\(\) instead:DeprecationWarning"
"""For `pytest.mark.filterwarnings`: kafka-python loads its message definitions with a deprecated function on first use."""
