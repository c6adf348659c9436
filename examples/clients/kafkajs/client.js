// kafkajs as a client program of ackproof: `npm ci && ackproof client check node client.js`.
"use strict";

const fs = require("node:fs");
const net = require("node:net");
const readline = require("node:readline");
const tls = require("node:tls");
const { Kafka, CompressionTypes } = require("kafkajs");
const { version } = require("kafkajs/package.json");

// Standard output is for answers: whatever a library prints goes to standard error.
console.log = console.error;
const CAPABILITIES = ["transactions", "tombstones", "subscription", "commits"];
const FATAL = ["PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", "INVALID_TXN_STATE", "INVALID_PRODUCER_ID_MAPPING"];
const BUFFER_MAX = 1000;
const openCalls = new Map();

const say = (message) => fs.writeSync(1, JSON.stringify(message) + "\n");

// Write a call's one answer; what the library says after that is dropped.
function answer(call, result) {
  if (openCalls.delete(call.call)) say({ call: call.call, ...result });
}

const nameOf = (error) => error.type || (error.cause && error.cause.type) || error.name || "Error";

function fail(call, kind, error) {
  answer(call, { end: kind === "refused" ? "fail" : "info", class: kind, error: nameOf(error), words: error.message });
}

const decoded = (text) => (text === undefined || text === null ? null : Buffer.from(text, "base64"));
const encoded = (bytes) => (bytes === null || bytes === undefined ? null : Buffer.from(bytes).toString("base64"));
const number = (properties, name) => Number(properties[name]);
const within = (promise, ms) => {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(Object.assign(new Error(`no result within ${ms} ms`), { name: "Late" })), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
};

// One producer or consumer: its calls are done in their order.
class Client {
  constructor() {
    this.last = Promise.resolve();
    this.sockets = new Set();
    this.cut = false;
  }

  take(call) {
    openCalls.set(call.call, call);
    this.last = this.last.then(() => this.perform(call));
  }

  async perform(call) {
    try {
      const request = number(call.properties || this.properties, "request.timeout.ms");
      const result = await within(Promise.resolve(this[call.method](call)), (call.timeout_ms || 0) + 3 * request);
      if (result) answer(call, { end: "ok", ...result });
    } catch (error) {
      fail(call, this.kindOf(error), error);
    }
  }

  kindOf() {
    return "failed";
  }

  // Sockets are kept, so that a crash can cut them.
  kafka(properties) {
    this.properties = properties;
    const secure = properties["security.protocol"] || "PLAINTEXT";
    const file = (name) => properties[name] && fs.readFileSync(properties[name]);
    return new Kafka({
      clientId: properties["client.id"],
      brokers: properties["bootstrap.servers"].split(","),
      requestTimeout: number(properties, "request.timeout.ms"),
      connectionTimeout: number(properties, "request.timeout.ms"),
      retry: { initialRetryTime: number(properties, "retry.backoff.ms"), maxRetryTime: 1000, retries: 5 },
      ssl: secure.includes("SSL")
        ? { ca: file("ssl.ca.location"), cert: file("ssl.certificate.location"), key: file("ssl.key.location") }
        : undefined,
      sasl: secure.startsWith("SASL")
        ? {
            mechanism: properties["sasl.mechanism"].toLowerCase(),
            username: properties["sasl.username"],
            password: properties["sasl.password"],
          }
        : undefined,
      socketFactory: ({ host, port, ssl, onConnect }) => {
        const socket = ssl ? tls.connect({ host, port, ...ssl }, onConnect) : net.connect({ host, port }, onConnect);
        this.sockets.add(socket);
        if (this.cut) socket.destroy();
        return socket;
      },
      logCreator: () => ({ log }) => process.stderr.write(`${log.message}\n`),
    });
  }

  async close(call) {
    await within(this.disconnect(), call.timeout_ms).catch(() => this.crashSockets());
    for (const left of [...openCalls.values()]) {
      if (left.client === call.client && left !== call)
        answer(left, { end: "info", class: "failed", error: "Closed" });
    }
    return {};
  }

  crashSockets() {
    this.cut = true;
    for (const socket of this.sockets) socket.destroy();
  }

  async crash(call) {
    this.crashSockets();
    this.disconnect().catch(() => {});
    this.disconnect = async () => {};
    return this.close(call);
  }
}

