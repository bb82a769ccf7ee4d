"""`python -m broker` in a checkout, `python -m kafkaproto.broker` anywhere: the command `kafkaproto broker`."""

import sys

from kafkaproto.cli import broker

if __name__ == "__main__":
    sys.exit(broker(sys.argv[1:]))
