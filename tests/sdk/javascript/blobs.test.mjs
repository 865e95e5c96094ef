// @azure/storage-blob: content of block, append and page blobs, leases, conditions, snapshots, tags, copies, SAS.

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import {
  AnonymousCredential, BlobSASPermissions, ContainerSASPermissions, SASProtocol, generateBlobSASQueryParameters,
} from "@azure/storage-blob";
import { account, all, refused, soon } from "./helpers.mjs";
import { bytes, endpoint, key, service, test, withContainer } from "./blob-helpers.mjs";

const PART = 64 * 1024;
const LARGE = bytes(20 * PART + 7);
const divided = { blockSize: PART, maxSingleShotSize: PART, concurrency: 4 };
const text = async (blob) => (await blob.downloadToBuffer()).toString();

test("blocks go up and down in parallel", withContainer(async (container) => {
  const blob = container.getBlockBlobClient("large");
  await blob.uploadData(LARGE, { ...divided, metadata: { key: "v" }, blobHTTPHeaders: { blobContentType: "text/x" } });
  const back = await blob.downloadToBuffer(0, undefined, { blockSize: PART, concurrency: 4 });
  assert.ok(back.equals(LARGE));
  const properties = await blob.getProperties();
  assert.deepEqual([properties.contentLength, properties.contentType, properties.metadata.key], [LARGE.length, "text/x", "v"]);
  const { committedBlocks } = await blob.getBlockList("all");
  assert.equal(committedBlocks.reduce((sum, { size }) => sum + size, 0), LARGE.length);
}));

test("streams and files", withContainer(async (container) => {
  const directory = await mkdtemp(join(tmpdir(), "blobs-"));
  try {
    const [from, to] = ["from", "to"].map((name) => join(directory, name));
    await writeFile(from, LARGE);
    const blob = container.getBlockBlobClient("file");
    await blob.uploadFile(from, divided);
    await blob.downloadToFile(to);
    assert.ok((await readFile(to)).equals(LARGE));
    const streamed = container.getBlockBlobClient("stream");
    await streamed.uploadStream(Readable.from([LARGE.subarray(0, 100_000), LARGE.subarray(100_000)]), PART, 3);
    const parts = await all((await streamed.download()).readableStreamBody);
    assert.ok(Buffer.concat(parts).equals(LARGE));
  } finally {
    await rm(directory, { recursive: true });
  }
}));

test("ranges and an empty blob", withContainer(async (container) => {
  const blob = container.getBlockBlobClient("ü/ö b?.txt");
  await blob.upload("0123456789", 10);
  assert.equal((await all((await blob.download(2, 3)).readableStreamBody)).join(""), "234");
  await refused(() => blob.download(10), 416, "InvalidRange");
  const empty = container.getBlockBlobClient("empty");
  await empty.upload("", 0);
  assert.equal((await empty.downloadToBuffer()).length, 0);
}));

test("append blobs", withContainer(async (container) => {
  const log = container.getAppendBlobClient("log");
  await log.create();
  await log.appendBlock("ab", 2);
  const { blobAppendOffset } = await log.appendBlock("cd", 2, { conditions: { appendPosition: 2 } });
  assert.equal(blobAppendOffset, "2");
  await refused(() => log.appendBlock("x", 1, { conditions: { appendPosition: 2 } }), 412, "AppendPositionConditionNotMet");
  await log.seal();
  await refused(() => log.appendBlock("x", 1), 409, "BlobIsSealed");
  assert.equal(await text(log), "abcd");
}));

test("page blobs", withContainer(async (container) => {
  const disk = container.getPageBlobClient("disk");
  await disk.create(4096);
  await disk.uploadPages(bytes(1024), 512, 1024);
  const { snapshot } = await disk.createSnapshot();
  await disk.clearPages(512, 512);
  // The SDK counts one byte less.
  const { pageRange } = await disk.getPageRanges();
  assert.deepEqual(pageRange.map(({ offset, count }) => [offset, count]), [[1024, 511]]);
  const { clearRange } = await disk.getPageRangesDiff(0, 4096, snapshot);
  assert.deepEqual(clearRange.map(({ offset, count }) => [offset, count]), [[512, 511]]);
  await disk.resize(1024);
  assert.equal((await disk.getProperties()).contentLength, 1024);
  await disk.delete({ deleteSnapshots: "include" });
}));

