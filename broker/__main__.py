"""`python -m broker`: the same as `kafkaproto broker`."""

import sys

from kafkaproto_cli import broker

if __name__ == "__main__":
    sys.exit(broker(sys.argv[1:]))
