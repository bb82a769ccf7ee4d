"""Random mutations of `broker/`: how many of thirty committed seeds the tests catch.

`sites` finds the places, `runs` tests one mutated tree, `results` writes RESULTS.md.
"""
