// Entity group transactions: every operation kind, every way to fail.

import assert from "node:assert/strict";
import { test } from "node:test";
import { TableTransaction } from "@azure/data-tables";
import { all, instant, properties, refused, tableClient, uniqueName, withTable } from "./helpers.mjs";

const entity = (rowKey, rest = {}) => ({ partitionKey: "it's p", rowKey, ...rest });
const stale = "W/\"datetime'2017-08-30T13%3A20%3A33.413914Z'\"";

async function contents(table) {
  const entities = await all(table.listEntities());
  return Object.fromEntries(entities.map((found) => [found.rowKey, properties(found)]));
}

const filled = (body) => withTable(async (table) => {
  const actions = ["1", "2", "3", "4", "5", "6"].map((row) => ["create", entity(row, { a: 1 })]);
  await table.submitTransaction(actions);
  await body(table);
});

/** Submitting fails with this status, code and index, and changes nothing. */
async function fails(table, actions, statusCode, code, index) {
  const before = await contents(table);
  await refused(() => table.submitTransaction(actions), statusCode, code);
  await assert.rejects(table.submitTransaction(actions), (error) => {
    assert.equal(Number.parseInt(error.message.split(":")[0], 10) || 0, index, error.message);
    return true;
  });
  assert.deepEqual(await contents(table), before);
}

test("every kind of operation at once", filled(async (table) => {
  const { etag } = await table.getEntity("it's p", "5");
  const answer = await table.submitTransaction([
    ["create", entity("new", { b: 2 })],
    ["upsert", entity("upserted", { b: 2 })],
    ["upsert", entity("1", { b: 2 }), "Merge"],
    ["upsert", entity("2", { b: 2 }), "Replace"],
    ["update", entity("3", { b: 2 }), "Merge"],
    ["update", entity("4", { b: 2 }), "Replace"],
    ["update", entity("5", { b: 2 }), "Merge", { etag }],
    ["delete", entity("6")],
  ]);
  assert.equal(answer.status, 202);
  assert.deepEqual(answer.subResponses.map((part) => part.status), Array(8).fill(204));
  assert.deepEqual(await contents(table), {
    1: { a: 1, b: 2 },
    2: { b: 2 },
    3: { a: 1, b: 2 },
    4: { b: 2 },
    5: { a: 1, b: 2 },
    new: { b: 2 },
    upserted: { b: 2 },
  });
  const stored = Object.fromEntries((await all(table.listEntities())).map((found) => [found.rowKey, found.etag]));
  const rows = ["new", "upserted", "1", "2", "3", "4", "5"];
  assert.deepEqual(answer.subResponses.map((part) => part.etag), [...rows.map((row) => stored[row]), undefined]);
  assert.ok(rows.every((row) => instant(stored[row]) > instant(etag)));
  assert.equal(answer.getResponseForEntity("new").etag, stored.new);
}));

test("the transaction builder", filled(async (table) => {
  const transaction = new TableTransaction();
  transaction.createEntity(entity("new"));
  transaction.upsertEntity(entity("1", { b: 2 }), "Replace");
  transaction.updateEntity(entity("2", { b: 2 }), "Merge");
  transaction.deleteEntity("it's p", "3");
  await table.submitTransaction(transaction.actions);
  const found = await contents(table);
  assert.deepEqual([found.new, found[1], found[2], found[3]], [{}, { b: 2 }, { a: 1, b: 2 }, undefined]);
}));

test("a hundred operations and their answers in order", withTable(async (table) => {
  const rows = Array.from({ length: 100 }, (_, index) => String(99 - index).padStart(2, "0"));
  const answer = await table.submitTransaction(rows.map((row) => ["create", entity(row)]));
  const stored = Object.fromEntries((await all(table.listEntities())).map((found) => [found.rowKey, found.etag]));
  assert.deepEqual(answer.subResponses.map((part) => part.etag), rows.map((row) => stored[row]));
  assert.deepEqual(answer.subResponses.map((part) => part.rowKey), rows);
}));

test("creating what exists", filled(async (table) => {
  await fails(table, [["create", entity("1")]], 409, "EntityAlreadyExists", 0);
  await fails(table, ["a", "b", "c", "2"].map((row) => ["create", entity(row)]), 409, "EntityAlreadyExists", 3);
}));

test("updating or deleting what is absent", filled(async (table) => {
  await fails(table, [["delete", entity("1")], ["update", entity("absent")]], 404, "ResourceNotFound", 1);
  await fails(table, [["upsert", entity("1", { a: 2 })], ["delete", entity("absent")]], 404, "ResourceNotFound", 1);
}));

test("stale etags", filled(async (table) => {
  for (const mode of ["Merge", "Replace"]) {
    const actions = [["delete", entity("1")], ["create", entity("a")], ["update", entity("3"), mode, { etag: stale }]];
    await fails(table, actions, 412, "UpdateConditionNotSatisfied", 2);
  }
}));

test("one row twice", filled(async (table) => {
  const actions = [["upsert", entity("1")], ["upsert", entity("2")], ["delete", entity("1")]];
  await fails(table, actions, 400, "InvalidDuplicateRow", 2);
}));

test("more than a hundred operations", withTable(async (table) => {
  const actions = Array.from({ length: 101 }, (_, index) => ["create", entity(String(index))]);
  await refused(() => table.submitTransaction(actions), 400, "InvalidInput");
  assert.deepEqual(await contents(table), {});
}));

test("limits hold inside", filled(async (table) => {
  const many = Object.fromEntries(Array.from({ length: 253 }, (_, index) => [`p${index}`, 1]));
  const large = Object.fromEntries(Array.from({ length: 16 }, (_, index) => [`p${index}`, new Uint8Array(65_536)]));
  for (const [rest, code] of [
    [{ ["x".repeat(256)]: 1 }, "PropertyNameTooLong"],
    [{ "a-b": 1 }, "PropertyNameInvalid"],
    [{ a: "x".repeat(32_769) }, "PropertyValueTooLarge"],
    [many, "TooManyProperties"],
    [large, "EntityTooLarge"],
  ]) {
    await fails(table, [["delete", entity("1")], ["create", entity("a", rest)]], 400, code, 1);
  }
}));

test("four mebibytes are too much", withTable(async (table) => {
  const rows = Array.from({ length: 60 }, (_, index) => entity(String(index), { a: new Uint8Array(60_000) }));
  const actions = rows.map((row) => ["create", row]);
  await refused(() => table.submitTransaction(actions), 413, "RequestBodyTooLarge");
  assert.deepEqual(await contents(table), {});
}));

test("a missing table", async () => {
  await refused(() => tableClient(uniqueName()).submitTransaction([["create", entity("1")]]), 404, "TableNotFound");
});

test("several partitions are refused by the SDK itself", withTable(async (table) => {
  const actions = [["create", entity("1")], ["create", { partitionKey: "q", rowKey: "1" }]];
  await assert.rejects(table.submitTransaction(actions), /same partitionKey/);
}));
