// Credentials: Shared Key, account SAS, table SAS with key ranges, stored access policies.

import assert from "node:assert/strict";
import { test } from "node:test";
import azure from "azure-storage";
import {
  account, all, connectionString, endpoint, entity, key, past, plainService, refused, sasService, service, serviceAt,
  soon, uniqueName, withTable,
} from "./helpers.mjs";

const mismatch = "AuthorizationPermissionMismatch";
const grant = (table, policy) =>
  sasService(plainService.generateSharedAccessSignature(table, { AccessPolicy: { Expiry: soon, ...policy } }));

test("a wrong key", async () => {
  const wrong = serviceAt(connectionString.replace(key, "YmFuYW5h"));
  await refused(() => wrong.listTablesSegmented(null), 403, "AuthenticationFailed");
});

test("account, key and endpoint apart", withTable(async (table) => {
  await serviceAt(account, key, endpoint).insertEntity(table, entity());
  assert.equal((await all(table)).length, 1);
}));

test("a table SAS permits what it says", withTable(async (table) => {
  await service.insertEntity(table, entity());
  const actions = {
    r: async (given) => [await given.retrieveEntity(table, "p", "r"), await all(table, undefined, given)],
    a: (given) => given.insertEntity(table, entity("added")),
    u: async (given) => [await given.replaceEntity(table, entity()), await given.mergeEntity(table, entity())],
    d: (given) => given.deleteEntity(table, entity("added")),
  };
  for (const Permissions of Object.keys(actions)) {
    for (const [needed, act] of Object.entries(actions)) {
      const given = grant(table, { Permissions });
      if (needed === Permissions) {
        await act(given);
      } else {
        await refused(() => act(given), 403, mismatch);
      }
    }
  }
  await refused(() => grant(table, { Permissions: "a" }).insertOrMergeEntity(table, entity()), 403, mismatch);
  await grant(table, { Permissions: "au" }).insertOrMergeEntity(table, entity());
}));

test("a table SAS in a batch", withTable(async (table) => {
  const batch = new azure.TableBatch();
  batch.insertEntity(entity("it's"));
  batch.insertOrReplaceEntity(entity("a b"));
  await refused(() => grant(table, { Permissions: "a" }).executeBatch(table, batch), 403, mismatch);
  await grant(table, { Permissions: "au" }).executeBatch(table, batch);
  assert.deepEqual((await all(table)).map((each) => each.RowKey._), ["a b", "it's"]);
}));

test("a key range bounds writes and filters queries", withTable(async (table) => {
  for (const partition of ["a", "b", "c", "d"]) {
    for (const row of ["0", "1", "2"]) {
      await service.insertEntity(table, entity(row, {}, partition));
    }
  }
  const bounded = grant(table, { Permissions: "raud", StartPk: "b", StartRk: "1", EndPk: "c", EndRk: "1" });
  const found = (await all(table, undefined, bounded)).map((each) => each.PartitionKey._ + each.RowKey._);
  assert.deepEqual(found, ["b1", "b2", "c0", "c1"]);
  for (const [partition, row] of found) {
    await bounded.replaceEntity(table, entity(row, {}, partition));
  }
  for (const [partition, row] of ["a2", "b0", "c2", "d0"]) {
    await refused(() => bounded.retrieveEntity(table, partition, row), 403, "AuthorizationFailure");
    await refused(() => bounded.replaceEntity(table, entity(row, {}, partition)), 403, "AuthorizationFailure");
  }
}));

test("times, protocol and address are enforced", withTable(async (table) => {
  const read = (terms) => all(table, undefined, grant(table, { Permissions: "r", ...terms }));
  assert.deepEqual(await read({ Start: past, Protocols: "https,http", IPAddressOrRange: "127.0.0.0-127.0.0.9" }), []);
  await refused(() => read({ Expiry: past }), 403, "AuthenticationFailed");
  const later = new Date(soon.getTime() + 3_600_000);
  await refused(() => read({ Start: soon, Expiry: later }), 403, "AuthenticationFailed");
  await refused(() => read({ Protocols: "https" }), 403, "AuthorizationProtocolMismatch");
  await refused(() => read({ IPAddressOrRange: "192.0.2.1" }), 403, "AuthorizationSourceIPMismatch");
}));

test("a stored policy grants and revokes", withTable(async (table) => {
  const reader = sasService(plainService.generateSharedAccessSignature(table, { Id: "reader" }));
  const read = () => all(table, undefined, reader);
  await refused(read, 403, "AuthenticationFailed");
  await service.setTableAcl(table, { reader: { Permissions: "r", Expiry: soon } });
  assert.deepEqual(await read(), []);
  await refused(() => reader.insertEntity(table, entity()), 403, mismatch);
  await service.setTableAcl(table, {});
  await refused(read, 403, "AuthenticationFailed");
}));

test("access policies are kept", withTable(async (table) => {
  assert.deepEqual((await service.getTableAcl(table)).signedIdentifiers, {});
  await service.setTableAcl(table, {
    partial: { Permissions: "r" },
    whole: { Start: past, Expiry: soon, Permissions: "raud" },
  });
  const { partial, whole } = (await service.getTableAcl(table)).signedIdentifiers;
  assert.equal(partial.Permissions, "r");
  assert.deepEqual([new Date(whole.Expiry), whole.Permissions], [soon, "raud"]);
  await refused(() => service.getTableAcl(uniqueName()), 404, "ResourceNotFound");
}));

test("an account SAS", async () => {
  const make = (AccessPolicy) => sasService(azure.generateAccountSharedAccessSignature(account, key, {
    AccessPolicy: { Services: "t", ResourceTypes: "sco", Permissions: "rwdlacu", Expiry: soon, ...AccessPolicy },
  }));
  const whole = make({ Start: past, Protocols: "https,http" });
  const name = uniqueName();
  await whole.createTable(name);
  await whole.insertEntity(name, entity("r"));
  assert.equal((await all(name, undefined, whole)).length, 1);
  assert.ok((await whole.listTablesSegmentedWithPrefix(name, null)).entries.includes(name));
  await whole.getServiceProperties();
  await refused(() => whole.getTableAcl(name), 403, "AuthorizationFailure");
  await refused(() => make({ Permissions: "r" }).deleteTable(name), 403, mismatch);
  await refused(() => make({ ResourceTypes: "o" }).deleteTable(name), 403, "AuthorizationResourceTypeMismatch");
  await refused(() => make({ Services: "b" }).deleteTable(name), 403, "AuthorizationServiceMismatch");
  await refused(() => make({ Expiry: past }).deleteTable(name), 403, "AuthenticationFailed");
  await whole.deleteTable(name);
});
