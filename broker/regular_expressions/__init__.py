"""Regular expressions in the syntax of RE2J 1.8, which clients use to select topics (KIP-848) and transactional ids (KIP-1152).

`parser` translates an expression to a program (a list of instructions), and `pattern` runs programs. This package imports nothing else of the
broker.
"""