class Producer extends Client {
  async new_producer({ properties }) {
    this.limit = number(properties, "delivery.timeout.ms") + number(properties, "max.block.ms");
    this.producer = this.kafka(properties).producer({
      allowAutoTopicCreation: false,
      idempotent: properties["enable.idempotence"] === "true",
      maxInFlightRequests: number(properties, "max.in.flight.requests.per.connection"),
      metadataMaxAge: number(properties, "metadata.max.age.ms"),
      transactionalId: properties["transactional.id"],
      transactionTimeout: properties["transaction.timeout.ms"] && number(properties, "transaction.timeout.ms"),
    });
    await within(this.producer.connect(), number(properties, "max.block.ms"));
    return {};
  }

  kindOf(error) {
    if (FATAL.includes(nameOf(error))) return "fatal";
    return error.retriable && this.properties["transactional.id"] ? "retriable" : "failed";
  }

  // The library has no buffer: a send is a request, or several.
  send(call) {
    const headers = Object.fromEntries(Object.entries(call.headers || {}).map(([name, text]) => [name, decoded(text)]));
    const message = { key: decoded(call.key), value: decoded(call.value), partition: call.partition, headers };
    const sent = (this.transaction || this.producer).send({
      topic: call.topic,
      acks: number(this.properties, "acks"),
      timeout: number(this.properties, "request.timeout.ms"),
      compression: CompressionTypes[this.properties["compression.type"].toUpperCase()] || CompressionTypes.None,
      messages: [message],
    });
    within(sent, this.limit).then(
      ([told]) => answer(call, { end: "ok", offset: told && told.baseOffset >= 0 ? Number(told.baseOffset) : null }),
      (error) => fail(call, "failed", error),
    );
  }

  // The library does it when a transaction begins.
  async init_transactions() {
    const begun = await this.producer.transaction();
    await begun.abort();
    return {};
  }

  async begin_transaction() {
    this.transaction = await this.producer.transaction();
    return {};
  }

  async send_offsets({ offsets, member }) {
    const topics = offsets.map(({ topic, partition, offset }) => ({
      topic,
      partitions: [{ partition, offset: String(offset) }],
    }));
    await this.transaction.sendOffsets({ consumerGroupId: member.group, topics });
    return {};
  }

  async commit_transaction() {
    await this.transaction.commit();
    this.transaction = null;
    return {};
  }

  async abort_transaction() {
    await this.transaction.abort();
    this.transaction = null;
    return {};
  }

  async disconnect() {
    if (this.producer) await this.producer.disconnect();
  }
}

class Consumer extends Client {
  constructor() {
    super();
    this.records = [];
    this.woken = false;
    this.changed = () => {};
  }

  async new_consumer({ properties }) {
    this.library = this.kafka(properties);
    this.admin = this.library.admin();
    return {};
  }

  // The library reads in groups only: an assigned consumer is alone in a group of its own, and skips the rest.
  async assign({ offsets }) {
    const begins = new Map(offsets.map((each) => [`${each.topic}-${each.partition}`, each.offset ?? 0]));
    const group = `ackproof-assigned-${process.pid}-${Math.random()}`;
    const topics = [...new Set(offsets.map(({ topic }) => topic))];
    await this.read(group, topics, (topic, partition, offset) => offset >= begins.get(`${topic}-${partition}`));
    for (const { topic, partition, offset } of offsets)
      this.consumer.seek({ topic, partition, offset: String(offset ?? -2) });
    return {};
  }

  async subscribe(call) {
    await this.read(this.properties["group.id"], call.topics, () => true, (partitions) =>
      say({ call: call.call, event: "assigned", partitions }),
    );
    return {};
  }

