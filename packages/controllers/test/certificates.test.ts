import { readFileSync } from 'node:fs';
import { type Authorizer, isStatusError, type KubeObject, mastersAuthorizer, StatusReason } from '@keelson/core';
import { CertificateSigningRequest } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import anyTest, { type TestFn } from 'ava';
import type { CertificateOrder } from '../src/index.ts';
import { startTestPlane, type TestPlane } from './support/test-plane.ts';

type Name = 'node' | 'serving' | 'person' | 'masters' | 'mail' | 'host' | 'cert';
const file = new URL('../../../kinds/test/fixtures/certificate-requests.json', import.meta.url);
const pems = JSON.parse(readFileSync(file, 'utf8')) as Record<Name, string>;

const base64 = (text: string) => Buffer.from(text).toString('base64');
const hourMs = 3_600_000;
const nodeSigner = 'kubernetes.io/kube-apiserver-client-kubelet';
const clientSigner = 'kubernetes.io/kube-apiserver-client';
const servingSigner = 'kubernetes.io/kubelet-serving';
const clientUsages = ['digital signature', 'key encipherment', 'client auth'];
const servingUsages = ['digital signature', 'server auth'];

const test = anyTest as TestFn<{ plane: TestPlane; orders: CertificateOrder[]; permitted: Map<string, string> }>;

test.beforeEach(async (t) => {
  const orders: CertificateOrder[] = [];
  const certificateSigner = async (order: CertificateOrder) => {
    orders.push(order);
    return pems.cert;
  };
  const permitted = new Map([
    ['nodeclient', 'system:bootstrappers'],
    ['selfnodeclient', 'system:nodes'],
  ]);
  const authorizer: Authorizer = {
    ...mastersAuthorizer,
    authorize: ({ apiGroup, resource, subresource, verb }, { groups }) => {
      const asked = [verb, apiGroup, resource].join() === 'create,certificates.k8s.io,certificatesigningrequests';
      return { allowed: asked && groups.includes(permitted.get(subresource) ?? '-') };
    },
  };
  const plane = await startTestPlane({ fakeClock: true, certificateSigner, authorizer });
  t.context = { plane, orders, permitted };
});

test.afterEach.always((t) => t.context.plane.close());

/** Requests in the name of a user, as if they came over HTTP. */
async function ask(
  plane: TestPlane,
  name: string,
  pem: Name,
  changes: Partial<CertificateSigningRequest['spec']> = {},
  user = { name: 'jane', groups: ['system:authenticated'] },
): Promise<CertificateSigningRequest> {
  const { createInProcessClient } = await import('@keelson/client');
  const client = createInProcessClient(plane.registry, { user });
  return client.resource(CertificateSigningRequest).create({
    metadata: { name },
    spec: { request: base64(pems[pem]), signerName: nodeSigner, usages: clientUsages, ...changes },
  });
}

const requests = (plane: TestPlane) => plane.client(CertificateSigningRequest);

async function decide(plane: TestPlane, name: string, type: 'Approved' | 'Denied'): Promise<void> {
  const request = await requests(plane).get(name);
  const conditions = [...(request.status?.conditions ?? []), { type, status: 'True', reason: 'Test' }];
  await requests(plane).updateSubresource(name, 'approval', { ...request, status: { conditions } } as KubeObject);
}

const settled = (plane: TestPlane, name: string) =>
  until(async () => {
    const { status } = await requests(plane).get(name);
    return status?.certificate || status?.conditions?.some(({ type }) => type === 'Failed') ? status : undefined;
  });

const joining = { name: 'system:bootstrap:keelson', groups: ['system:bootstrappers', 'system:authenticated'] };
const node = { name: 'system:node:n1', groups: ['system:nodes', 'system:authenticated'] };

test('a joining agent receives the client certificate of its node without manual approval', async (t) => {
  const { plane, orders } = t.context;
  const created = await ask(plane, 'a', 'node', {}, joining);
  t.is(created.spec.username, joining.name);
  t.deepEqual(created.spec.groups, joining.groups);
  const status = await settled(plane, 'a');
  t.is(status.conditions?.[0]?.type, 'Approved');
  t.is(status.conditions?.[0]?.reason, 'AutoApproved');
  t.is(status.conditions?.[0]?.message, 'Auto approving kubelet client certificate after SubjectAccessReview.');
  t.is(Buffer.from(status.certificate ?? '', 'base64').toString(), pems.cert);
  t.like(orders, [{ subject: { commonName: 'system:node:n1' }, usages: clientUsages, lifetimeMs: 365 * 24 * hourMs }]);
});

test('a node renews its own certificate with the requested validity', async (t) => {
  const { plane, orders } = t.context;
  await ask(plane, 'a', 'node', { expirationSeconds: 600 }, node);
  const { conditions } = await settled(plane, 'a');
  t.is(conditions?.[0]?.message, 'Auto approving self kubelet client certificate after SubjectAccessReview.');
  t.is(orders[0]?.lifetimeMs, 600_000);
});

test('a request is approved by the permissions of its requester, also when they are given later', async (t) => {
  const { plane, permitted } = t.context;
  permitted.clear();
  await ask(plane, 'a', 'node', {}, joining);
  await ask(plane, 'b', 'node', {}, node);
  permitted.set('nodeclient', 'system:nodes');
  const { conditions } = await until(async () => {
    plane.clock?.advance(60_000);
    const { status } = await requests(plane).get('b');
    return status?.certificate ? status : undefined;
  });
  t.is(conditions?.[0]?.message, 'Auto approving kubelet client certificate after SubjectAccessReview.');
  t.is((await requests(plane).get('a')).status?.conditions, undefined);
});

