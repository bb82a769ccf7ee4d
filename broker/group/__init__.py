"""Consumer groups, classic ones and those of the new protocol (KIP-848): members, generations or epochs, assignments, committed offsets.

For classic groups, `coordinator` handles the requests, `rebalance` moves a group from one generation to the next, and `group` holds the state of a
single group. `consumer_coordinator`, `transitions` and `consumer_group` are the corresponding modules for the new protocol. `commits` and `offsets`
handle committed offsets, `placement` decides which broker coordinates a group. This package does not depend on wire messages or clocks.
"""
