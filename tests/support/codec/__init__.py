"""Helpers for the codec's tests: every message layout, example messages and random values."""
