"""Real client libraries against the broker, over sockets.

They are imported here, once, because kafka-python warns while it is imported; what our own code warns of stays an error.
"""

import warnings

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", r".*Use files\(\) instead", DeprecationWarning)
    import aiokafka  # noqa: F401
    import kafka
    import kafka.admin  # noqa: F401

KAFKA_PYTHON_WARNINGS = r"ignore:.*Use files\(\) instead:DeprecationWarning"
"""For `pytest.mark.filterwarnings`: kafka-python reads its message definitions by an old function when it first needs them."""
