"""The demo: popular Kafka clients and Spark against three brokers of this project. `make demo`, or `python -m kafkaproto.pipeline.demo`.

Each module is one step: a function that runs clients and returns expected and actual results. The clients connect to the brokers over sockets, as in
any program.
"""
