"""Golden runs: fixed virtual runs of the broker whose bytes are committed, so that no change of behaviour goes unnoticed."""
