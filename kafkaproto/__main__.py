"""Entry point of `python -m kafkaproto`, which does the same as the command `kafkaproto`."""

import sys

from kafkaproto.cli import main

if __name__ == "__main__":
    sys.exit(main())
