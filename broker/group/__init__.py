"""Classic consumer groups: members, generations, assignments, committed offsets.

`coordinator` takes the requests, `rebalance` moves a group from one generation to the next, `group` is what is true of one,
`commits` and `offsets` are what it has read, `placement` says which broker speaks for it. No wire messages, no clock.
"""
