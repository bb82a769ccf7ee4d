"""Golden runs: fixed virtual runs of the broker with committed bytes, so that every change of behaviour is noticed."""
