"""A streaming job over the broker's journal topic: shows which clients are throttled or lag now, and alerts if they exceed a limit."""