test('requests of other users, for another node or signer, or with other contents are not approved', async (t) => {
  const { plane, orders } = t.context;
  const asked: readonly (readonly [Name, Partial<CertificateSigningRequest['spec']>, typeof node])[] = [
    ['node', {}, { name: 'jane', groups: ['system:authenticated'] }],
    ['node', {}, { ...node, name: 'system:node:n2' }],
    ['node', {}, { ...node, groups: ['system:authenticated'] }],
    ['node', { signerName: clientSigner }, joining],
    ['serving', {}, joining],
    ['person', {}, joining],
    ['node', { usages: [...clientUsages, 'server auth'] }, joining],
    ['host', { signerName: servingSigner, usages: servingUsages }, node],
  ];
  for (const [i, [pem, changes, user]] of asked.entries()) await ask(plane, `r${i}`, pem, changes, user);
  await ask(plane, 'last', 'node', {}, joining);
  await settled(plane, 'last');
  for (const i of asked.keys()) t.is((await requests(plane).get(`r${i}`)).status?.conditions, undefined, `r${i}`);
  t.is(orders.length, 1);
});

test('a manually approved request is signed when its signer is one of this server, otherwise it is left unchanged', async (t) => {
  const { plane, orders } = t.context;
  await ask(plane, 'person', 'person', { signerName: clientSigner });
  await ask(plane, 'serving', 'host', { signerName: servingSigner, usages: servingUsages }, node);
  await ask(plane, 'foreign', 'person', { signerName: 'example.com/own' });
  for (const name of ['foreign', 'person', 'serving']) await decide(plane, name, 'Approved');
  await Promise.all(['person', 'serving'].map((name) => settled(plane, name)));
  t.deepEqual(orders.map(({ subject }) => subject.commonName).sort(), ['jane', 'system:node:n1']);
  t.is((await requests(plane).get('foreign')).status?.certificate, undefined);
});

for (const [title, pem, changes, message] of [
  [
    'a client certificate of the administrators',
    'masters',
    { signerName: clientSigner },
    /system:masters are not issued/,
  ],
  [
    'a client certificate that serves',
    'person',
    { signerName: clientSigner, usages: servingUsages },
    /usage "client auth" is missing/,
  ],
  [
    'a serving certificate without names',
    'node',
    { signerName: servingSigner, usages: servingUsages },
    /is missing among the/,
  ],
  [
    'a serving certificate of mail addresses',
    'mail',
    { signerName: servingSigner, usages: servingUsages },
    /must be DNS names/,
  ],
  ['a node certificate of a person', 'person', {}, /organization must be system:nodes/],
] as const) {
  test(`${title} is not issued although approved, and the Failed condition states the reason`, async (t) => {
    const { plane, orders } = t.context;
    await ask(plane, 'a', pem, changes as Partial<CertificateSigningRequest['spec']>);
    await decide(plane, 'a', 'Approved');
    const status = await settled(plane, 'a');
    t.is(status.certificate, undefined);
    t.regex(status.conditions?.at(-1)?.message ?? '', message);
    t.is(orders.length, 0);
  });
}

test('a denied request is not signed, and cannot be approved any more', async (t) => {
  const { plane, orders } = t.context;
  await ask(plane, 'a', 'person', { signerName: clientSigner });
  await decide(plane, 'a', 'Denied');
  const error = await t.throwsAsync(decide(plane, 'a', 'Approved'));
  t.true(isStatusError(error, StatusReason.Invalid));
  t.is(orders.length, 0);
});

test('decided requests are removed after an hour, undecided ones after a day', async (t) => {
  const { plane } = t.context;
  await ask(plane, 'joined', 'node', {}, joining);
  await ask(plane, 'denied', 'person');
  await ask(plane, 'waiting', 'person');
  await decide(plane, 'denied', 'Denied');
  await settled(plane, 'joined');
  const names = async () => (await requests(plane).list()).items.map(({ metadata }) => metadata?.name).sort();
  t.deepEqual(await names(), ['denied', 'joined', 'waiting']);
  await until(async () => {
    // The controller may only now come to know of a decision, and counts from then.
    plane.clock?.advance(hourMs);
    return (await names()).length === 1;
  });
  t.deepEqual(await names(), ['waiting']);
  await until(async () => {
    plane.clock?.advance(hourMs);
    return (await names()).length === 0;
  });
  t.true((plane.clock?.now() ?? 0) >= Date.UTC(2026, 0, 2));
});

test('approval is read, patched and put; status cannot decide', async (t) => {
  const { plane } = t.context;
  await ask(plane, 'a', 'person', { signerName: 'example.com/own' });
  const [csrs, approved] = [requests(plane), { type: 'Approved', status: 'True', reason: 'Test' }];
  t.is((await csrs.getSubresource('a', 'approval')).metadata?.name, 'a');
  const error = await t.throwsAsync(
    csrs.patchSubresource('a', 'status', 'merge', { status: { conditions: [approved] } }),
  );
  t.true(isStatusError(error, StatusReason.Invalid));
  const patch = { spec: { usages: ['any'] }, status: { conditions: [approved], certificate: base64(pems.cert) } };
  const patched = (await csrs.patchSubresource('a', 'approval', 'merge', patch)) as CertificateSigningRequest;
  t.deepEqual(patched.spec.usages, clientUsages);
  t.is(patched.status?.certificate, undefined);
  t.like(patched.status?.conditions, [approved]);
  const stale = { ...patched, metadata: { ...patched.metadata, resourceVersion: '1' } };
  t.is(((await t.throwsAsync(csrs.updateSubresource('a', 'approval', stale))) as { code?: number }).code, 409);
});
