// Queries, written with the SDK's own builder, and paging.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import azure from "azure-storage";
import { all, edm, entity, properties, refused, service, uniqueName, withTable } from "./helpers.mjs";

const { TableBatch, TableQuery } = azure;
const { QueryComparisons: is } = azure.TableUtilities;
const table = uniqueName();
const numbers = [0, 1, 2, 3, 4];
const day = (number) => new Date(Date.UTC(2024, 0, 1 + number));
const guid = (number) => `00000000-0000-0000-0000-00000000000${number}`;

const row = (partitionKey, n) => entity(`r${n}`, {
  n,
  big: edm.Int64(String(2n ** 40n + BigInt(n))),
  half: edm.Double(n / 2),
  at: day(n),
  id: edm.Guid(guid(n)),
  raw: edm.Binary(Buffer.from([n])),
  flag: n > 2,
  ...(n % 2 ? { note: `it's ${n}` } : {}),
}, partitionKey);

before(async () => {
  await service.createTable(table);
  for (const partition of ["a", "b"]) {
    const batch = new TableBatch();
    numbers.forEach((n) => batch.insertEntity(row(partition, n)));
    await service.executeBatch(table, batch);
  }
});
after(() => service.deleteTable(table));

for (const [filter, expected] of [
  [TableQuery.stringFilter("RowKey", is.EQUAL, "r3"), [3]],
  [TableQuery.int32Filter("n", is.GREATER_THAN, 2), [3, 4]],
  [TableQuery.int64Filter("big", is.EQUAL, String(2n ** 40n + 2n)), [2]],
  [TableQuery.doubleFilter("half", is.LESS_THAN_OR_EQUAL, 0.5), [0, 1]],
  [TableQuery.dateFilter("at", is.LESS_THAN, day(2)), [0, 1]],
  [TableQuery.guidFilter("id", is.EQUAL, guid(3)), [3]],
  [TableQuery.binaryFilter("raw", is.EQUAL, Buffer.from([1])), [1]],
  [TableQuery.booleanFilter("flag", is.EQUAL, true), [3, 4]],
  [TableQuery.stringFilter("note", is.EQUAL, "it's 1"), [1]],
  [TableQuery.stringFilter("note", is.NOT_EQUAL, "it's 1"), [3]],
  ["not (note eq 'it''s 1')", [0, 2, 3, 4]],
  ["n eq 0 or (n eq 1 or RowKey eq 'r4')", [0, 1, 4]],
  ["absent eq 1", []],
]) {
  test(`the filter ${filter}`, async () => {
    const found = await all(table, new TableQuery().where(filter));
    assert.deepEqual(
      found.map((each) => each.PartitionKey._ + each.n._),
      ["a", "b"].flatMap((partition) => expected.map((n) => partition + n)),
    );
  });
}

test("the words of the builder", async () => {
  const query = new TableQuery().where("PartitionKey == ?", "b").and("n >= ? && n < ?int32?", 1, 4).and("note != ?", "");
  assert.deepEqual((await all(table, query)).map((each) => each.n._), [1, 3]);
});

test("selecting", async () => {
  const query = new TableQuery().select("RowKey", "note").where("PartitionKey == ? && n < ?", "a", 2);
  const found = await all(table, query);
  assert.deepEqual(
    found.map((each) => [each.PartitionKey, each.RowKey._, properties(each)]),
    [[undefined, "r0", { note: null }], [undefined, "r1", { note: "it's 1" }]],
  );
});

test("malformed filters are refused", async () => {
  await refused(() => all(table, new TableQuery().where("aaa bbb ccc")), 400, "InvalidInput");
  await refused(() => all(table, new TableQuery().where("startswith(RowKey,'r')")), 501, "NotImplemented");
});

test("pages go on by their token", async () => {
  const found = [];
  const sizes = [];
  let token = null;
  do {
    const page = await service.queryEntities(table, new TableQuery().top(3), token);
    found.push(...page.entries.map((each) => each.PartitionKey._ + each.RowKey._));
    sizes.push(page.entries.length);
    token = page.continuationToken;
  } while (token);
  assert.deepEqual(sizes, [3, 3, 3, 1]);
  assert.deepEqual(found, ["a", "b"].flatMap((partition) => numbers.map((n) => `${partition}r${n}`)));
  await refused(() => all(table, new TableQuery().top(1001)), 400, "InvalidInput");
});

test("more than a page of entities", withTable(async (large) => {
  for (let start = 0; start < 1100; start += 100) {
    const batch = new TableBatch();
    for (let n = start; n < start + 100; n += 1) {
      batch.insertEntity(entity(String(n).padStart(5, "0"), { n }));
    }
    await service.executeBatch(large, batch);
  }
  const expected = Array.from({ length: 1100 }, (_, index) => index);
  assert.deepEqual((await all(large)).map((each) => each.n._), expected);
}));

test("tables are listed by prefix and page", async () => {
  const prefix = uniqueName().slice(0, 24);
  const names = ["a", "b", "c", "d", "e"].map((letter) => prefix + letter);
  for (const name of names) {
    await service.createTable(name);
  }
  try {
    const found = [];
    const sizes = [];
    let token = null;
    do {
      const page = await service.listTablesSegmentedWithPrefix(prefix, token, { maxResults: 2 });
      found.push(...page.entries);
      sizes.push(page.entries.length);
      token = page.continuationToken;
    } while (token);
    assert.deepEqual([found, sizes], [names, [2, 2, 1]]);
    const { entries } = await service.listTablesSegmented(null);
    assert.deepEqual(entries.filter((name) => name.startsWith(prefix)), names);
  } finally {
    for (const name of names) {
      await service.deleteTable(name);
    }
  }
});
