// @azure/storage-queue: messages, and a SAS as the only credential.

import assert from "node:assert/strict";
import {
  AccountSASPermissions, AccountSASResourceTypes, AccountSASServices, AnonymousCredential, QueueClient,
  QueueSASPermissions, generateAccountSASQueryParameters, generateQueueSASQueryParameters,
} from "@azure/storage-queue";
import { past, refused, soon } from "./helpers.mjs";
import { endpoint, key, options, service, test, texts, withQueue } from "./queue-helpers.mjs";

test("a message from put to delete", withQueue(async (queue) => {
  const sent = await queue.sendMessage("hello <&> ü", { messageTimeToLive: -1 });
  assert.equal(sent.expiresOn.getUTCFullYear(), 9999);
  assert.deepEqual(texts(await queue.peekMessages({ numberOfMessages: 5 })), ["hello <&> ü"]);
  const { receivedMessageItems: [got] } = await queue.receiveMessages({ visibilityTimeout: 600 });
  assert.deepEqual([got.messageId, got.messageText, got.dequeueCount], [sent.messageId, "hello <&> ü", 1]);
  assert.deepEqual(texts(await queue.receiveMessages()), []);
  const updated = await queue.updateMessage(got.messageId, got.popReceipt, "new", 0);
  const { receivedMessageItems: [again] } = await queue.receiveMessages();
  assert.deepEqual([again.messageText, again.dequeueCount], ["new", 2]);
  for (const stale of [got.popReceipt, updated.popReceipt]) {
    await refused(() => queue.deleteMessage(got.messageId, stale), 404, "MessageNotFound");
  }
  await queue.deleteMessage(again.messageId, again.popReceipt);
  await refused(() => queue.deleteMessage(again.messageId, again.popReceipt), 404, "MessageNotFound");
  assert.equal((await queue.getProperties()).approximateMessagesCount, 0);
}));

test("texts come back", withQueue(async (queue) => {
  for (const text of ["", " a\n b ", "]]>", "\u{1f600}", Buffer.from([0, 1, 255]).toString("base64")]) {
    await queue.sendMessage(text);
    const { receivedMessageItems: [got] } = await queue.receiveMessages();
    assert.equal(got.messageText, text);
  }
}));

test("pages of messages in their order", withQueue(async (queue) => {
  const sent = Array.from({ length: 40 }, (_, index) => `${index}`);
  for (const text of sent) {
    await queue.sendMessage(text);
  }
  const found = [];
  for (let page; (page = texts(await queue.receiveMessages({ numberOfMessages: 32 }))).length > 0;) {
    found.push(...page);
  }
  assert.deepEqual(found, sent);
  assert.equal((await queue.getProperties()).approximateMessagesCount, 40);
  await queue.clearMessages();
  assert.equal((await queue.getProperties()).approximateMessagesCount, 0);
}));

test("messages out of bounds", withQueue(async (queue) => {
  await refused(() => queue.sendMessage("a".repeat(65_537)), 413, "RequestBodyTooLarge");
  await refused(() => queue.sendMessage("a", { messageTimeToLive: -2 }), 400, "InvalidQueryParameterValue");
  const both = { visibilityTimeout: 60, messageTimeToLive: 60 };
  await refused(() => queue.sendMessage("a", both), 400, "InvalidQueryParameterValue");
  await refused(() => queue.receiveMessages({ numberOfMessages: 33 }), 400, "OutOfRangeQueryParameterValue");
  await refused(() => queue.peekMessages({ numberOfMessages: 33 }), 400, "OutOfRangeQueryParameterValue");
  await refused(() => queue.deleteMessage("x", "no receipt"), 400, "InvalidQueryParameterValue");
}));

const withSas = (name, sas) => new QueueClient(`${endpoint}/${name}?${sas}`, new AnonymousCredential(), options);

test("a service SAS", withQueue(async (queue) => {
  const grant = (more) => withSas(queue.name, generateQueueSASQueryParameters({
    queueName: queue.name, permissions: QueueSASPermissions.parse("ap"), expiresOn: soon, ...more,
  }, key));
  const processor = grant({});
  await processor.sendMessage("a");
  assert.deepEqual(texts(await processor.receiveMessages()), ["a"]);
  await refused(() => processor.peekMessages(), 403, "AuthorizationPermissionMismatch");
  await refused(() => grant({ expiresOn: past }).sendMessage("a"), 403, "AuthenticationFailed");
}));

test("a stored access policy", withQueue(async (queue) => {
  await queue.setAccessPolicy([{ id: "add", accessPolicy: { permissions: "a", expiresOn: soon } }]);
  const adder = withSas(queue.name, generateQueueSASQueryParameters({ queueName: queue.name, identifier: "add" }, key));
  await adder.sendMessage("a");
  await refused(() => adder.peekMessages(), 403, "AuthorizationPermissionMismatch");
  await queue.setAccessPolicy([]);
  await refused(() => adder.sendMessage("a"), 403, "AuthenticationFailed");
}));

test("an account SAS", withQueue(async (queue) => {
  const sas = generateAccountSASQueryParameters({
    expiresOn: soon,
    permissions: AccountSASPermissions.parse("rl"),
    resourceTypes: AccountSASResourceTypes.parse("sco").toString(),
    services: AccountSASServices.parse("q").toString(),
  }, key);
  const reader = withSas(queue.name, sas);
  assert.deepEqual(texts(await reader.peekMessages()), []);
  await refused(() => reader.sendMessage("a"), 403, "AuthorizationPermissionMismatch");
  await refused(() => reader.clearMessages(), 403, "AuthorizationPermissionMismatch");
  const listing = service(new AnonymousCredential(), `${endpoint}?${sas}`);
  const { value } = await listing.listQueues({ prefix: queue.name }).next();
  assert.equal(value.name, queue.name);
}));
