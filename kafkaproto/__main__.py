"""`python -m kafkaproto`: runs the script `kafkaproto`."""

import sys

from kafkaproto.cli import main

if __name__ == "__main__":
    sys.exit(main())
