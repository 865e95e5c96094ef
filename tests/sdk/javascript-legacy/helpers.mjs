// The account under test and what every file needs: the SDK's callbacks as promises, and a look at refusals.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import azure from "azure-storage";

export const connectionString = process.env.LAZULITE_TEST_CONNECTION_STRING;
assert.ok(connectionString, "LAZULITE_TEST_CONNECTION_STRING names the account to test");

const fields = Object.fromEntries(
  connectionString.split(";").filter(Boolean).map((part) => {
    const at = part.indexOf("=");
    return [part.slice(0, at), part.slice(at + 1)];
  }),
);

export const account = fields.AccountName;
export const key = fields.AccountKey;
export const endpoint = fields.TableEndpoint.replace(/\/$/, "");
export const soon = new Date(Math.floor(Date.now() / 1000) * 1000 + 3_600_000);
export const past = new Date(Date.now() - 3_600_000);
export const stale = "W/\"datetime'2017-08-30T13%3A20%3A33.413914Z'\"";
export const edm = azure.TableUtilities.entityGenerator;

/** A service whose methods return promises of the result instead of calling back; it never retries. */
export const promising = (service) => new Proxy(service, {
  get: (target, name) => (...given) => new Promise((resolve, reject) => {
    target[name](...given, (error, result) => (error ? reject(error) : resolve(result)));
  }),
});

export const plainService = azure.createTableService(connectionString);
export const service = promising(plainService);
export const sasService = (sas) => promising(azure.createTableServiceWithSas(endpoint, sas));
export const serviceAt = (...given) => promising(azure.createTableService(...given));

export const uniqueName = () => `t${randomUUID().replaceAll("-", "")}`;

/** Run a test body with the name of a table of its own. */
export const withTable = (body) => async () => {
  const name = uniqueName();
  await service.createTable(name);
  try {
    await body(name);
  } finally {
    await service.deleteTable(name);
  }
};

export const entity = (rowKey = "r", rest = {}, partitionKey = "p") => ({
  PartitionKey: edm.String(partitionKey), RowKey: edm.String(rowKey), ...rest,
});

/** The same entity with a condition. */
export const conditional = (given, etag) => ({ ...given, ".metadata": { etag } });

/** The user's properties of an entity, as plain values. */
export function properties(found) {
  const { PartitionKey, RowKey, Timestamp, ".metadata": metadata, ...rest } = found;
  return Object.fromEntries(Object.entries(rest).map(([name, { _: value }]) => [name, value]));
}

/** All entities that a query finds, page by page. */
export async function all(table, query = new azure.TableQuery(), through = service) {
  const found = [];
  let token = null;
  do {
    const page = await through.queryEntities(table, query, token);
    found.push(...page.entries);
    token = page.continuationToken;
  } while (token);
  return found;
}

export const contents = async (table) =>
  Object.fromEntries((await all(table)).map((found) => [found.RowKey._, properties(found)]));

/** Expect the SDK's StorageError with this status and service code. */
export async function refused(act, statusCode, code) {
  await assert.rejects(act, (error) => {
    assert.deepEqual([error.name, error.statusCode, error.code], ["StorageError", statusCode, code], error.message);
    return true;
  });
}
