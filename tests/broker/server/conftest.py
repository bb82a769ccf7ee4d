"""No test on sockets may leave an error in a log."""

from tests.support.logged_errors import errors_expected, no_errors

__all__ = ["errors_expected", "no_errors"]
