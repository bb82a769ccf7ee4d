"""A streaming job that shows which clients are throttled or lag now, and sends an alert for a client that reaches a limit.

It reads the topic in which the broker of this project publishes its journal: throttles, and the offsets that clients reach.
"""
