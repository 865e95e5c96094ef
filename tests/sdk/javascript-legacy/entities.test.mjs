// Tables and entities: every write, with every condition.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  all, conditional, contents, edm, entity, properties, refused, service, stale, uniqueName, withTable,
} from "./helpers.mjs";

const mismatch = "UpdateConditionNotSatisfied";
const etagOf = (written) => written[".metadata"].etag;

test("tables are created, found and deleted", async () => {
  const name = uniqueName();
  assert.equal((await service.doesTableExist(name)).exists, false);
  assert.equal((await service.createTableIfNotExists(name)).created, true);
  assert.equal((await service.createTableIfNotExists(name)).created, false);
  assert.equal((await service.doesTableExist(name)).exists, true);
  await refused(() => service.createTable(name), 409, "TableAlreadyExists");
  assert.equal(await service.deleteTableIfExists(name), true);
  assert.equal(await service.deleteTableIfExists(name), false);
  await refused(() => service.deleteTable(name), 404, "ResourceNotFound");
});

test("an entity is inserted once", withTable(async (table) => {
  const etag = etagOf(await service.insertEntity(table, entity("r", { a: 1, b: "two" })));
  const read = await service.retrieveEntity(table, "p", "r");
  assert.deepEqual([properties(read), etagOf(read)], [{ a: 1, b: "two" }, etag]);
  await refused(() => service.insertEntity(table, entity()), 409, "EntityAlreadyExists");
  const echoed = await service.insertEntity(table, entity("echo", { a: 1 }), { echoContent: true });
  assert.deepEqual([properties(echoed), echoed.RowKey._], [{ a: 1 }, "echo"]);
}));

for (const [write, after] of [["replaceEntity", { b: 2 }], ["mergeEntity", { a: 1, b: 2 }]]) {
  test(`${write} obeys its condition`, withTable(async (table) => {
    await refused(() => service[write](table, entity()), 404, "ResourceNotFound");
    const first = etagOf(await service.insertEntity(table, entity("r", { a: 1 })));
    await refused(() => service[write](table, conditional(entity(), stale)), 412, mismatch);
    await refused(() => service[write](table, conditional(entity(), "banana")), 400, "InvalidInput");
    const second = etagOf(await service[write](table, conditional(entity("r", { b: 2 }), first)));
    assert.deepEqual(await contents(table), { r: after });
    await refused(() => service[write](table, conditional(entity(), first)), 412, mismatch);
    assert.ok(second > first);
    await service[write](table, conditional(entity("r", { b: 3 }), "*"));
    await service[write](table, entity("r", { b: 4 }));
    assert.equal((await contents(table)).r.b, 4);
  }));
}

for (const [write, after] of [["insertOrReplaceEntity", { b: 2 }], ["insertOrMergeEntity", { a: 1, b: 2 }]]) {
  test(`${write} needs no entity`, withTable(async (table) => {
    await service[write](table, entity("r", { a: 1 }));
    assert.deepEqual(await contents(table), { r: { a: 1 } });
    await service[write](table, entity("r", { b: 2 }));
    assert.deepEqual(await contents(table), { r: after });
  }));
}

test("deleteEntity obeys its condition", withTable(async (table) => {
  await refused(() => service.deleteEntity(table, entity()), 404, "ResourceNotFound");
  const etag = etagOf(await service.insertEntity(table, entity()));
  await refused(() => service.deleteEntity(table, conditional(entity(), stale)), 412, mismatch);
  await service.deleteEntity(table, conditional(entity(), etag));
  await service.insertEntity(table, entity());
  await service.deleteEntity(table, entity());
  await refused(() => service.retrieveEntity(table, "p", "r"), 404, "ResourceNotFound");
  assert.deepEqual(await all(table), []);
}));

test("what is beyond the limits is refused", withTable(async (table) => {
  const many = Object.fromEntries(Array.from({ length: 253 }, (_, index) => [`p${index}`, 1]));
  for (const [given, statusCode, code] of [
    [entity("a/b"), 400, "OutOfRangeInput"],
    [entity("r", { "a-b": 1 }), 400, "PropertyNameInvalid"],
    [entity("r", { ["x".repeat(256)]: 1 }), 400, "PropertyNameTooLong"],
    [entity("r", { a: "x".repeat(32_769) }), 400, "PropertyValueTooLarge"],
    [entity("r", many), 400, "TooManyProperties"],
    [entity("r", { a: edm.Guid("banana") }), 400, "InvalidInput"],
    [entity("r", { a: "x".repeat(4 * 1024 * 1024) }), 413, "RequestBodyTooLarge"],
  ]) {
    await refused(() => service.insertEntity(table, given), statusCode, code);
  }
  assert.deepEqual(await all(table), []);
}));

test("a missing table", async () => {
  const table = uniqueName();
  for (const act of [
    () => service.insertEntity(table, entity()),
    () => service.replaceEntity(table, entity()),
    () => service.insertOrMergeEntity(table, entity()),
    () => service.retrieveEntity(table, "p", "r"),
    () => service.deleteEntity(table, entity()),
    () => all(table),
  ]) {
    await refused(act, 404, "TableNotFound");
  }
});
