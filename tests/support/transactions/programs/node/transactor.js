// Transactions with KafkaJS. Speaks the line protocol of lines.py.

const readline = require("readline");
const { Kafka, logLevel } = require("kafkajs");

const PATIENCE_MS = 15000;
let producer;
let transaction;
let group;

function kafka({ bootstrap, transactional_id: clientId = "reader" }) {
  // KafkaJS looks up a coordinator at a random broker, also at a stopped one: the 5 retries by default are sometimes too few.
  const retry = { retries: 12, maxRetryTime: 1000 };
  return new Kafka({ brokers: bootstrap.split(","), clientId, logLevel: logLevel.NOTHING, retry });
}

async function act(command) {
  switch (command.command) {
    case "init":
      group = command.group;
      producer = kafka(command).producer({
        transactionalId: command.transactional_id,
        transactionTimeout: command.timeout_ms,
        idempotent: true,
        maxInFlightRequests: 1,
      });
      await producer.connect();
      // KafkaJS asks for a producer id, which fences another instance, when it begins its first transaction.
      await (await producer.transaction()).abort();
      return {};
    case "begin":
      transaction = await producer.transaction();
      return {};
    case "send":
      await transaction.send({
        topic: command.topic,
        acks: -1,
        messages: [{ partition: command.partition, value: command.value }],
      });
      return {};
    case "offsets": {
      const partitions = [{ partition: 0, offset: String(command.offset) }];
      await transaction.sendOffsets({ consumerGroupId: group, topics: [{ topic: command.topic, partitions }] });
      return {};
    }
    case "commit":
      await transaction.commit();
      return {};
    case "abort":
      await transaction.abort();
      return {};
    case "read":
      return { values: await read(command) };
  }
  throw new Error(`unknown command ${command.command}`);
}

// KafkaJS reads as a member of a group only.
async function read(command) {
  const values = Array.from({ length: command.partitions }, () => []);
  const consumer = kafka(command).consumer({
    groupId: `reader-${command.topic}-${command.isolation}-${process.pid}`,
    readUncommitted: command.isolation === "read_uncommitted",
    maxWaitTimeInMs: 100,
  });
  await consumer.connect();
  await consumer.subscribe({ topics: [command.topic], fromBeginning: true });
  let open = command.partitions;
  await new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`the topic ends after ${JSON.stringify(values)}`)), PATIENCE_MS);
    const eachMessage = async ({ partition, message }) => {
      values[partition].push(message.value.toString());
      if (message.value.toString() === command.last && --open === 0) {
        clearTimeout(timer);
        setTimeout(resolve, command.further_ms);
      }
    };
    consumer.run({ autoCommit: false, eachMessage }).catch(reject);
  });
  await consumer.disconnect();
  return values;
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    let response;
    try {
      response = { error: null, ...(await act(JSON.parse(line))) };
    } catch (error) {
      response = { error: error.type || error.name, message: String(error.message) };
    }
    process.stdout.write(JSON.stringify(response) + "\n");
  }
  process.exit(0);
}

main();
