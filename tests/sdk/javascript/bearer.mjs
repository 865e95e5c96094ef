// Token credentials, over https: roles, refusals and the challenge. Run apart, with a server and tokens of its own.

import assert from "node:assert/strict";
import { test } from "node:test";
import { TableClient, TableServiceClient } from "@azure/data-tables";

const { endpoint, tenant, contributor, reader, expired } = JSON.parse(process.env.LAZULITE_TEST_BEARER);
const options = { retryOptions: { maxRetries: 0 } };
const challenges = { ...options, version: "2020-12-06" };
const name = `t${Date.now()}`;

/** A credential that notes what it was asked for; `make` gets the tenant that a challenge named. */
function credential(make) {
  const asked = [];
  return {
    asked,
    async getToken(scopes, { tenantId } = {}) {
      asked.push([scopes, tenantId]);
      return { token: make(tenantId), expiresOnTimestamp: Date.now() + 3_600_000 };
    },
  };
}

const table = (token, withOptions = options) => new TableClient(endpoint, name, credential(() => token), withOptions);

async function refused(act, statusCode, code) {
  await assert.rejects(act, (error) => {
    assert.deepEqual([error.statusCode, error.response?.headers.get("x-ms-error-code")], [statusCode, code]);
    return true;
  });
}

test("a contributor writes, a reader reads", async () => {
  const owner = table(contributor);
  await owner.createTable();
  await owner.createEntity({ partitionKey: "p", rowKey: "a", Value: 1 });
  await owner.submitTransaction([["upsert", { partitionKey: "p", rowKey: "b" }, "Merge"]]);
  const found = [];
  for await (const entity of table(reader).listEntities()) {
    found.push(entity.rowKey);
  }
  assert.deepEqual(found, ["a", "b"]);
  const mismatch = "AuthorizationPermissionMismatch";
  await refused(() => table(reader).createEntity({ partitionKey: "p", rowKey: "c" }), 403, mismatch);
  await refused(() => table(reader).deleteTable(), 403, mismatch);
  await refused(() => owner.getAccessPolicy(), 403, "AuthorizationFailure");
  await owner.deleteTable();
});

test("a bad token", async () => {
  await refused(() => table(expired).createTable(), 403, "AuthenticationFailed");
  await refused(() => table(expired, challenges).createTable(), 401, "InvalidAuthenticationInfo");
});

test("the challenge names the tenant", async () => {
  const asking = credential((tenantId) => (tenantId === tenant ? contributor : expired));
  const service = new TableServiceClient(endpoint, asking, challenges);
  await service.listTables().next();
  const scopes = ["https://storage.azure.com/.default"];
  assert.deepEqual(asking.asked, [[scopes, undefined], [scopes, tenant]]);
});
