// Credentials: Shared Key, account SAS, table SAS with key ranges, stored access policies.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  AzureNamedKeyCredential, AzureSASCredential, TableClient, TableServiceClient, generateAccountSas, generateTableSas,
} from "@azure/data-tables";
import {
  account, all, credential, endpoint, options, past, properties, refused, soon, tableClient, uniqueName, withTable,
} from "./helpers.mjs";

const mismatch = "AuthorizationPermissionMismatch";
const row = (partitionKey, rowKey, rest = {}) => ({ partitionKey, rowKey, ...rest });
const everything = { query: true, add: true, update: true, delete: true };

/** A client that holds a table SAS of the given kind. */
function grant(table, values) {
  const sas = generateTableSas(table.tableName, credential, { expiresOn: soon, ...values });
  return tableClient(table.tableName, new AzureSASCredential(sas));
}

/** A service client that holds an account SAS of the given kind. */
function accountGrant(values) {
  const sas = generateAccountSas(credential, { expiresOn: soon, ...values });
  return new TableServiceClient(endpoint, new AzureSASCredential(sas), options);
}

test("a wrong key", withTable(async (table) => {
  const wrong = tableClient(table.tableName, new AzureNamedKeyCredential(account, "YmFuYW5h"));
  await refused(() => wrong.getEntity("p", "r"), 403, "AuthenticationFailed");
}));

test("a table SAS permits what it says", withTable(async (table) => {
  await table.createEntity(row("p", "r"));
  const actions = {
    query: async (client) => [await client.getEntity("p", "r"), await all(client.listEntities())],
    add: (client) => client.createEntity(row("p", "added")),
    update: (client) => client.updateEntity(row("p", "r")),
    delete: (client) => client.deleteEntity("p", "added"),
  };
  for (const permission of Object.keys(actions)) {
    const client = grant(table, { permissions: { [permission]: true } });
    for (const [needed, act] of Object.entries(actions)) {
      if (needed === permission) {
        await act(client);
      } else {
        await refused(() => act(client), 403, mismatch);
      }
    }
  }
  await refused(() => grant(table, { permissions: { add: true } }).upsertEntity(row("p", "r")), 403, mismatch);
  await grant(table, { permissions: { add: true, update: true } }).upsertEntity(row("p", "r"));
}));

test("each operation of a transaction needs its permission", withTable(async (table) => {
  await table.createEntity(row("p", "r"));
  const actions = [["create", row("p", "new")], ["update", row("p", "r", { a: 1 })]];
  await refused(() => grant(table, { permissions: { add: true } }).submitTransaction(actions), 403, mismatch);
  assert.equal((await all(table.listEntities())).length, 1);
  const answer = await grant(table, { permissions: { add: true, update: true } }).submitTransaction(actions);
  assert.equal(answer.subResponses.length, 2);
}));

test("a SAS in the address, in single requests and in transactions", withTable(async (table) => {
  const bounded = { permissions: everything, expiresOn: soon, startPartitionKey: "p", endPartitionKey: "p" };
  for (const sas of [
    generateTableSas(table.tableName, credential, bounded),
    generateAccountSas(credential, { permissions: everything, expiresOn: soon, resourceTypes: "o" }),
  ]) {
    const client = new TableClient(`${endpoint}?${sas}`, table.tableName, options);
    await client.createEntity(row("p", "it's"));
    await client.submitTransaction([["create", row("p", "a b")], ["upsert", row("p", "it's", { a: 1 })]]);
    assert.deepEqual((await all(client.listEntities())).map((entity) => entity.rowKey), ["a b", "it's"]);
    await client.submitTransaction([["delete", row("p", "a b")], ["delete", row("p", "it's")]]);
  }
}));

test("a SAS connection string", withTable(async (table) => {
  const sas = generateAccountSas(credential, { permissions: { query: true }, expiresOn: soon, resourceTypes: "o" });
  const text = `TableEndpoint=${endpoint};SharedAccessSignature=${sas}`;
  assert.deepEqual(await all(TableClient.fromConnectionString(text, table.tableName, options).listEntities()), []);
}));

test("a key range bounds writes and filters queries", withTable(async (table) => {
  for (const partition of ["a", "b", "c", "d"]) {
    await table.submitTransaction(["0", "1", "2"].map((name) => ["create", row(partition, name)]));
  }
  const client = grant(table, {
    permissions: everything, startPartitionKey: "b", startRowKey: "1", endPartitionKey: "c", endRowKey: "1",
  });
  const inside = [["b", "1"], ["b", "2"], ["c", "0"], ["c", "1"]];
  const found = await all(client.listEntities());
  assert.deepEqual(found.map((entity) => [entity.partitionKey, entity.rowKey]), inside);
  for (const [partition, name] of inside) {
    await client.updateEntity(row(partition, name, { a: 1 }));
    assert.deepEqual(properties(await client.getEntity(partition, name)), { a: 1 });
  }
  for (const [partition, name] of [["a", "2"], ["b", "0"], ["c", "2"], ["d", "0"]]) {
    for (const act of [
      () => client.getEntity(partition, name),
      () => client.createEntity(row(partition, name)),
      () => client.updateEntity(row(partition, name)),
      () => client.upsertEntity(row(partition, name)),
      () => client.deleteEntity(partition, name),
      () => client.submitTransaction([["update", row(partition, name)]]),
    ]) {
      await refused(act, 403, "AuthorizationFailure");
    }
  }
}));

