// @azure/storage-queue: queues, lists, metadata, access policies, service properties, statistics.

import assert from "node:assert/strict";
import { AnonymousCredential, QueueServiceClient } from "@azure/storage-queue";
import { all, connectionString, refused, soon } from "./helpers.mjs";
import { endpoint, key, options, service, test, uniqueName, withQueue } from "./queue-helpers.mjs";

test("queues are created, listed, paged and deleted", async () => {
  const client = service();
  const prefix = uniqueName().slice(0, 20);
  const names = ["a", "b", "c"].map((letter) => `${prefix}-${letter}`);
  for (const name of names) {
    assert.equal((await client.createQueue(name, { metadata: { key: name } }))._response.status, 201);
  }
  assert.equal((await client.createQueue(names[0], { metadata: { KEY: names[0] } }))._response.status, 204);
  await refused(() => client.createQueue(names[0]), 409, "QueueAlreadyExists");
  assert.equal((await client.getQueueClient(names[0]).createIfNotExists()).succeeded, false);
  const found = await all(client.listQueues({ prefix, includeMetadata: true }));
  assert.deepEqual(found.map(({ name, metadata }) => [name, metadata]), names.map((name) => [name, { key: name }]));
  const pages = await all(client.listQueues({ prefix }).byPage({ maxPageSize: 2 }));
  assert.deepEqual(pages.map((page) => page.queueItems.map((item) => item.name)), [names.slice(0, 2), names.slice(2)]);
  const { continuationToken } = pages[0];
  const rest = await all(client.listQueues({ prefix }).byPage({ maxPageSize: 2, continuationToken }));
  assert.deepEqual(rest.flatMap((page) => page.queueItems.map((item) => item.name)), names.slice(2));
  for (const name of names) {
    await client.deleteQueue(name);
  }
  await refused(() => client.deleteQueue(names[0]), 404, "QueueNotFound");
  assert.equal((await client.getQueueClient(names[0]).deleteIfExists()).succeeded, false);
  assert.equal(await client.getQueueClient(names[0]).exists(), false);
});

test("a client made from the connection string", async () => {
  const client = QueueServiceClient.fromConnectionString(connectionString, options);
  assert.ok(Array.isArray(await all(client.listQueues())));
});

test("names out of bounds are refused", async () => {
  await refused(() => service().createQueue("Upper"), 400, "InvalidResourceName");
  await refused(() => service().createQueue("ab"), 400, "OutOfRangeInput");
});

test("metadata and the number of messages", withQueue(async (queue) => {
  await queue.setMetadata({ DocType: "a b", n: "1" });
  await queue.sendMessage("a");
  const { metadata, approximateMessagesCount } = await queue.getProperties();
  // The SDK sends and reads header names in lower case.
  assert.deepEqual([metadata, approximateMessagesCount], [{ doctype: "a b", n: "1" }, 1]);
  await queue.setMetadata();
  assert.equal((await queue.getProperties()).metadata, undefined);
}));

test("access policies", withQueue(async (queue) => {
  assert.deepEqual((await queue.getAccessPolicy()).signedIdentifiers, []);
  await queue.setAccessPolicy([
    { id: "all", accessPolicy: { permissions: "raup", startsOn: new Date(0), expiresOn: soon } },
    { id: "add", accessPolicy: { permissions: "a", expiresOn: soon } },
  ]);
  const { signedIdentifiers } = await queue.getAccessPolicy();
  assert.deepEqual(
    signedIdentifiers.map(({ id, accessPolicy }) => [id, accessPolicy.permissions, accessPolicy.expiresOn]),
    [["all", "raup", soon], ["add", "a", soon]],
  );
  const six = Array.from({ length: 6 }, (_, index) => ({ id: `${index}`, accessPolicy: { permissions: "r" } }));
  await refused(() => queue.setAccessPolicy(six), 400, "InvalidXmlDocument");
}));

test("service properties round-trip", async () => {
  const client = service();
  const before = await client.getProperties();
  const wanted = {
    queueAnalyticsLogging: {
      version: "1.0", deleteProperty: true, read: true, write: false, retentionPolicy: { enabled: true, days: 5 },
    },
    hourMetrics: { version: "1.0", enabled: true, includeAPIs: true, retentionPolicy: { enabled: true, days: 7 } },
    minuteMetrics: { version: "1.0", enabled: false, retentionPolicy: { enabled: false } },
    cors: [{
      allowedOrigins: "https://a.example", allowedMethods: "GET,PUT", allowedHeaders: "x-ms-meta-*",
      exposedHeaders: "x-ms-*", maxAgeInSeconds: 500,
    }],
  };
  try {
    await client.setProperties(wanted);
    const { queueAnalyticsLogging, hourMetrics, minuteMetrics, cors } = await client.getProperties();
    assert.deepEqual(JSON.parse(JSON.stringify({ queueAnalyticsLogging, hourMetrics, minuteMetrics, cors })), wanted);
  } finally {
    const { queueAnalyticsLogging, hourMetrics, minuteMetrics, cors = [] } = before;
    await client.setProperties({ queueAnalyticsLogging, hourMetrics, minuteMetrics, cors });
  }
});

test("statistics of the secondary", async () => {
  const secondary = service(key, `${endpoint}-secondary`);
  const { geoReplication, _response } = await secondary.getStatistics();
  assert.match(_response.bodyAsText, /<StorageServiceStats><GeoReplication><Status>live<\/Status><LastSyncTime>/);
  assert.equal(geoReplication, undefined); // The SDK looks for another root element than the service sends.
  await refused(() => secondary.createQueue(uniqueName()), 403, "InsufficientAccountPermissions");
});

test("without credentials", withQueue(async (queue) => {
  const anonymous = service(new AnonymousCredential()).getQueueClient(queue.name);
  await refused(() => anonymous.peekMessages(), 401, "NoAuthenticationInformation");
}));
