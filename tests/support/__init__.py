"""Helpers that test modules share, by area. Modules at this level are used by several areas."""
