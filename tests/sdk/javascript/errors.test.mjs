// Every status and error code that the JavaScript SDK can provoke and that no other file does.

import assert from "node:assert/strict";
import { test } from "node:test";
import { RestError } from "@azure/data-tables";
import { all, endpoint, refused, service, tableClient, uniqueName, withTable } from "./helpers.mjs";

const keys = { partitionKey: "p", rowKey: "r" };
const many = Object.fromEntries(Array.from({ length: 253 }, (_, index) => [`p${index}`, 1]));
const large = Object.fromEntries(Array.from({ length: 16 }, (_, index) => [`p${index}`, new Uint8Array(65_536)]));

const cases = [
  ["a key's character", { ...keys, rowKey: "a/b" }, 400, "OutOfRangeInput"],
  ["a control character in a key", { ...keys, partitionKey: "a\u0001b" }, 400, "OutOfRangeInput"],
  ["no row key", { partitionKey: "p" }, 400, "PropertiesNeedValue"],
  ["a property's name", { ...keys, "a-b": 1 }, 400, "PropertyNameInvalid"],
  ["a property name's length", { ...keys, ["x".repeat(256)]: 1 }, 400, "PropertyNameTooLong"],
  ["a string's length", { ...keys, a: "x".repeat(32_769) }, 400, "PropertyValueTooLarge"],
  ["a binary's length", { ...keys, a: new Uint8Array(65_537) }, 400, "PropertyValueTooLarge"],
  ["the number of properties", { ...keys, ...many }, 400, "TooManyProperties"],
  ["the entity's size", { ...keys, ...large }, 400, "EntityTooLarge"],
  ["the body's size", { ...keys, a: "x".repeat(4 * 1024 * 1024) }, 413, "RequestBodyTooLarge"],
  ["a value of another type", { ...keys, a: { type: "Guid", value: "banana" } }, 400, "InvalidInput"],
  ["a number beyond Int64", { ...keys, a: 2n ** 63n }, 400, "InvalidInput"],
];

for (const [what, entity, statusCode, code] of cases) {
  test(`${what} is refused`, withTable(async (table) => {
    await refused(() => table.createEntity(entity), statusCode, code);
    assert.deepEqual(await all(table.listEntities()), []);
  }));
}

test("a missing table", async () => {
  const table = tableClient(uniqueName());
  for (const act of [
    () => table.createEntity(keys),
    () => table.upsertEntity(keys),
    () => table.updateEntity(keys),
    () => table.getEntity("p", "r"),
    () => table.deleteEntity("p", "r"),
    () => all(table.listEntities()),
  ]) {
    await refused(act, 404, "TableNotFound");
  }
});

test("statistics are not on the primary", async () => {
  // Of an address without labels the SDK derives no secondary, and asks the primary.
  await refused(() => service().getStatistics(), 400, "InvalidQueryParameterValue");
});

test("an error names its request", withTable(async (table) => {
  await assert.rejects(table.getEntity("p", "absent"), (error) => {
    assert.ok(error instanceof RestError);
    const { code, message } = error.response.parsedBody.odataError;
    assert.equal(code, "ResourceNotFound");
    const requestId = error.response.headers.get("x-ms-request-id");
    assert.match(message.value, new RegExp(`^The specified resource does not exist.\nRequestId:${requestId}\nTime:`));
    assert.ok(error.request.url.startsWith(endpoint));
    return true;
  });
}));
