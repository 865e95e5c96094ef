// Property types and keys: what is written is what is read, in value and in type.

import assert from "node:assert/strict";
import { test } from "node:test";
import { odata } from "@azure/data-tables";
import { all, properties, withTable } from "./helpers.mjs";

const guid = "c9da6455-213d-42c9-9a79-3e9149a57833";
const same = (value) => ({ sent: value, read: value });
const edm = (type, value, read) => ({ sent: { type, value }, read });

// name: what is sent, what is read, and what is read when the SDK converts no types.
const samples = {
  string: same("text"),
  stringEmpty: same(""),
  stringBlank: same(" \t\r\n "),
  stringUnicode: same("zażółć 中文 \u2028 \ufeff \uffff"),
  stringEmoji: same("😀👩‍👩‍👧"),
  stringQuotes: same("it's \"quoted\" \\ {json} <xml/> %27"),
  stringLikeDate: same("2020-01-01T00:00:00Z"),
  stringLongest: same("x".repeat(32_768)),
  booleanTrue: same(true),
  booleanFalse: same(false),
  int32: same(7),
  int32Least: same(-(2 ** 31)),
  int32Greatest: same(2 ** 31 - 1),
  int64: same(5n),
  int64Least: same(-(2n ** 63n)),
  int64Greatest: same(2n ** 63n - 1n),
  double: same(0.1),
  doubleGreatest: same(1.7976931348623157e308),
  doubleSmallest: same(5e-324),
  dateTime: same(new Date("2024-02-29T23:59:59.123Z")),
  dateTimeLeast: same(new Date("1601-01-01T00:00:00Z")),
  binary: same(Uint8Array.from({ length: 256 }, (_, index) => index)),
  binaryLongest: same(new Uint8Array(65_536).fill(255)),
  edmString: edm("String", "s", "s"),
  edmBoolean: edm("Boolean", true, true),
  edmInt32: edm("Int32", 5, 5),
  edmInt64: edm("Int64", "9007199254740993", 9007199254740993n),
  edmDouble: edm("Double", 5, 5),
  edmDoubleNan: edm("Double", "NaN", "NaN"),
  edmDoubleInfinity: edm("Double", "Infinity", "Infinity"),
  edmDoubleNegativeInfinity: edm("Double", "-Infinity", "-Infinity"),
  edmGuid: edm("Guid", guid, { type: "Guid", value: guid }),
  edmBinary: edm("Binary", "AP8=", Uint8Array.of(0, 255)),
  edmDateTime: edm("DateTime", "2024-02-29T23:59:59Z", new Date("2024-02-29T23:59:59Z")),
};

const bare = (value) => (value instanceof Uint8Array ? Uint8Array.from(value) : value);

for (const [name, { sent, read }] of Object.entries(samples)) {
  test(`${name} round-trips exactly`, withTable(async (table) => {
    await table.createEntity({ partitionKey: "p", rowKey: "r", value: sent });
    const entity = await table.getEntity("p", "r");
    assert.deepEqual(bare(entity.value), read);
    const [listed] = await all(table.listEntities());
    assert.deepEqual(bare(listed.value), read);
  }));
}

test("types without conversion", withTable(async (table) => {
  const typed = {
    bin: { type: "Binary", value: "AP8=" },
    date: { type: "DateTime", value: "2024-02-29T23:59:59.1234567Z" },
    guid: { type: "Guid", value: guid },
    long: { type: "Int64", value: "9223372036854775807" },
    nan: { type: "Double", value: "NaN" },
  };
  await table.createEntity({ partitionKey: "p", rowKey: "r", ...typed });
  const entity = await table.getEntity("p", "r", { disableTypeConversion: true });
  assert.deepEqual(properties(entity), typed);
  await table.updateEntity({ partitionKey: "p", rowKey: "r", ...properties(entity) }, "Replace");
  const [again] = await all(table.listEntities({ disableTypeConversion: true }));
  assert.deepEqual(properties(again), typed);
}));

test("an integral double stays a double", withTable(async (table) => {
  await table.createEntity({ partitionKey: "p", rowKey: "r", value: { type: "Double", value: 4 } });
  // JavaScript cannot tell 4.0 from 4; a filter with a double literal can tell that it is found.
  const found = await all(table.listEntities({ queryOptions: { filter: "value eq 4.0" } }));
  assert.equal(found.length, 1);
}));

test("null and undefined are absence", withTable(async (table) => {
  await table.createEntity({ partitionKey: "p", rowKey: "r", a: null, b: undefined, c: 1 });
  assert.deepEqual(properties(await table.getEntity("p", "r")), { c: 1 });
}));

const keySamples = [
  "", "simple", "O'Neil", "''", "100%", "%25", "%27", "a%20b", " blanks around ", "a+b", "a&b=c", "a,b",
  "(a),RowKey='b'", 'say "hi"', "a;b:c@d!$*~_-.", "<xml>&amp;", "{json}[0]", "|^`", "zażółć", "中文", "😀",
  "k".repeat(512),
];

for (const key of keySamples) {
  test(`the key ${JSON.stringify(key).slice(0, 40)} works in every operation`, withTable(async (table) => {
    const keys = { partitionKey: key, rowKey: key };
    await table.createEntity({ ...keys, n: 0 });
    await table.updateEntity({ ...keys, n: 1 }, "Merge");
    await table.updateEntity({ ...keys, n: 2 }, "Replace");
    await table.upsertEntity({ ...keys, m: 3 }, "Merge");
    assert.deepEqual(properties(await table.getEntity(key, key)), { n: 2, m: 3 });
    const filter = odata`PartitionKey eq ${key} and RowKey eq ${key}`;
    const [found] = await all(table.listEntities({ queryOptions: { filter } }));
    assert.deepEqual([found.partitionKey, found.rowKey], [key, key]);
    await table.submitTransaction([["update", { ...keys, n: 4 }], ["create", { ...keys, rowKey: `${key}2` }]]);
    assert.equal((await table.getEntity(key, key)).n, 4);
    await table.deleteEntity(key, key);
    await table.submitTransaction([["delete", { ...keys, rowKey: `${key}2` }]]);
    assert.deepEqual(await all(table.listEntities()), []);
  }));
}
