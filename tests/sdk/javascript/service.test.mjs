// The service client: tables, service properties, statistics.

import assert from "node:assert/strict";
import { test } from "node:test";
import { TableServiceClient, odata } from "@azure/data-tables";
import {
  all, connectionString, credential, endpoint, options, refused, service, tableClient, uniqueName,
} from "./helpers.mjs";

test("tables are created, listed, queried, paged and deleted", async () => {
  const client = service();
  const prefix = uniqueName().slice(0, 20);
  const names = [`${prefix}a`, `${prefix}b`, `${prefix}c`];
  for (const name of names) {
    await client.createTable(name);
  }
  await client.createTable(names[0]); // the SDK takes TableAlreadyExists for success
  const listed = await all(client.listTables());
  assert.deepEqual(listed.map((item) => item.name).filter((name) => name.startsWith(prefix)), names);

  const queryOptions = { filter: odata`TableName ge ${prefix} and TableName lt ${prefix + "~"}` };
  const pages = await all(client.listTables({ queryOptions }).byPage({ maxPageSize: 2 }));
  assert.deepEqual(pages.map((page) => page.map((item) => item.name)), [names.slice(0, 2), names.slice(2)]);
  const { continuationToken } = pages[0];
  const rest = await all(client.listTables({ queryOptions }).byPage({ maxPageSize: 2, continuationToken }));
  assert.deepEqual(rest.flat().map((item) => item.name), names.slice(2));
  assert.equal(pages[1].continuationToken, undefined);

  for (const name of names) {
    await client.deleteTable(name);
    await client.deleteTable(name);
  }
  assert.deepEqual(await all(client.listTables({ queryOptions })), []);
});

test("a recreated table is empty", async () => {
  const table = tableClient(uniqueName());
  await table.createTable();
  await table.createEntity({ partitionKey: "p", rowKey: "r" });
  await table.deleteTable();
  await table.createTable();
  assert.deepEqual(await all(table.listEntities()), []);
  await table.deleteTable();
});

test("table names out of bounds are refused", async () => {
  await refused(() => service().createTable("bad-name"), 400, "InvalidResourceName");
  await refused(() => service().createTable("ab"), 400, "OutOfRangeInput");
  await refused(() => service().createTable("x".repeat(64)), 400, "OutOfRangeInput");
});

test("statistics of the secondary", async () => {
  // Of an address without labels the SDK derives no secondary: here it is told the path-style one.
  const secondary = new TableServiceClient(`${endpoint}-secondary`, credential, options);
  const { geoReplication } = await secondary.getStatistics();
  assert.equal(geoReplication.status, "live");
  assert.ok(geoReplication.lastSyncTime instanceof Date);
  await refused(() => secondary.createTable(uniqueName()), 403, "InsufficientAccountPermissions");
});

test("service properties round-trip", async () => {
  const client = service();
  const before = await client.getProperties();
  try {
    const wanted = {
      logging: { version: "1.0", read: true, write: false, delete: true, retentionPolicy: { enabled: true, days: 5 } },
      hourMetrics: { version: "1.0", enabled: true, includeAPIs: true, retentionPolicy: { enabled: true, days: 7 } },
      minuteMetrics: { version: "1.0", enabled: false, retentionPolicy: { enabled: false } },
      cors: [
        {
          allowedOrigins: "https://a.example,https://b.example",
          allowedMethods: "GET,PUT",
          allowedHeaders: "x-ms-meta-*",
          exposedHeaders: "x-ms-*",
          maxAgeInSeconds: 500,
        },
        { allowedOrigins: "*", allowedMethods: "GET", allowedHeaders: "", exposedHeaders: "", maxAgeInSeconds: 0 },
      ],
    };
    await client.setProperties(wanted);
    const { logging, hourMetrics, minuteMetrics, cors } = await client.getProperties();
    const kept = JSON.parse(JSON.stringify({ logging, hourMetrics, minuteMetrics, cors }));
    for (const rule of kept.cors) {
      rule.allowedHeaders ??= "";
      rule.exposedHeaders ??= "";
    }
    assert.deepEqual(kept, wanted);
    const six = { cors: Array(6).fill(wanted.cors[0]) };
    await refused(() => client.setProperties(six), 400, "InvalidXmlDocument");
  } finally {
    const { logging, hourMetrics, minuteMetrics, cors = [] } = before;
    await client.setProperties({ logging, hourMetrics, minuteMetrics, cors });
  }
});

test("a client made from the connection string", async () => {
  const client = TableServiceClient.fromConnectionString(connectionString, options);
  assert.ok(Array.isArray(await all(client.listTables())));
});
