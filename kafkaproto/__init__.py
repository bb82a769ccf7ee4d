"""Kafka's wire protocol: bytes to objects and back.

Knows no socket, no clock, no asyncio and no broker. Importing the package imports nothing else: messages are loaded
one API at a time by :func:`kafkaproto.api.codec`.
"""
