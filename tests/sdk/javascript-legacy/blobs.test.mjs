// Containers and blobs of the old SDK. They run if the connection string names blobs.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { Readable } from "node:stream";
import { test as run } from "node:test";
import azure from "azure-storage";
import { connectionString, promising, refused, soon } from "./helpers.mjs";

const endpoint = /(?:^|;)BlobEndpoint=([^;]*?)\/?(?:;|$)/.exec(connectionString)?.[1];
const test = (name, body) => run(name, { skip: endpoint === undefined && "the account has no blobs" }, body);
const plain = endpoint && azure.createBlobService(connectionString);
const service = endpoint && promising(plain);
const uniqueName = () => `c${randomUUID().replaceAll("-", "")}`;
const PART = 64 * 1024;
const LARGE = "0123456789abcdef".repeat(20 * 4096 + 1);

/** Run a test body with the name of a container of its own. */
const withContainer = (body) => async () => {
  const name = uniqueName();
  await service.createContainer(name);
  try {
    await body(name);
  } finally {
    await service.deleteContainer(name);
  }
};

test("containers are created, listed and deleted", async () => {
  const prefix = uniqueName().slice(0, 20);
  const names = ["a", "b", "c"].map((letter) => `${prefix}-${letter}`);
  for (const name of names) {
    assert.equal((await service.createContainerIfNotExists(name, { metadata: { key: name } })).created, true);
  }
  assert.equal((await service.createContainerIfNotExists(names[0])).created, false);
  await refused(() => service.createContainer(names[0]), 409, "ContainerAlreadyExists");
  const { entries, continuationToken } = await service.listContainersSegmentedWithPrefix(prefix, null, { maxResults: 2 });
  const rest = await service.listContainersSegmentedWithPrefix(prefix, continuationToken);
  assert.deepEqual([...entries, ...rest.entries].map(({ name }) => name), names);
  assert.equal((await service.getContainerMetadata(names[0])).metadata.key, names[0]);
  for (const name of names) {
    assert.equal(await service.deleteContainerIfExists(name), true);
  }
  assert.equal((await service.doesContainerExist(names[0])).exists, false);
});

test("texts and large blobs", withContainer(async (container) => {
  await service.createBlockBlobFromText(container, "ü/ö b.txt", "Grüße", { contentSettings: { contentType: "text/x" } });
  assert.equal(await service.getBlobToText(container, "ü/ö b.txt"), "Grüße");
  assert.equal((await service.getBlobProperties(container, "ü/ö b.txt")).contentSettings.contentType, "text/x");
  plain.singleBlobPutThresholdInBytes = PART;
  await service.createBlockBlobFromText(container, "large", LARGE, { blockSize: PART, parallelOperationThreadCount: 4 });
  assert.equal(await service.getBlobToText(container, "large"), LARGE);
  const ranged = await service.getBlobToText(container, "large", { rangeStart: 2, rangeEnd: 4 });
  assert.equal(ranged, "234");
  await service.createBlockFromText("aa", container, "blocks", "x");
  await service.commitBlocks(container, "blocks", { LatestBlocks: ["aa"] });
  assert.equal(await service.getBlobToText(container, "blocks"), "x");
}));

test("lists of blobs", withContainer(async (container) => {
  for (const name of ["a", "b/1", "b/2", "c"]) {
    await service.createBlockBlobFromText(container, name, "x", { metadata: { key: "v" } });
  }
  const flat = await service.listBlobsSegmented(container, null, { include: "metadata" });
  assert.deepEqual(flat.entries.map(({ name, metadata }) => [name, metadata.key]), ["a", "b/1", "b/2", "c"].map((name) => [name, "v"]));
  const level = await service.listBlobsSegmented(container, null, { delimiter: "/" });
  assert.deepEqual(level.entries.map(({ name }) => name), ["a", "c"]);
  const prefixes = await service.listBlobDirectoriesSegmented(container, null);
  assert.deepEqual(prefixes.entries.map(({ name }) => name), ["b/"]);
}));

test("append and page blobs", withContainer(async (container) => {
  await service.createOrReplaceAppendBlob(container, "log");
  await service.appendBlockFromText(container, "log", "ab");
  await service.appendFromText(container, "log", "cd");
  assert.equal(await service.getBlobToText(container, "log"), "abcd");
  await service.createPageBlob(container, "disk", 2048);
  await service.createPagesFromStream(container, "disk", Readable.from([Buffer.alloc(512, 1)]), 512, 1023);
  assert.deepEqual((await service.listPageRanges(container, "disk")).map(({ start, end }) => [start, end]), [[512, 1023]]);
}));

test("leases, conditions and snapshots", withContainer(async (container) => {
  const { etag } = await service.createBlockBlobFromText(container, "a", "1");
  const lease = await service.acquireLease(container, "a", { leaseDuration: 15 });
  await refused(() => service.createBlockBlobFromText(container, "a", "2"), 412, "LeaseIdMissing");
  await service.createBlockBlobFromText(container, "a", "2", { leaseId: lease.id });
  await service.releaseLease(container, "a", lease.id);
  const accessConditions = azure.AccessCondition.generateIfMatchCondition(etag);
  await refused(() => service.setBlobMetadata(container, "a", { k: "v" }, { accessConditions }), 412, "ConditionNotMet");
  const snapshotId = await service.createBlobSnapshot(container, "a");
  await service.createBlockBlobFromText(container, "a", "3");
  assert.equal(await service.getBlobToText(container, "a", { snapshotId }), "2");
  await refused(() => service.deleteBlob(container, "a"), 409, "SnapshotsPresent");
  await service.deleteBlob(container, "a", { deleteSnapshots: azure.BlobUtilities.SnapshotDeleteOptions.BLOB_AND_SNAPSHOTS });
}));

test("copies and signatures", withContainer(async (container) => {
  await service.createBlockBlobFromText(container, "a b", "1");
  const copied = await service.startCopyBlob(plain.getUrl(container, "a b"), container, "b");
  assert.equal(copied.copy.status, "success");
  assert.equal(await service.getBlobToText(container, "b"), "1");
  const AccessPolicy = { Permissions: "r", Expiry: soon };
  const sas = plain.generateSharedAccessSignature(container, "a b", { AccessPolicy });
  const reader = promising(azure.createBlobServiceWithSas(endpoint, sas));
  assert.equal(await reader.getBlobToText(container, "a b"), "1");
  await refused(() => reader.deleteBlob(container, "a b"), 403, "AuthorizationPermissionMismatch");
}));

test("service properties", async () => {
  const rule = { AllowedMethods: ["GET"], AllowedOrigins: ["http://a.example"], AllowedHeaders: [], ExposedHeaders: [], MaxAgeInSeconds: 5 };
  await service.setServiceProperties({ Cors: { CorsRule: [rule] } });
  assert.deepEqual((await service.getServiceProperties()).Cors.CorsRule[0].AllowedMethods, ["GET"]);
  await service.setServiceProperties({ Cors: {} });
});
