"""One page that people look at: the verdict of the audit, the answers as tables and pictures, the queries behind them."""
