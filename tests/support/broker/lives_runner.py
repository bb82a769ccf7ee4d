"""Runs the broker's command line again and again in a process of its own each, forked from one that has loaded everything.

A line on stdin is the arguments (JSON). The child prints its process id, then what the broker prints. When it has ended the
parent prints "ended".
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
