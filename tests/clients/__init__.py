"""Real client libraries against the broker, over sockets.

kafka-python warns while it is imported, so `tests.support.clients` imports it before any test module here does.
"""

import tests.support.clients  # noqa: F401
