// Property types and keys: what is written is what is read, in value and in type.

import assert from "node:assert/strict";
import { test } from "node:test";
import azure from "azure-storage";
import { all, edm, entity, properties, service, withTable } from "./helpers.mjs";

const { TableBatch, TableQuery } = azure;
const guid = "c9da6455-213d-42c9-9a79-3e9149a57833";

const samples = {
  string: [edm.String("text"), undefined],
  empty: [edm.String(""), undefined],
  blank: [edm.String(" \t\r\n "), undefined],
  unicode: [edm.String("zażółć 中文 \u2028 \ufeff 😀"), undefined],
  quotes: [edm.String("it's \"quoted\" \\ {json} <xml/> %27"), undefined],
  likeDate: [edm.String("2020-01-01T00:00:00Z"), undefined],
  longest: [edm.String("x".repeat(32_768)), undefined],
  yes: [edm.Boolean(true), undefined],
  no: [edm.Boolean(false), undefined],
  int32: [edm.Int32(-(2 ** 31)), undefined],
  int64: [edm.Int64("9223372036854775807"), "Edm.Int64"],
  double: [edm.Double(0.1), undefined],
  infinite: [edm.Double(Infinity), "Edm.Double"],
  minusInfinite: [edm.Double(-Infinity), "Edm.Double"],
  date: [edm.DateTime(new Date("2024-02-29T23:59:59.123Z")), "Edm.DateTime"],
  dateLeast: [edm.DateTime(new Date("1601-01-01T00:00:00Z")), "Edm.DateTime"],
  guid: [edm.Guid(guid), "Edm.Guid"],
  binary: [edm.Binary(Buffer.from(Array.from({ length: 256 }, (_, index) => index))), "Edm.Binary"],
};

for (const [name, [{ _: sent }, type]] of Object.entries(samples)) {
  test(`${name} round-trips exactly`, withTable(async (table) => {
    await service.insertEntity(table, entity("r", { value: samples[name][0] }));
    const [listed] = await all(table);
    for (const { value } of [await service.retrieveEntity(table, "p", "r"), listed]) {
      assert.deepEqual(value._, sent);
      assert.ok(!type || value.$ === type, value.$);
    }
  }));
}

test("not a number", withTable(async (table) => {
  await service.insertEntity(table, entity("r", { value: edm.Double(NaN) }));
  assert.ok(Number.isNaN((await service.retrieveEntity(table, "p", "r")).value._));
}));

test("an integral double stays a double", withTable(async (table) => {
  await service.insertEntity(table, entity("r", { value: edm.Double(4) }));
  assert.equal((await all(table, new TableQuery().where("value eq 4.0"))).length, 1);
}));

test("the three metadata levels", withTable(async (table) => {
  await service.insertEntity(table, entity("r", { id: edm.Guid(guid), n: edm.Int64("5") }));
  for (const [level, types] of [
    ["FULL_METADATA", ["Edm.Guid", "Edm.Int64"]],
    ["MINIMAL_METADATA", ["Edm.Guid", "Edm.Int64"]],
    ["NO_METADATA", [undefined, undefined]],
  ]) {
    const payloadFormat = azure.TableUtilities.PayloadFormat[level];
    const found = await service.retrieveEntity(table, "p", "r", { payloadFormat });
    assert.deepEqual([found.id.$, found.n.$], types);
    assert.deepEqual(properties(found), { id: guid, n: "5" });
  }
}));

const keys = [
  "", "simple", "O'Neil", "''", "100%", "%25", "%27", "a%20b", " blanks around ", "a+b", "a&b=c", "a,b", "(a),RowKey='b'",
  'say "hi"', "a;b:c@d!$*~_-.", "<xml>&amp;", "{json}[0]", "|^`", "zażółć", "中文", "😀", "k".repeat(512),
];

for (const key of keys) {
  test(`the key ${JSON.stringify(key).slice(0, 40)} works in every operation`, withTable(async (table) => {
    const row = (rest, rowKey = key) => entity(rowKey, rest, key);
    await service.insertEntity(table, row({ n: 0 }));
    await service.mergeEntity(table, row({ m: 1 }));
    await service.replaceEntity(table, row({ n: 2 }));
    await service.insertOrMergeEntity(table, row({ m: 3 }));
    assert.deepEqual(properties(await service.retrieveEntity(table, key, key)), { n: 2, m: 3 });
    const query = new TableQuery().where("PartitionKey == ? && RowKey == ?", key, key);
    const [found] = await all(table, query);
    assert.deepEqual([found.PartitionKey._, found.RowKey._], [key, key]);
    const batch = new TableBatch();
    batch.replaceEntity(row({ n: 4 }));
    batch.insertEntity(row({}, `${key}2`));
    await service.executeBatch(table, batch);
    await service.deleteEntity(table, row());
    assert.deepEqual((await all(table)).map((each) => each.RowKey._), [`${key}2`]);
  }));
}
