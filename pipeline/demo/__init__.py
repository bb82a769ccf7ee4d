"""The demo: the tools that people use, against three brokers of this project. `make demo`, or `python -m kafkaproto.pipeline.demo`.

Each module is one step: a function that does the work and returns what was expected and what was seen. The steps talk to the brokers
over sockets only, as any program would.
"""
