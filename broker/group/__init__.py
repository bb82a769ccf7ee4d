"""Classic consumer groups: members, generations, assignments, committed offsets.

`coordinator` handles the requests, `rebalance` moves a group from one generation to the next, `group` holds the state of a single group, `commits`
and `offsets` hold committed offsets, `placement` decides which broker coordinates a group. This package does not depend on wire messages or clocks.
"""
