"""Transactions: the coordinator of transactional producers, its state in `__transaction_state`, and the markers that end transactions."""
