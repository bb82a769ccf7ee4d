"""The report: one page with the result of the audit, the answers as tables and figures, and the queries behind them."""
