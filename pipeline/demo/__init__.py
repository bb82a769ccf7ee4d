"""The demo: popular Kafka clients and Spark against three brokers of this project. `make demo`, or `python -m kafkaproto.pipeline.demo`.

Each module is one step: a function that does the work and returns expected and actual results. The steps connect to the brokers over
sockets, as any program would.
"""
