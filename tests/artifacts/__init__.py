"""What commit 7c3b0af left on disk: newer code must be able to go on with it (see README.md)."""
