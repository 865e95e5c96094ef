// The account under test and what every file needs: clients that never retry, and a look at refusals.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { AzureNamedKeyCredential, TableClient, TableServiceClient } from "@azure/data-tables";

export const connectionString = process.env.LAZULITE_TEST_CONNECTION_STRING;
assert.ok(connectionString, "LAZULITE_TEST_CONNECTION_STRING names the account to test");

const fields = Object.fromEntries(
  connectionString.split(";").filter(Boolean).map((part) => {
    const at = part.indexOf("=");
    return [part.slice(0, at), part.slice(at + 1)];
  }),
);

export const account = fields.AccountName;
export const endpoint = fields.TableEndpoint.replace(/\/$/, "");
export const credential = new AzureNamedKeyCredential(account, fields.AccountKey);
export const options = { allowInsecureConnection: true, retryOptions: { maxRetries: 0 } };
export const soon = new Date(Math.floor(Date.now() / 1000) * 1000 + 3_600_000);
export const past = new Date(Date.now() - 3_600_000);

export const service = () => TableServiceClient.fromConnectionString(connectionString, options);

export const uniqueName = () => `t${randomUUID().replaceAll("-", "")}`;

export const tableClient = (name, withCredential = credential) =>
  new TableClient(endpoint, name, withCredential, options);

/** Run a test body with a client of a table of its own. */
export const withTable = (body) => async () => {
  const table = tableClient(uniqueName());
  await table.createTable();
  try {
    await body(table);
  } finally {
    await table.deleteTable();
  }
};

/** Everything that an asynchronous iterable yields. */
export async function all(iterable) {
  const items = [];
  for await (const item of iterable) {
    items.push(item);
  }
  return items;
}

/** The service's error code, wherever the SDK left it; of an XML answer it keeps but the text and the headers. */
const codeOf = ({ code, response }) =>
  code ?? response?.parsedBody?.odataError?.code ?? response?.headers.get("x-ms-error-code") ??
  /<(?:m:)?code>(\w+)</i.exec(response?.bodyAsText)?.[1];

/** Expect the RestError with this status and service code. */
export async function refused(act, statusCode, code) {
  await assert.rejects(act, (error) => {
    const found = [error.name, error.statusCode, codeOf(error)];
    assert.deepEqual(found, ["RestError", statusCode, code], error.message);
    return true;
  });
}

/** The user's properties of an entity: neither keys nor metadata. */
export function properties(entity) {
  const { partitionKey, rowKey, etag, timestamp, ...rest } = entity;
  delete rest["odata.metadata"];
  return rest;
}

/** The instant in an ETag, padded so that later ones compare greater. */
export function instant(etag) {
  const match = /^W\/"datetime'(\d{4}-\d\d-\d\dT\d\d%3A\d\d%3A\d\d)(?:\.(\d{1,7}))?Z'"$/.exec(etag);
  assert.ok(match, `not an ETag of the Table service: ${etag}`);
  return `${match[1]}.${(match[2] ?? "").padEnd(7, "0")}`;
}
