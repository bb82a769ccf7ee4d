"""A streaming job over the broker's journal topic: who is throttled and who lags, now, and alerts where it is too much."""
