"""`python -m broker`: the same as `kafkaproto broker`."""

import sys

from broker.server.main import main

if __name__ == "__main__":
    sys.exit(main())
