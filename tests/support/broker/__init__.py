"""Helpers for the broker's tests: reference models and fixed scenarios."""
