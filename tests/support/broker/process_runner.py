"""Run the broker's command line repeatedly, each time in a process forked from one that has imported all modules.

Each line on stdin holds the arguments as JSON. The child prints its process id, then the broker's output. When it exits, the parent prints
"ended".
"""

from __future__ import annotations

import json
import os
import sys

from kafkaproto.broker.requests.registry import load_handlers
from kafkaproto.broker.server.main import main

if __name__ == "__main__":
    load_handlers()
    for line in sys.stdin:
        child = os.fork()
        if not child:
            sys.stdout.write(f"{os.getpid()}\n")
            sys.stdout.flush()
            os._exit(main(json.loads(line)))
        os.waitpid(child, 0)
        sys.stdout.write("ended\n")
        sys.stdout.flush()
