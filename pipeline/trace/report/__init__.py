"""The report: one page with the verdict of the audit, the answers as tables and figures, and the queries behind them."""
