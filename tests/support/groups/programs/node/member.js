// A group member with KafkaJS, which has no static members, one assignor and no rebalance callbacks. Speaks the line protocol of lines.py.
//
// KafkaJS 2.2.4 does not look for another coordinator when its broker is gone. When its retries are exhausted, the consumer crashes and is
// started again by KafkaJS. Meanwhile, commitOffsets returns without an error and without a commit: only its event says what is committed.

const fs = require("fs");
const readline = require("readline");
const { Kafka, logLevel } = require("kafkajs");

let name;
let positions = new Map();
let owned = [];
let previous = null;
let stopping = false;

// process.stdout would make the pipe non-blocking for all programs that share it.
function emit(event, fields = {}) {
  fs.writeSync(1, JSON.stringify({ member: name, event, ...fields }) + "\n");
}

function assigned(assignment) {
  revoked();
  // A rebalance may end while the consumer stops: it then leaves the group without reading.
  if (stopping) return;
  owned = Object.entries(assignment).flatMap(([topic, indexes]) => indexes.map((index) => [topic, index]));
  emit("assigned", { partitions: owned });
}

function revoked() {
  if (owned.length) emit("revoked", { partitions: owned });
  owned = [];
  positions = new Map();
  previous = null;
}

function rebalancing() {
  const before = previous ?? { partitions: owned, positions };
  revoked();
  previous = before;
}

// When the broker dies before it responds to JoinGroup, KafkaJS continues with its previous assignment until a heartbeat makes it join again.
// It has no event for this. The history checks that no other member has owned these partitions meanwhile. When the broker dies before it
// responds to SyncGroup, this fails: docs/how-to/kafkajs.md describes this bug of KafkaJS, so tests must not kill a broker then.
function continueWithPrevious() {
  ({ partitions: owned, positions } = previous);
  previous = null;
  emit("assigned", { partitions: owned, positions: [...positions.values()] });
}

// KafkaJS waits for running batches before it joins again. Batches of revoked partitions are faults if another member has owned them meanwhile.
// Only when it stops, it processes them after the program has reported the partitions as revoked: it has no event between the last batch and
// its LeaveGroup request. It is still a member then, and these records are not committed: the next owner reads them.
function report(batch) {
  if (stopping) return;
  if (previous) continueWithPrevious();
  const records = batch.messages.map(({ offset }) => [batch.topic, batch.partition, Number(offset)]);
  for (let begin = 0; begin < records.length; begin += 50) emit("records", { records: records.slice(begin, begin + 50) });
  positions.set(`${batch.topic}/${batch.partition}`, [batch.topic, batch.partition, Number(batch.lastOffset()) + 1]);
}

async function commit(consumer) {
  const offsets = [...positions.values()].map(([topic, partition, offset]) => ({ topic, partition, offset: String(offset) }));
  try {
    if (offsets.length) await consumer.commitOffsets(offsets);
  } catch (error) {
    emit("commit failed", { error: String(error) });
  }
}

function committed(topics) {
  const offsets = topics.flatMap(({ topic, partitions }) =>
    partitions.map(({ partition, offset }) => [topic, Number(partition), Number(offset)])
  );
  emit("committed", { offsets });
}

async function consume(consumer, topics) {
  stopping = false;
  await consumer.subscribe({ topics, fromBeginning: true });
  await consumer.run({ autoCommit: false, eachBatch: async ({ batch }) => report(batch) });
}

async function main() {
  fs.writeSync(1, '{"event": "ready"}\n');
  const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  const start = JSON.parse((await lines.next()).value);
  name = start.member;
  const kafka = new Kafka({ brokers: start.bootstrap.split(","), clientId: name, logLevel: logLevel.NOTHING });
  const consumer = kafka.consumer({
    groupId: start.group,
    sessionTimeout: start.session_timeout_ms,
    heartbeatInterval: 300,
    maxWaitTimeInMs: 100,
    metadataMaxAge: 2000,
    retry: { retries: 4, initialRetryTime: 100, maxRetryTime: 1000 },
  });
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => assigned(payload.memberAssignment));
  consumer.on(consumer.events.REBALANCING, rebalancing);
  consumer.on(consumer.events.CRASH, revoked);
  consumer.on(consumer.events.COMMIT_OFFSETS, ({ payload }) => committed(payload.topics));
  await consumer.connect();
  await consume(consumer, start.topics);
  for (;;) {
    const { value, done } = await lines.next();
    const command = done ? { command: "stop" } : JSON.parse(value);
    if (command.command === "commit") await commit(consumer);
    else {
      stopping = true;
      revoked();
      await consumer.stop();
      if (command.command === "stop") break;
      await consume(consumer, command.topics);
    }
  }
  await consumer.disconnect();
  emit("stopped");
  process.exit(0);
}

main();
