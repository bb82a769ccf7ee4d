"""Helpers for the pipeline's tests: recorded traces, faulty traces, captures and real clients."""
