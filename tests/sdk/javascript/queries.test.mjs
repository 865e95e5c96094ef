// Queries and paging.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { odata } from "@azure/data-tables";
import { all, properties, refused, tableClient, uniqueName, withTable } from "./helpers.mjs";

const table = tableClient(uniqueName());
const day = (number) => new Date(Date.UTC(2024, 0, 1 + number));
const guid = (number) => `00000000-0000-0000-0000-00000000000${number}`;

const row = (partitionKey, number) => ({
  partitionKey,
  rowKey: `r${number}`,
  n: number,
  big: 2n ** 40n + BigInt(number),
  half: { type: "Double", value: number / 2 },
  at: day(number),
  id: { type: "Guid", value: guid(number) },
  raw: Uint8Array.of(number),
  flag: number > 2,
  ...(number % 2 ? { note: `it's ${number}` } : {}),
});

before(async () => {
  await table.createTable();
  for (const partition of ["a", "b"]) {
    await table.submitTransaction([0, 1, 2, 3, 4].map((number) => ["create", row(partition, number)]));
  }
});
after(() => table.deleteTable());

const filters = [
  [odata`RowKey eq ${"r3"}`, [3]],
  [odata`n gt ${2}`, [3, 4]],
  [odata`n ge ${1} and n lt ${3}`, [1, 2]],
  [odata`n ne ${0}`, [1, 2, 3, 4]],
  [`big eq ${2n ** 40n + 2n}L`, [2]],
  [odata`half le ${0.5}`, [0, 1]],
  [odata`at lt ${day(2)}`, [0, 1]],
  [`id eq guid'${guid(3)}'`, [3]],
  ["raw eq X'01'", [1]],
  ["raw eq binary'01'", [1]],
  [odata`flag eq ${true}`, [3, 4]],
  ["flag", [3, 4]],
  ["not flag", [0, 1, 2]],
  [odata`note eq ${"it's 1"}`, [1]],
  ["note ne 'it''s 1'", [3]],
  ["not (note eq 'it''s 1')", [0, 2, 3, 4]],
  ["n eq 0 or (n eq 1 or RowKey eq 'r4')", [0, 1, 4]],
  ["absent eq 1", []],
  ["false", []],
];

for (const [filter, numbers] of filters) {
  test(`the filter ${filter}`, async () => {
    const everywhere = await all(table.listEntities({ queryOptions: { filter } }));
    assert.deepEqual(
      everywhere.map((entity) => [entity.partitionKey, entity.n]),
      ["a", "b"].flatMap((partition) => numbers.map((number) => [partition, number])),
    );
    const inside = await all(table.listEntities({ queryOptions: { filter: `PartitionKey eq 'b' and (${filter})` } }));
    assert.deepEqual(inside.map((entity) => entity.n), numbers);
  });
}

test("selecting", async () => {
  const queryOptions = { filter: "PartitionKey eq 'a' and n lt 2", select: ["rowKey", "note"] };
  const found = await all(table.listEntities({ queryOptions }));
  assert.deepEqual(
    found.map((entity) => [entity.partitionKey, entity.rowKey, properties(entity)]),
    [[undefined, "r0", { note: null }], [undefined, "r1", { note: "it's 1" }]],
  );
});

test("malformed filters are refused", async () => {
  for (const filter of ["aaa bbb ccc", "n eq", "n eq null", "(n eq 1"]) {
    await refused(() => all(table.listEntities({ queryOptions: { filter } })), 400, "InvalidInput");
  }
  const queryOptions = { filter: "startswith(RowKey,'r')" };
  await refused(() => all(table.listEntities({ queryOptions })), 501, "NotImplemented");
});

test("pages resume from their token", async () => {
  const found = [];
  const sizes = [];
  let continuationToken;
  do {
    const { value: page } = await table.listEntities().byPage({ maxPageSize: 3, continuationToken }).next();
    found.push(...page.map((entity) => entity.partitionKey + entity.rowKey));
    sizes.push(page.length);
    ({ continuationToken } = page);
  } while (continuationToken);
  assert.deepEqual(sizes, [3, 3, 3, 1]);
  assert.deepEqual(found, ["a", "b"].flatMap((partition) => [0, 1, 2, 3, 4].map((number) => `${partition}r${number}`)));
});

test("no token after exactly the last row, none too large", async () => {
  const { value: page } = await table.listEntities().byPage({ maxPageSize: 10 }).next();
  assert.equal(page.length, 10);
  assert.equal(page.continuationToken, undefined);
  await refused(() => table.listEntities().byPage({ maxPageSize: 1001 }).next(), 400, "InvalidInput");
});

test("more than a page of entities", withTable(async (large) => {
  const total = 1_234;
  for (let start = 0; start < total; start += 100) {
    const numbers = Array.from({ length: Math.min(100, total - start) }, (_, index) => start + index);
    const row = (n) => ({ partitionKey: "p", rowKey: String(n).padStart(5, "0"), n });
    await large.submitTransaction(numbers.map((n) => ["create", row(n)]));
  }
  const expected = Array.from({ length: total }, (_, index) => index);
  assert.deepEqual((await all(large.listEntities())).map((entity) => entity.n), expected);
  const pages = await all(large.listEntities({ queryOptions: { filter: "PartitionKey eq 'p'" } }).byPage());
  assert.deepEqual(pages.map((page) => page.length), [1000, 234]);
}));

test("keys of every script page one by one", withTable(async (table) => {
  const keys = ["", "'", "%", "a b", "zażółć", "中文", "😀", "\uffff"];
  for (const key of keys) {
    await table.createEntity({ partitionKey: key, rowKey: key });
  }
  const pages = await all(table.listEntities().byPage({ maxPageSize: 1 }));
  assert.deepEqual(pages.flat().map((entity) => entity.partitionKey), [...keys].sort());
}));
