"""Helpers for the broker's tests: models that judge it, and fixed scenes."""
