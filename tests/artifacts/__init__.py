"""Files written by commit 7c3b0af, which newer code must still be able to use (see README.md)."""
