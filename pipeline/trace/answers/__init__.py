"""What people want to know of recorded traffic: each answer a few small tables, made by Spark from the tables of a trace."""
