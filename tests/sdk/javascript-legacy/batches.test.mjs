// Entity group transactions: every kind of operation, and failures with their index.

import assert from "node:assert/strict";
import { test } from "node:test";
import azure from "azure-storage";
import {
  all, conditional, contents, entity, properties, refused, service, stale, uniqueName, withTable,
} from "./helpers.mjs";

const { TableBatch } = azure;

const filled = (body) => withTable(async (table) => {
  const batch = new TableBatch();
  ["1", "2", "3", "4", "5", "6"].forEach((row) => batch.insertEntity(entity(row, { a: 1 })));
  await service.executeBatch(table, batch);
  await body(table);
});

test("every kind of operation at once", filled(async (table) => {
  const { ".metadata": { etag } } = await service.retrieveEntity(table, "p", "5");
  const batch = new TableBatch();
  batch.insertEntity(entity("new", { b: 2 }));
  batch.insertEntity(entity("echoed", { b: 2 }), { echoContent: true });
  batch.insertOrMergeEntity(entity("upserted", { b: 2 }));
  batch.insertOrMergeEntity(entity("1", { b: 2 }));
  batch.insertOrReplaceEntity(entity("2", { b: 2 }));
  batch.mergeEntity(entity("3", { b: 2 }));
  batch.replaceEntity(entity("4", { b: 2 }));
  batch.mergeEntity(conditional(entity("5", { b: 2 }), etag));
  batch.deleteEntity(entity("6"));
  const answers = await service.executeBatch(table, batch);
  assert.deepEqual(answers.map(({ response }) => response.statusCode), [204, 201, 204, 204, 204, 204, 204, 204, 204]);
  assert.deepEqual(properties(answers[1].entity), { b: 2 });
  const merged = { a: 1, b: 2 };
  const only = { b: 2 };
  assert.deepEqual(
    await contents(table),
    { 1: merged, 2: only, 3: merged, 4: only, 5: merged, echoed: only, new: only, upserted: only },
  );
  const stored = Object.fromEntries((await all(table)).map((each) => [each.RowKey._, each[".metadata"].etag]));
  const rows = ["new", "echoed", "upserted", "1", "2", "3", "4", "5"];
  assert.deepEqual(
    answers.map((answer) => answer.entity[".metadata"]?.etag),
    [...rows.map((row) => stored[row]), undefined],
  );
}));

test("a query alone", filled(async (table) => {
  const batch = new TableBatch();
  batch.retrieveEntity("p", "3");
  const [answer] = await service.executeBatch(table, batch);
  assert.deepEqual([answer.response.statusCode, properties(answer.entity)], [200, { a: 1 }]);
}));

for (const [what, last, statusCode, code] of [
  ["inserting what exists", (batch) => batch.insertEntity(entity("2")), 409, "EntityAlreadyExists"],
  ["replacing what is absent", (batch) => batch.replaceEntity(entity("absent")), 404, "ResourceNotFound"],
  ["deleting what is absent", (batch) => batch.deleteEntity(entity("absent")), 404, "ResourceNotFound"],
  [
    "a stale etag",
    (batch) => batch.mergeEntity(conditional(entity("2"), stale)), 412, "UpdateConditionNotSatisfied",
  ],
  [
    "a value too large",
    (batch) => batch.insertEntity(entity("x", { a: "x".repeat(32_769) })), 400, "PropertyValueTooLarge",
  ],
]) {
  test(`${what} fails the batch and says where`, filled(async (table) => {
    const before = await contents(table);
    const batch = new TableBatch();
    batch.deleteEntity(entity("1"));
    batch.insertEntity(entity("new"));
    last(batch);
    await refused(() => service.executeBatch(table, batch), statusCode, code);
    await assert.rejects(service.executeBatch(table, batch), /^(StorageError: )?2:/);
    assert.deepEqual(await contents(table), before);
  }));
}

test("a hundred operations", withTable(async (table) => {
  const batch = new TableBatch();
  const rows = Array.from({ length: 100 }, (_, index) => String(99 - index).padStart(2, "0"));
  rows.forEach((row) => batch.insertEntity(entity(row)));
  const answers = await service.executeBatch(table, batch);
  const stored = Object.fromEntries((await all(table)).map((each) => [each.RowKey._, each[".metadata"].etag]));
  assert.deepEqual(answers.map((answer) => answer.entity[".metadata"].etag), rows.map((row) => stored[row]));
}));

test("a missing table", async () => {
  const batch = new TableBatch();
  batch.insertEntity(entity());
  await refused(() => service.executeBatch(uniqueName(), batch), 404, "TableNotFound");
});
