"""The report: one page with the result of the audit, tables and figures that answer questions about the traffic, and their queries."""