  async read(groupId, topics, wanted, told = () => {}) {
    await this.disconnect();
    this.records = [];
    const properties = this.properties;
    const consumer = this.library.consumer({
      groupId,
      sessionTimeout: Number(properties["session.timeout.ms"] || 6000),
      heartbeatInterval: Number(properties["heartbeat.interval.ms"] || 2000),
      metadataMaxAge: number(properties, "metadata.max.age.ms"),
      maxWaitTimeInMs: number(properties, "fetch.max.wait.ms"),
      readUncommitted: properties["isolation.level"] !== "read_committed",
      allowAutoTopicCreation: false,
    });
    this.consumer = consumer;
    consumer.on(consumer.events.GROUP_JOIN, ({ payload }) =>
      told(
        Object.entries(payload.memberAssignment).flatMap(([topic, numbers]) =>
          numbers.map((partition) => ({ topic, partition })),
        ),
      ),
    );
    consumer.on(consumer.events.REBALANCING, () => told([]));
    await consumer.connect();
    await consumer.subscribe({ topics, fromBeginning: properties["auto.offset.reset"] !== "latest" });
    await consumer.run({
      autoCommit: properties["enable.auto.commit"] === "true",
      autoCommitInterval: Number(properties["auto.commit.interval.ms"] || 5000),
      eachBatchAutoResolve: false,
      eachBatch: async ({ batch, resolveOffset, heartbeat, isRunning, isStale }) => {
        for (const message of batch.messages) {
          while (this.records.length > BUFFER_MAX && isRunning() && !isStale()) {
            await new Promise((resolve) => setTimeout(resolve, 20));
            await heartbeat();
          }
          if (this.consumer !== consumer || !isRunning() || isStale()) return;
          if (wanted(batch.topic, batch.partition, Number(message.offset))) this.keep(batch, message);
          resolveOffset(message.offset);
        }
      },
    });
  }

  keep({ topic, partition }, { offset, key, value, headers }) {
    const texts = Object.entries(headers || {}).map(([name, bytes]) => [name, encoded(bytes)]);
    const record = { topic, partition, offset: Number(offset), key: encoded(key), value: encoded(value) };
    this.records.push({ ...record, headers: Object.fromEntries(texts) });
    this.changed();
  }

  async poll({ timeout_ms: limit }) {
    if (!this.records.length && !this.woken) {
      const changed = new Promise((resolve) => (this.changed = resolve));
      await within(changed, limit).catch(() => {});
    }
    this.woken = false;
    return { records: this.records.splice(0, 500) };
  }

  wakeUp() {
    this.woken = true;
    this.changed();
  }

  async ends({ partitions, timeout_ms: limit }) {
    await within(this.admin.connect(), limit);
    const offsets = [];
    for (const topic of new Set(partitions.map((each) => each.topic))) {
      const told = await within(this.admin.fetchTopicOffsets(topic), limit);
      for (const each of partitions.filter((one) => one.topic === topic)) {
        const known = told.find(({ partition }) => partition === each.partition);
        if (known) offsets.push({ ...each, offset: Number(known.offset) });
      }
    }
    return { offsets };
  }

  async commit({ offsets, timeout_ms: limit }) {
    const texts = offsets.map((each) => ({ ...each, offset: String(each.offset) }));
    await within(this.consumer.commitOffsets(texts), limit);
    return {};
  }

  async committed({ partitions, timeout_ms: limit }) {
    await within(this.admin.connect(), limit);
    const topics = [...new Set(partitions.map(({ topic }) => topic))];
    const asked = this.admin.fetchOffsets({ groupId: this.properties["group.id"], topics });
    const offsets = (await within(asked, limit))
      .flatMap((told) => told.partitions.map((each) => ({ topic: told.topic, ...each })))
      .map(({ topic, partition, offset }) => ({ topic, partition, offset: Number(offset) }))
      .filter((told) => told.offset >= 0)
      .filter((told) => partitions.some((each) => each.topic === told.topic && each.partition === told.partition));
    return { offsets };
  }

  // The group is all that the library wants in a transaction.
  async membership() {
    return { member: { group: this.properties["group.id"] } };
  }

  async disconnect() {
    const consumer = this.consumer;
    this.consumer = null;
    if (consumer) await consumer.disconnect();
    if (this.admin) await this.admin.disconnect();
  }
}

const clients = new Map();
process.on("unhandledRejection", (error) => process.stderr.write(`${error.stack}\n`));
say({ hello: 1, name: "kafkajs", version, capabilities: CAPABILITIES });
const lines = readline.createInterface({ input: process.stdin, crlfDelay: Infinity });
lines.on("line", (line) => {
  const call = JSON.parse(line);
  const known = clients.get(call.client);
  if (call.method === "wake_up") {
    if (known && known.wakeUp) known.wakeUp();
    return;
  }
  const client = known || (call.method === "new_producer" ? new Producer() : new Consumer());
  clients.set(call.client, client);
  client.take(call);
  if (call.method === "close" || call.method === "crash") clients.delete(call.client);
});
lines.on("close", () => process.exit(0));