test("half-open key ranges", withTable(async (table) => {
  for (const partition of ["a", "b", "c"]) {
    await table.createEntity(row(partition, "r"));
  }
  for (const [bounds, partitions] of [
    [{ startPartitionKey: "b" }, ["b", "c"]],
    [{ endPartitionKey: "b" }, ["a", "b"]],
    [{ startPartitionKey: "c", endPartitionKey: "c" }, ["c"]],
  ]) {
    const found = await all(grant(table, { permissions: { query: true }, ...bounds }).listEntities());
    assert.deepEqual(found.map((entity) => entity.partitionKey), partitions);
  }
}));

test("times, protocol and address are enforced", withTable(async (table) => {
  const list = (values) => all(grant(table, { permissions: { query: true }, ...values }).listEntities());
  await list({ startsOn: past, protocol: "https,http", ipRange: { start: "127.0.0.0", end: "127.0.0.9" } });
  const later = new Date(soon.getTime() + 3_600_000);
  await refused(() => list({ expiresOn: past }), 403, "AuthenticationFailed");
  await refused(() => list({ startsOn: soon, expiresOn: later }), 403, "AuthenticationFailed");
  await refused(() => list({ protocol: "https" }), 403, "AuthorizationProtocolMismatch");
  await refused(() => list({ ipRange: { start: "192.0.2.1" } }), 403, "AuthorizationSourceIPMismatch");
}));

test("an account SAS permits what it says", async () => {
  const permissions = { query: true, write: true, delete: true, list: true, add: true, update: true };
  const name = uniqueName();
  const service = accountGrant({ permissions, resourceTypes: "sco" });
  await service.createTable(name);
  assert.ok((await all(service.listTables())).some((item) => item.name === name));
  await service.getProperties();
  await refused(() => accountGrant({ permissions: { query: true, list: true } }).deleteTable(name), 403, mismatch);
  const wrong = (values) => accountGrant({ permissions, ...values });
  const wrongType = "AuthorizationResourceTypeMismatch";
  await refused(() => wrong({ resourceTypes: "s" }).createTable(name), 403, wrongType);
  await refused(() => wrong({ resourceTypes: "co" }).getProperties(), 403, wrongType);
  await refused(() => wrong({ services: { blob: true } }).createTable(name), 403, "AuthorizationServiceMismatch");
  await refused(() => wrong({ expiresOn: past }).createTable(name), 403, "AuthenticationFailed");
  await service.deleteTable(name);
});

test("access policies are kept", withTable(async (table) => {
  assert.deepEqual([...(await table.getAccessPolicy())], []);
  const start = new Date("2021-06-08T02:05:09Z");
  await table.setAccessPolicy([
    { id: "whole", accessPolicy: { start, expiry: soon, permission: "r" } },
    { id: "partial", accessPolicy: { permission: "raud" } },
  ]);
  assert.deepEqual([...(await table.getAccessPolicy())], [
    { id: "whole", accessPolicy: { expiry: soon, start, permission: "r" } },
    { id: "partial", accessPolicy: { permission: "raud" } },
  ]);
  const six = Array.from({ length: 6 }, (_, index) => ({ id: `id${index}`, accessPolicy: { permission: "r" } }));
  await refused(() => table.setAccessPolicy(six), 400, "InvalidXmlDocument");
  await table.setAccessPolicy([]);
  assert.deepEqual([...(await table.getAccessPolicy())], []);
}));

test("a stored policy grants and revokes", withTable(async (table) => {
  const client = grant(table, { identifier: "reader", expiresOn: undefined });
  const read = () => all(client.listEntities());
  await refused(read, 403, "AuthenticationFailed");
  await table.setAccessPolicy([{ id: "reader", accessPolicy: { permission: "r", expiry: soon } }]);
  await read();
  await refused(() => client.createEntity(row("p", "r")), 403, mismatch);
  await table.setAccessPolicy([{ id: "reader", accessPolicy: { permission: "r", expiry: past } }]);
  await refused(read, 403, "AuthenticationFailed");
  await table.setAccessPolicy([]);
  await refused(read, 403, "AuthenticationFailed");
}));
