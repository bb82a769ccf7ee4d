"""The command `kafkaproto broker`: run `python -m broker` in a checkout, or `python -m kafkaproto.broker` with the installed package."""

import sys

from kafkaproto.cli import broker

if __name__ == "__main__":
    sys.exit(broker(sys.argv[1:]))
