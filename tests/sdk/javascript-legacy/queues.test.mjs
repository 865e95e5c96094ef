// Queues and messages of the old SDK. They run if the connection string names queues.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test as run } from "node:test";
import azure from "azure-storage";
import { account, connectionString, key, promising, refused, soon } from "./helpers.mjs";

const endpoint = /(?:^|;)QueueEndpoint=([^;]*?)\/?(?:;|$)/.exec(connectionString)?.[1];
const test = (name, body) => run(name, { skip: endpoint === undefined && "the account has no queues" }, body);
const plain = endpoint && azure.createQueueService(connectionString);
const service = endpoint && promising(plain);
const uniqueName = () => `q${randomUUID().replaceAll("-", "")}`;
const texts = (messages) => messages.map((message) => message.messageText);

/** Run a test body with the name of a queue of its own. */
const withQueue = (body) => async () => {
  const name = uniqueName();
  await service.createQueue(name);
  try {
    await body(name);
  } finally {
    await service.deleteQueue(name);
  }
};

test("queues are created, listed, paged and deleted", async () => {
  const prefix = uniqueName().slice(0, 20);
  const names = ["a", "b", "c"].map((letter) => `${prefix}-${letter}`);
  for (const name of names) {
    assert.equal((await service.createQueueIfNotExists(name, { metadata: { key: name } })).created, true);
  }
  assert.equal((await service.createQueueIfNotExists(names[0])).created, false);
  await refused(() => service.createQueue(names[0]), 409, "QueueAlreadyExists");
  const found = [];
  let token = null;
  do {
    const page = await service.listQueuesSegmentedWithPrefix(prefix, token, { maxResults: 2, include: "metadata" });
    found.push(page.entries.map(({ name, metadata }) => [name, metadata.key]));
    token = page.continuationToken;
  } while (token);
  assert.deepEqual(found.flat(), names.map((name) => [name, name]));
  assert.equal(found.length, 2);
  for (const name of names) {
    assert.equal((await service.doesQueueExist(name)).exists, true);
    assert.equal(await service.deleteQueueIfExists(name), true);
  }
  assert.equal((await service.doesQueueExist(names[0])).exists, false);
  assert.equal(await service.deleteQueueIfExists(names[0]), false);
  await refused(() => service.deleteQueue(names[0]), 404, "QueueNotFound");
});

test("metadata and the number of messages", withQueue(async (queue) => {
  await service.setQueueMetadata(queue, { DocType: "a b" });
  await service.createMessage(queue, "a");
  const { metadata, approximateMessageCount } = await service.getQueueMetadata(queue);
  assert.deepEqual([Object.values(metadata), Number(approximateMessageCount)], [["a b"], 1]);
}));

test("a message from put to delete", withQueue(async (queue) => {
  const sent = await service.createMessage(queue, "hello <&> ü");
  assert.equal((await service.peekMessage(queue)).messageText, "hello <&> ü");
  const got = await service.getMessage(queue, { visibilityTimeout: 600 });
  assert.deepEqual([got.messageId, got.messageText, Number(got.dequeueCount)], [sent.messageId, "hello <&> ü", 1]);
  assert.deepEqual(await service.getMessages(queue), []);
  const updated = await service.updateMessage(queue, got.messageId, got.popReceipt, 0, { messageText: "new" });
  const again = await service.getMessage(queue);
  assert.deepEqual([again.messageText, Number(again.dequeueCount)], ["new", 2]);
  await refused(() => service.deleteMessage(queue, got.messageId, updated.popReceipt), 404, "MessageNotFound");
  await service.deleteMessage(queue, again.messageId, again.popReceipt);
  assert.equal(Number((await service.getQueueMetadata(queue)).approximateMessageCount), 0);
}));

test("text as Base64", withQueue(async (queue) => {
  const encoding = azure.createQueueService(connectionString);
  encoding.messageEncoder = new azure.QueueMessageEncoder.TextBase64QueueMessageEncoder();
  await promising(encoding).createMessage(queue, "ü");
  assert.equal((await service.peekMessage(queue)).messageText, "w7w=");
  assert.equal((await promising(encoding).getMessage(queue)).messageText, "ü");
}));

test("pages of messages in their order", withQueue(async (queue) => {
  const sent = Array.from({ length: 40 }, (_, index) => `${index}`);
  for (const text of sent) {
    await service.createMessage(queue, text);
  }
  assert.deepEqual(texts(await service.peekMessages(queue, { numOfMessages: 32 })), sent.slice(0, 32));
  const found = [];
  for (let page; (page = await service.getMessages(queue, { numOfMessages: 32 })).length > 0;) {
    found.push(...texts(page));
  }
  assert.deepEqual(found, sent);
  await service.clearMessages(queue);
  assert.equal(Number((await service.getQueueMetadata(queue)).approximateMessageCount), 0);
}));

test("messages out of bounds", withQueue(async (queue) => {
  await refused(() => service.createMessage(queue, "a".repeat(65_537)), 413, "RequestBodyTooLarge");
  const both = { visibilityTimeout: 60, messageTimeToLive: 60 };
  await refused(() => service.createMessage(queue, "a", both), 400, "InvalidQueryParameterValue");
  await refused(() => service.getMessages(queue, { numOfMessages: 33 }), 400, "OutOfRangeQueryParameterValue");
}));

test("service SAS and stored access policies", withQueue(async (queue) => {
  const grant = (policy) =>
    promising(azure.createQueueServiceWithSas(endpoint, plain.generateSharedAccessSignature(queue, policy)));
  const adder = grant({ AccessPolicy: { Permissions: "a", Expiry: soon } });
  await adder.createMessage(queue, "a");
  await refused(() => adder.peekMessages(queue), 403, "AuthorizationPermissionMismatch");
  await service.setQueueAcl(queue, { all: { Permissions: "raup", Expiry: soon } });
  assert.equal((await service.getQueueAcl(queue)).signedIdentifiers.all.Permissions, "raup");
  const processor = grant({ Id: "all" });
  assert.deepEqual(texts(await processor.getMessages(queue)), ["a"]);
  await service.setQueueAcl(queue, {});
  await refused(() => processor.getMessages(queue), 403, "AuthenticationFailed");
}));

test("an account SAS of queues", withQueue(async (queue) => {
  const token = azure.generateAccountSharedAccessSignature(account, key, {
    AccessPolicy: { Services: "q", ResourceTypes: "o", Permissions: "a", Expiry: soon },
  });
  const adder = promising(azure.createQueueServiceWithSas(endpoint, token));
  await adder.createMessage(queue, "a");
  await refused(() => adder.getMessages(queue), 403, "AuthorizationPermissionMismatch");
}));

test("service properties of queues", async () => {
  const before = await service.getServiceProperties();
  try {
    const HourMetrics = { Version: "1.0", Enabled: false, RetentionPolicy: { Enabled: true, Days: 7 } };
    await service.setServiceProperties({ ...before, HourMetrics });
    assert.deepEqual((await service.getServiceProperties()).HourMetrics, HourMetrics);
  } finally {
    await service.setServiceProperties(before);
  }
});

test("statistics and reads of the secondary", withQueue(async (queue) => {
  const locationMode = azure.StorageUtilities.LocationMode.SECONDARY_ONLY;
  const hosts = { primaryHost: endpoint, secondaryHost: `${endpoint}-secondary` };
  const both = promising(azure.createQueueService(account, key, hosts));
  assert.equal((await both.getServiceStats({ locationMode })).GeoReplication.Status, "live");
  assert.deepEqual(await both.peekMessages(queue, { locationMode }), []);
}));