test("leases and conditions", withContainer(async (container) => {
  const blob = container.getBlockBlobClient("a");
  const { etag } = await blob.upload("1", 1);
  const lease = blob.getBlobLeaseClient();
  await lease.acquireLease(15);
  await refused(() => blob.upload("2", 1), 412, "LeaseIdMissing");
  await blob.upload("2", 1, { conditions: { leaseId: lease.leaseId } });
  await lease.renewLease();
  await lease.releaseLease();
  await refused(() => blob.upload("3", 1, { conditions: { ifMatch: etag } }), 412, "ConditionNotMet");
  await refused(() => blob.upload("3", 1, { conditions: { ifNoneMatch: "*" } }), 409, "BlobAlreadyExists");
  assert.equal(await text(blob), "2");
}));

test("snapshots, tiers and soft deletion", withContainer(async (container) => {
  const blob = container.getBlockBlobClient("a");
  await blob.upload("1", 1);
  const { snapshot } = await blob.createSnapshot();
  await blob.upload("2", 1, { tier: "Cool" });
  assert.equal(await text(blob.withSnapshot(snapshot)), "1");
  assert.equal((await blob.getProperties()).accessTier, "Cool");
  await refused(() => blob.delete(), 409, "SnapshotsPresent");
  await blob.delete({ deleteSnapshots: "include" });
  assert.equal((await blob.deleteIfExists()).succeeded, false);
}));

test("tags", withContainer(async (container) => {
  const blob = container.getBlockBlobClient("a");
  await blob.upload("1", 1, { tags: { kind: "x", of: container.containerName } });
  assert.deepEqual((await blob.getTags()).tags, { kind: "x", of: container.containerName });
  const found = await all(service().findBlobsByTags(`of = '${container.containerName}'`));
  assert.deepEqual(found.map(({ name, containerName }) => [name, containerName]), [["a", container.containerName]]);
  await blob.setTags({ kind: "y" });
  await refused(() => blob.setMetadata({}, { conditions: { tagConditions: "kind = 'x'" } }), 412, "ConditionNotMet");
}));

test("copies", withContainer(async (container) => {
  const source = container.getBlockBlobClient("a");
  await source.upload("1", 1, { metadata: { key: "v" } });
  const target = container.getBlockBlobClient("b");
  const poller = await target.beginCopyFromURL(source.url);
  assert.equal((await poller.pollUntilDone()).copyStatus, "success");
  assert.equal((await target.getProperties()).metadata.key, "v");
  const permissions = BlobSASPermissions.parse("r");
  const url = await source.generateSasUrl({ permissions, expiresOn: soon });
  await container.getBlockBlobClient("c").syncUploadFromURL(url);
  await container.getBlobClient("d").syncCopyFromURL(url);
  assert.deepEqual(await Promise.all(["b", "c", "d"].map((name) => text(container.getBlobClient(name)))), ["1", "1", "1"]);
}));

test("batches", withContainer(async (container) => {
  const blobs = ["a", "b c", "d"].map((name) => container.getBlockBlobClient(name));
  await Promise.all(blobs.map((blob) => blob.upload("1", 1)));
  const batch = service().getBlobBatchClient();
  const tiers = await batch.setBlobsAccessTier(blobs, "Cool");
  assert.equal(tiers.subResponsesSucceededCount, 3);
  const deleted = await batch.deleteBlobs([...blobs.slice(0, 2), container.getBlobClient("missing")]);
  assert.deepEqual([deleted.subResponsesSucceededCount, deleted.subResponsesFailedCount], [2, 1]);
  assert.equal(deleted.subResponses[2].errorCode, "BlobNotFound");
}));

test("signatures", withContainer(async (container) => {
  const { containerName } = container;
  await container.getBlockBlobClient("a b").upload("1", 1);
  const sign = (values) => generateBlobSASQueryParameters({ containerName, expiresOn: soon, ...values }, key).toString();
  const anyone = (sas) => service(new AnonymousCredential(), `${endpoint}?${sas}`).getContainerClient(containerName);
  const reader = anyone(sign({
    blobName: "a b", permissions: BlobSASPermissions.parse("r"), protocol: SASProtocol.HttpsAndHttp, contentType: "image/x",
  })).getBlockBlobClient("a b");
  assert.equal((await reader.getProperties()).contentType, "image/x");
  assert.equal(await text(reader), "1");
  await refused(() => reader.delete(), 403, "AuthorizationPermissionMismatch");
  const lister = anyone(sign({ permissions: ContainerSASPermissions.parse("l") }));
  assert.deepEqual((await all(lister.listBlobsFlat())).map(({ name }) => name), ["a b"]);
  assert.ok(account);
}));
