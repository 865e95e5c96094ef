// What the files about blobs need: clients that never retry. They run if the connection string names blobs.

import { randomUUID } from "node:crypto";
import { test as run } from "node:test";
import { BlobServiceClient, StorageSharedKeyCredential, newPipeline } from "@azure/storage-blob";
import { account, connectionString } from "./helpers.mjs";

const part = (name) => new RegExp(`(?:^|;)${name}=([^;]*)`).exec(connectionString)?.[1];

export const endpoint = part("BlobEndpoint")?.replace(/\/$/, "");
export const key = new StorageSharedKeyCredential(account, part("AccountKey"));
export const options = { retryOptions: { maxTries: 1 } };

export const service = (credential = key, url = endpoint) => new BlobServiceClient(url, newPipeline(credential, options));
export const uniqueName = () => `c${randomUUID().replaceAll("-", "")}`;

/** A test that needs the Blob service. */
export const test = (name, body) => run(name, { skip: endpoint === undefined && "the account has no blobs" }, body);

/** Run a test body with a client of a container of its own. */
export const withContainer = (body) => async () => {
  const container = service().getContainerClient(uniqueName());
  await container.create();
  try {
    await body(container);
  } finally {
    await container.delete();
  }
};

/** Bytes without a pattern, the same for the same length. */
export const bytes = (length) => {
  let state = 1;
  return Buffer.from({ length }, () => (state = (state * 48271) % 2147483647) & 255);
};
