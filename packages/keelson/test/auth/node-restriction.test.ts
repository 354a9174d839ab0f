import { createInProcessClient } from '@keelson/client';
import { isStatusError, StatusReason } from '@keelson/core';
import { Node, Pod } from '@keelson/kinds';
import test, { type ExecutionContext } from 'ava';
import { type ControlPlane, createControlPlane } from '../../src/control-plane/create-control-plane.ts';

async function open(t: ExecutionContext): Promise<{ plane: ControlPlane; node: ReturnType<typeof createInProcessClient> }> {
  const plane = await createControlPlane();
  t.teardown(() => plane.close());
  const user = { name: 'system:node:n1', groups: ['system:nodes', 'system:authenticated'] };
  return { plane, node: createInProcessClient(plane.registry, { user }) };
}

const pod = (name: string, nodeName: string, annotations: Record<string, string> = {}): Pod => ({
  metadata: { name, annotations },
  spec: { nodeName, containers: [{ name: 'main', image: 'app:1' }] },
});
const mirror = { 'kubernetes.io/config.mirror': 'hash' };

const forbidden = async (t: ExecutionContext, call: Promise<unknown>, message: RegExp) => {
  const error = await t.throwsAsync(call, { message });
  t.true(isStatusError(error, StatusReason.Forbidden));
};

test('a node makes the node object of its own name, and no other', async (t) => {
  const { node } = await open(t);
  await node.resource(Node).create({ metadata: { name: 'n1' } });
  await forbidden(t, node.resource(Node).create({ metadata: { name: 'n2' } }), /only make the node object of its own name/);
});

test('a node makes pods that mirror its files, and no others', async (t) => {
  const { node } = await open(t);
  const pods = node.resource(Pod).namespace('default');
  await pods.create(pod('mirror', 'n1', mirror));
  await forbidden(t, pods.create(pod('plain', 'n1')), /only make pods that mirror its files/);
  await forbidden(t, pods.create(pod('elsewhere', 'n2', mirror)), /names that node in spec.nodeName/);
});

test('a node reports on and deletes the pods that are on it, and no others', async (t) => {
  const { plane, node } = await open(t);
  const [all, own] = [plane.client(Pod).namespace('default'), node.resource(Pod).namespace('default')];
  await all.create(pod('here', 'n1'));
  await all.create(pod('there', 'n2'));
  const report = { status: { phase: 'Running' } };
  t.like(await own.patchSubresource('here', 'status', 'merge', report), report);
  await own.delete('here', { gracePeriodSeconds: 0 });
  await forbidden(t, own.patchSubresource('there', 'status', 'merge', report), /not on the node n1/);
  await forbidden(t, own.delete('there', { gracePeriodSeconds: 0 }), /not on the node n1/);
  t.is((await all.list()).items.length, 1);
});
