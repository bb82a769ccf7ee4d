"""Real client libraries against the broker, over sockets.

kafka-python emits warnings on import, so `tests.support.clients` imports it before any test module here does.
"""

import tests.support.clients  # noqa: F401
