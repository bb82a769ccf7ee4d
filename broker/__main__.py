"""`python -m broker`: the same as `kafkaproto broker`."""

import gc
import sys

gc.disable()  # nothing that imports leave is garbage; `main` turns it on again

from broker.server.main import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
