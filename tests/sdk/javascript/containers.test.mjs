// @azure/storage-blob: containers, lists, access policies, service properties, statistics, account information.

import assert from "node:assert/strict";
import { BlobServiceClient } from "@azure/storage-blob";
import { all, connectionString, refused, soon } from "./helpers.mjs";
import { endpoint, key, options, service, test, uniqueName, withContainer } from "./blob-helpers.mjs";

test("containers are created, listed, paged and deleted", async () => {
  const client = service();
  const prefix = uniqueName().slice(0, 20);
  const names = ["a", "b", "c"].map((letter) => `${prefix}-${letter}`);
  for (const name of names) {
    await client.createContainer(name, { metadata: { key: name } });
  }
  await refused(() => client.createContainer(names[0]), 409, "ContainerAlreadyExists");
  const found = await all(client.listContainers({ prefix, includeMetadata: true }));
  assert.deepEqual(found.map(({ name, metadata }) => [name, metadata]), names.map((name) => [name, { key: name }]));
  const pages = await all(client.listContainers({ prefix }).byPage({ maxPageSize: 2 }));
  assert.deepEqual(pages.map((page) => page.containerItems.map(({ name }) => name)), [names.slice(0, 2), names.slice(2)]);
  for (const name of names) {
    await client.deleteContainer(name);
  }
  await refused(() => client.deleteContainer(names[0]), 404, "ContainerNotFound");
  assert.equal(await client.getContainerClient(names[0]).exists(), false);
});

test("a client made from the connection string", async () => {
  const client = BlobServiceClient.fromConnectionString(connectionString, options);
  assert.ok(Array.isArray(await all(client.listContainers())));
});

test("lists of blobs", withContainer(async (container) => {
  const names = ["a", "b/1", "b/2", "c", "d/ü"];
  for (const name of names) {
    await container.uploadBlockBlob(name, "x", 1, { metadata: { key: "v" }, tags: { t: "1" } });
  }
  await container.getBlobClient("a").createSnapshot();
  const flat = await all(container.listBlobsFlat({ includeMetadata: true, includeTags: true }));
  assert.deepEqual(flat.map(({ name, metadata, tags }) => [name, metadata.key, tags.t]), names.map((name) => [name, "v", "1"]));
  const both = await all(container.listBlobsFlat({ prefix: "a", includeSnapshots: true }));
  assert.deepEqual(both.map(({ snapshot }) => Boolean(snapshot)), [true, false]);
  const walked = await all(container.listBlobsByHierarchy("/"));
  assert.deepEqual(walked.map(({ kind, name }) => [kind, name]).sort(), [["blob", "a"], ["blob", "c"], ["prefix", "b/"], ["prefix", "d/"]]);
  const pages = await all(container.listBlobsFlat().byPage({ maxPageSize: 2 }));
  assert.deepEqual(pages.map((page) => page.segment.blobItems.map(({ name }) => name)), [names.slice(0, 2), names.slice(2, 4), names.slice(4)]);
  await container.deleteBlob("a", { deleteSnapshots: "include" });
}));

test("access policies and leases", withContainer(async (container) => {
  const policy = { id: "read", accessPolicy: { startsOn: new Date(0), expiresOn: soon, permissions: "rl" } };
  await container.setAccessPolicy(undefined, [policy]);
  const { signedIdentifiers } = await container.getAccessPolicy();
  assert.deepEqual(signedIdentifiers.map(({ id, accessPolicy }) => [id, accessPolicy.permissions]), [["read", "rl"]]);
  const lease = container.getBlobLeaseClient();
  await lease.acquireLease(-1);
  await refused(() => container.delete(), 412, "LeaseIdMissing");
  await lease.breakLease(0);
}));

test("service properties, statistics and account information", async () => {
  const client = service();
  const rule = { allowedOrigins: "http://a.example", allowedMethods: "GET", allowedHeaders: "", exposedHeaders: "", maxAgeInSeconds: 5 };
  const deleteRetentionPolicy = { enabled: true, days: 3 };
  await client.setProperties({ cors: [rule], deleteRetentionPolicy, defaultServiceVersion: "2021-12-02" });
  const found = await client.getProperties();
  assert.deepEqual([found.cors[0].allowedOrigins, found.deleteRetentionPolicy.days], ["http://a.example", 3]);
  await client.setProperties({ cors: [], deleteRetentionPolicy: { enabled: false }, staticWebsite: { enabled: false } });
  assert.equal((await client.getAccountInfo()).accountKind, "StorageV2");
  const statistics = await service(key, `${endpoint}-secondary`).getStatistics();
  assert.equal(statistics.geoReplication.status, "live");
});
