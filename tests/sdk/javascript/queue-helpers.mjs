// What the files about queues need: clients that never retry. They run if the connection string names queues.

import { randomUUID } from "node:crypto";
import { test as run } from "node:test";
import { QueueServiceClient, StorageSharedKeyCredential, newPipeline } from "@azure/storage-queue";
import { account, connectionString } from "./helpers.mjs";

const part = (name) => new RegExp(`(?:^|;)${name}=([^;]*)`).exec(connectionString)?.[1];

export const endpoint = part("QueueEndpoint")?.replace(/\/$/, "");
export const key = new StorageSharedKeyCredential(account, part("AccountKey"));
export const options = { retryOptions: { maxTries: 1 } };

export const service = (credential = key, url = endpoint) => new QueueServiceClient(url, newPipeline(credential, options));
export const uniqueName = () => `q${randomUUID().replaceAll("-", "")}`;

/** A test that needs the Queue service. */
export const test = (name, body) => run(name, { skip: endpoint === undefined && "the account has no queues" }, body);

/** Run a test body with a client of a queue of its own. */
export const withQueue = (body) => async () => {
  const queue = service().getQueueClient(uniqueName());
  await queue.create();
  try {
    await body(queue);
  } finally {
    await queue.delete();
  }
};

export const texts = (answer) => (answer.receivedMessageItems ?? answer.peekedMessageItems).map((item) => item.messageText);
