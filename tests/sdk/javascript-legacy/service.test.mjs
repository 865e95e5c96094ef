// Service properties and statistics.

import assert from "node:assert/strict";
import { test } from "node:test";
import azure from "azure-storage";
import { account, endpoint, key, refused, service, serviceAt, uniqueName } from "./helpers.mjs";

test("service properties round-trip", async () => {
  const before = await service.getServiceProperties();
  try {
    const wanted = {
      Logging: { Version: "1.0", Delete: true, Read: true, Write: false, RetentionPolicy: { Enabled: true, Days: 5 } },
      HourMetrics: { Version: "1.0", Enabled: true, IncludeAPIs: true, RetentionPolicy: { Enabled: true, Days: 7 } },
      MinuteMetrics: { Version: "1.0", Enabled: false, RetentionPolicy: { Enabled: false } },
      Cors: {
        CorsRule: [{
          AllowedOrigins: ["https://a.example", "https://b.example"],
          AllowedMethods: ["GET", "PUT"],
          AllowedHeaders: ["x-ms-meta-*"],
          ExposedHeaders: ["x-ms-*"],
          MaxAgeInSeconds: 500,
        }],
      },
    };
    await service.setServiceProperties(wanted);
    assert.deepEqual(JSON.parse(JSON.stringify(await service.getServiceProperties())), wanted);
    const six = { Cors: { CorsRule: Array(6).fill(wanted.Cors.CorsRule[0]) } };
    await refused(() => service.setServiceProperties(six), 400, "InvalidXmlDocument");
  } finally {
    await service.setServiceProperties(before);
  }
});

test("statistics of the secondary", async () => {
  const locationMode = azure.StorageUtilities.LocationMode.SECONDARY_ONLY;
  const both = serviceAt(account, key, { primaryHost: endpoint, secondaryHost: `${endpoint}-secondary` });
  const { GeoReplication } = await both.getServiceStats({ locationMode });
  assert.equal(GeoReplication.Status, "live");
  assert.ok(!Number.isNaN(Date.parse(GeoReplication.LastSyncTime)));
  await both.listTablesSegmented(null, { locationMode });
});

test("an error names its request", async () => {
  await assert.rejects(service.deleteTable(uniqueName()), (error) => {
    assert.match(error.message, new RegExp(`^The specified resource does not exist.\nRequestId:${error.requestId}\nTime:`));
    return true;
  });
});
