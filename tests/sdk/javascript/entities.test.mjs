// The table client: one entity at a time, with every mode and condition.

import assert from "node:assert/strict";
import { test } from "node:test";
import { all, instant, properties, refused, withTable } from "./helpers.mjs";

const keys = { partitionKey: "p", rowKey: "r" };
const entity = { ...keys, a: 1, b: "two" };
const stale = "W/\"datetime'2017-08-30T13%3A20%3A33.413914Z'\"";

test("an entity is created and read", withTable(async (table) => {
  const made = await table.createEntity(entity);
  assert.equal(made.preferenceApplied, "return-no-content");
  const read = await table.getEntity("p", "r");
  assert.deepEqual(properties(read), { a: 1, b: "two" });
  assert.equal(read.etag, made.etag);
  assert.equal(read.etag, `W/"datetime'${read.timestamp.replaceAll(":", "%3A")}'"`);
  await refused(() => table.createEntity(entity), 409, "EntityAlreadyExists");
}));

test("reading selected properties", withTable(async (table) => {
  await table.createEntity(entity);
  const read = await table.getEntity("p", "r", { queryOptions: { select: ["a", "absent"] } });
  assert.deepEqual([properties(read), read.partitionKey], [{ a: 1, absent: null }, undefined]);
}));

for (const write of ["updateEntity", "upsertEntity"]) {
  test(`${write} merges and replaces`, withTable(async (table) => {
    await table.createEntity(entity);
    const merged = await table[write]({ ...keys, a: "changed", c: null }, "Merge");
    assert.deepEqual(properties(await table.getEntity("p", "r")), { a: "changed", b: "two" });
    const replaced = await table[write]({ ...keys, d: 4 }, "Replace");
    const read = await table.getEntity("p", "r");
    assert.deepEqual(properties(read), { d: 4 });
    assert.equal(read.etag, replaced.etag);
    assert.ok(instant(replaced.etag) > instant(merged.etag));
  }));
}

for (const mode of ["Merge", "Replace"]) {
  test(`${mode} with conditions`, withTable(async (table) => {
    await refused(() => table.updateEntity(entity, mode), 404, "ResourceNotFound");
    const made = await table.upsertEntity(entity, mode);
    await refused(() => table.updateEntity(entity, mode, { etag: stale }), 412, "UpdateConditionNotSatisfied");
    await refused(() => table.updateEntity(entity, mode, { etag: "banana" }), 400, "InvalidInput");
    const { etag } = await table.updateEntity({ ...entity, a: 2 }, mode, { etag: made.etag });
    await refused(() => table.updateEntity(entity, mode, { etag: made.etag }), 412, "UpdateConditionNotSatisfied");
    await table.updateEntity({ ...entity, a: 3 }, mode, { etag });
    assert.deepEqual(properties(await table.getEntity("p", "r")), { a: 3, b: "two" });
  }));
}

test("deleting with conditions", withTable(async (table) => {
  await refused(() => table.deleteEntity("p", "r"), 404, "ResourceNotFound");
  const { etag } = await table.createEntity(entity);
  await refused(() => table.deleteEntity("p", "r", { etag: stale }), 412, "UpdateConditionNotSatisfied");
  await table.deleteEntity("p", "r", { etag });
  await table.createEntity(entity);
  await refused(() => table.deleteEntity("p", "r", { etag }), 412, "UpdateConditionNotSatisfied");
  await table.deleteEntity("p", "r");
  await refused(() => table.getEntity("p", "r"), 404, "ResourceNotFound");
  assert.deepEqual(await all(table.listEntities()), []);
}));
