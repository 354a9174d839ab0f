import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { internalContext, isStatusError, type KubeObject, type ResourceClient } from '@keelson/core';
import type { Clock } from '@keelson/core/runtime';
import { silentLogger, systemClock } from '@keelson/core/runtime';
import {
  ConfigMap,
  Endpoints,
  Namespace,
  Node,
  Pod,
  Secret,
  Service,
  ServiceAccount,
  type TokenRequest,
  TokenReview,
} from '@keelson/kinds';
import { until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { createLocalJWKSet, decodeJwt, decodeProtectedHeader, type JSONWebKeySet, jwtVerify, SignJWT } from 'jose';
import { loadOptions } from '../../src/config/load-options.ts';
import { createControlPlane } from '../../src/control-plane/create-control-plane.ts';
import type { ControlPlaneOptions } from '../../src/control-plane/plane-options.ts';
import { loadCredentials } from '../../src/tls/credentials.ts';
import { loadServiceAccounts } from '../../src/tls/service-account-keys.ts';

const keyPem = (curve = 'P-256') =>
  generateKeyPairSync('ec', { namedCurve: curve }).privateKey.export({ type: 'pkcs8', format: 'pem' }) as string;
const signingKey = keyPem();
const issuer = 'https://kubernetes.default.svc.cluster.local';

async function planeWith(t: ExecutionContext, options: ControlPlaneOptions = {}) {
  let aheadMs = 0;
  const clock: Clock = { ...systemClock, now: () => Date.now() + aheadMs };
  const plane = await createControlPlane({ serviceAccounts: { signingKey }, clock, ...options });
  t.teardown(() => plane.close());
  const accounts = plane.client(ServiceAccount).namespace('default');
  const request = async (name: string, spec: Partial<TokenRequest['spec']> = {}, metadata = {}) =>
    (await accounts.createSubresource(name, 'token', {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      metadata,
      spec,
    } as KubeObject)) as TokenRequest;
  const review = async (token: string, audiences?: string[]) =>
    (
      await plane.client(TokenReview).create({
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenReview',
        spec: { token, ...(audiences && { audiences }) },
      })
    ).status;
  const isValid = async (token: string) => (await review(token))?.authenticated === true;
  const account = (name: string) => accounts.create({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name } });
  const pod = (name: string, spec: Partial<Pod['spec']> = {}, metadata = {}) =>
    plane
      .client(Pod)
      .namespace('default')
      .create({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name, ...metadata },
        spec: { containers: [{ name: 'main', image: 'none' }], ...spec },
      } as Pod);
  const advance = (ms: number) => {
    aheadMs += ms;
  };
  return { plane, accounts, request, review, isValid, account, pod, advance };
}

const tokenOf = ({ status }: TokenRequest) => status?.token ?? '';
const textOf = (base64: string | undefined) => Buffer.from(base64 ?? '', 'base64').toString();
const tokenSecret = (name: string, account: string, annotations: Record<string, string> = {}): Secret => ({
  ...{ apiVersion: 'v1', kind: 'Secret', type: 'kubernetes.io/service-account-token' },
  metadata: { name, annotations: { ...annotations, 'kubernetes.io/service-account.name': account } },
});
const uidOf = ({ metadata }: KubeObject) => metadata?.uid ?? '';

test('a token has the claims of kube-apiserver, and a review returns its account', async (t) => {
  const { account, pod, plane, request, review } = await planeWith(t);
  const robot = await account('robot');
  const node = await plane.client(Node).create({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } } as Node);
  const bound = await pod('p', { serviceAccountName: 'robot', nodeName: 'n1' });
  const answer = await request('robot', {
    expirationSeconds: 900,
    boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: uidOf(bound) },
  });
  const { jti, iat = 0, ...claims } = decodeJwt(tokenOf(answer));
  t.deepEqual(claims, {
    iss: issuer,
    sub: 'system:serviceaccount:default:robot',
    aud: [issuer],
    nbf: iat,
    exp: iat + 900,
    'kubernetes.io': {
      namespace: 'default',
      serviceaccount: { name: 'robot', uid: uidOf(robot) },
      pod: { name: 'p', uid: uidOf(bound) },
      node: { name: 'n1', uid: uidOf(node) },
    },
  });
  t.is(decodeProtectedHeader(tokenOf(answer)).alg, 'ES256');
  t.is(Date.parse(answer.status?.expirationTimestamp ?? ''), (iat + 900) * 1000);
  t.deepEqual(answer.metadata?.name, 'robot');
  t.deepEqual(await review(tokenOf(answer)), {
    authenticated: true,
    audiences: [issuer],
    user: {
      username: 'system:serviceaccount:default:robot',
      uid: uidOf(robot),
      groups: ['system:serviceaccounts', 'system:serviceaccounts:default', 'system:authenticated'],
      extra: {
        'authentication.kubernetes.io/credential-id': [`JTI=${jti}`],
        'authentication.kubernetes.io/pod-name': ['p'],
        'authentication.kubernetes.io/pod-uid': [uidOf(bound)],
        'authentication.kubernetes.io/node-name': ['n1'],
        'authentication.kubernetes.io/node-uid': [uidOf(node)],
      },
    },
  });
});

test('a request for a token that cannot be issued states the reason', async (t) => {
  const { account, pod, request } = await planeWith(t);
  const robot = await account('robot');
  await account('other');
  await pod('p', { serviceAccountName: 'robot' });
  const ofPod = (uid?: string) => ({
    boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name: 'p', ...(uid && { uid }) },
  });
  const invalid = 'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value:';
  const cases: readonly [() => Promise<unknown>, number, string][] = [
    [() => request('nobody'), 404, 'serviceaccounts "nobody" not found'],
    [
      () => request('robot', { expirationSeconds: 599 }),
      422,
      `${invalid} 599: may not specify a duration less than 10 minutes`,
    ],
    [
      () => request('robot', { expirationSeconds: 2 ** 32 + 1 }),
      422,
      `${invalid} 4294967297: may not specify a duration larger than 2^32 seconds`,
    ],
    [
      () => request('robot', {}, { name: 'other' }),
      422,
      'TokenRequest.authentication.k8s.io "robot" is invalid: metadata.name: Invalid value: "other": ' +
        'must match the service account name if specified',
    ],
    [
      () => request('robot', {}, { uid: 'u' }),
      409,
      'Operation cannot be fulfilled on TokenRequest.authentication.k8s.io "robot": the UID in the token request (u) ' +
        `does not match the UID of the service account (${uidOf(robot)})`,
    ],
    [
      () => request('other', ofPod()),
      400,
      'cannot bind token for serviceaccount "other" to pod running with different serviceaccount name.',
    ],
    [
      () => request('robot', ofPod('u')),
      409,
      'Operation cannot be fulfilled on Pod "p": the UID in the bound object reference (u) does not match the UID in ' +
        'record. The object might have been deleted and then recreated',
    ],
    [
      () => request('robot', { boundObjectRef: { apiVersion: 'v1', kind: 'Secret', name: 'none' } }),
      404,
      'secrets "none" not found',
    ],
    [
      () => request('robot', { boundObjectRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'd' } }),
      400,
      'cannot bind token to object of type apps/v1, Kind=Deployment',
    ],
  ];
  for (const [outcome, code, message] of cases) {
    const error = await t.throwsAsync(outcome(), undefined, message);
    t.true(isStatusError(error), String(error));
    if (isStatusError(error)) t.deepEqual([error.status.code, error.status.message], [code, message]);
  }
});

test('a token ends with its time, with its account, and with the object to which it is bound', async (t) => {
  const { plane, account, accounts, pod, request, isValid, advance } = await planeWith(t);
  await account('robot');
  const secrets = plane.client(Secret).namespace('default');
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' } } as Secret;
  const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' } } as Node;
  await secrets.create(secret);
  await plane.client(Node).create(node);
  await pod('p', { serviceAccountName: 'robot' });
  const boundTo = (kind: string, name: string) =>
    request('robot', { boundObjectRef: { apiVersion: 'v1', kind, name } }).then(tokenOf);
  const byPod = await boundTo('Pod', 'p');
  const bySecret = await boundTo('Secret', 's');
  const byNode = await boundTo('Node', 'n');
  const free = tokenOf(await request('robot'));
  const short = tokenOf(await request('robot', { expirationSeconds: 600 }));
  const all = async () => Promise.all([byPod, bySecret, byNode, free, short].map(isValid));
  t.deepEqual(await all(), [true, true, true, true, true]);
  advance(601_000);
  t.deepEqual(await all(), [true, true, true, true, false], 'the shortest has expired');

  await plane.client(Pod).namespace('default').delete('p', { gracePeriodSeconds: 0 });
  t.deepEqual(await all(), [false, true, true, true, false], 'the pod is deleted');
  await pod('p', { serviceAccountName: 'robot' });
  t.false(await isValid(byPod), 'another pod has the name');
  await secrets.delete('s');
  await secrets.create(secret);
  await plane.client(Node).delete('n');
  t.deepEqual(await all(), [false, false, false, true, false]);

  await accounts.delete('robot');
  t.false(await isValid(free), 'the account is deleted');
  await account('robot');
  t.false(await isValid(free), 'another account has the name');
});

test('a token of a deleted object is valid until a minute after its grace period', async (t) => {
  const { plane, account, pod, request, isValid, advance } = await planeWith(t);
  await account('robot');
  await pod('p', { serviceAccountName: 'robot', nodeName: 'n1', terminationGracePeriodSeconds: 30 });
  const token = tokenOf(await request('robot', { boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name: 'p' } }));
  await plane.client(Pod).namespace('default').delete('p');
  advance(85_000);
  t.true(await isValid(token), 'a preStop hook may use the API');
  advance(10_000);
  t.false(await isValid(token));
});

test('a token is valid for its audiences only', async (t) => {
  const { account, request, review, isValid } = await planeWith(t, {
    serviceAccounts: { signingKey, audiences: ['api', 'api.example.org'] },
  });
  await account('robot');
  const vault = tokenOf(await request('robot', { audiences: ['vault'] }));
  t.false(await isValid(vault), 'not for this server');
  t.deepEqual((await review(vault, ['other', 'vault']))?.audiences, ['vault']);
  const own = tokenOf(await request('robot'));
  t.deepEqual(decodeJwt(own).aud, ['api', 'api.example.org']);
  t.deepEqual((await review(own))?.audiences, ['api', 'api.example.org']);
  t.deepEqual(await review(own, ['vault']), { user: {}, error: 'invalid bearer token' });
});

test('tokens remain valid across restarts and a change of the key, as long as a server has the key', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-accounts-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const storage = `lmdb:${join(folder, 'store')}`;
  const first = await planeWith(t, { storage });
  await first.account('robot');
  const token = tokenOf(await first.request('robot'));
  await first.plane.close();
  const next = keyPem();
  const cases = [
    { serviceAccounts: { signingKey }, valid: true },
    { serviceAccounts: { signingKey: next }, valid: false },
    { serviceAccounts: { signingKey: next, verificationKeys: [signingKey] }, valid: true },
    { serviceAccounts: { signingKey, issuers: ['https://new.example.org'] }, valid: false },
    { serviceAccounts: { signingKey, issuers: ['https://new.example.org', issuer], audiences: [issuer] }, valid: true },
  ];
  for (const [index, { valid, ...options }] of cases.entries()) {
    const { plane, isValid, request } = await planeWith(t, { storage, ...options });
    t.is(await isValid(token), valid, `case ${index}`);
    t.true(await isValid(tokenOf(await request('robot'))));
    await plane.close();
  }
});

test('forged and foreign tokens are not valid', async (t) => {
  const { account, request, isValid } = await planeWith(t);
  await account('robot');
  const token = tokenOf(await request('robot'));
  const [head = '', body = '', signature = ''] = token.split('.');
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const claims = decodeJwt(token);
  const { kid = '' } = decodeProtectedHeader(token);
  const foreign = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
  const signed = (payload: object, headers: { alg: string; kid?: string }, key = foreign) =>
    new SignJWT(payload as never).setProtectedHeader(headers).sign(key);
  const secret = Buffer.from(signature);
  const forged = [
    `${encode({ alg: 'none', kid })}.${body}.`,
    `${head}.${encode({ ...claims, sub: 'system:serviceaccount:kube-system:admin' })}.${signature}`,
    `${head}.${body}.${signature.replace(/^./, (first) => (first === 'A' ? 'B' : 'A'))}`,
    await signed(claims, { alg: 'ES256', kid }),
    await signed({ ...claims, iss: 'https://elsewhere' }, { alg: 'ES256', kid }),
    await new SignJWT(claims).setProtectedHeader({ alg: 'HS256', kid }).sign(secret),
    `${token}.`,
    'x'.repeat(100_000),
    '..',
    '',
  ].filter((one) => one !== '');
  for (const one of forged) t.false(await isValid(one), one.slice(0, 60));
  t.true(await isValid(token));
});

test('a requested validity above the greatest one is shortened with a warning', async (t) => {
  const { account, request } = await planeWith(t, { serviceAccounts: { signingKey, maxExpirationSeconds: 3600 } });
  await account('robot');
  const { spec, status } = await request('robot', { expirationSeconds: 86_400 });
  t.is(spec.expirationSeconds, 3600);
  const { exp = 0, iat = 0 } = decodeJwt(status?.token ?? '');
  t.is(exp - iat, 3600);
});

test('a default token of a pod is extended to a year only on request', async (t) => {
  for (const extendExpiration of [false, true]) {
    const { account, pod, request } = await planeWith(t, { serviceAccounts: { signingKey, extendExpiration } });
    await account('robot');
    await pod('p', { serviceAccountName: 'robot' });
    const boundObjectRef = { apiVersion: 'v1', kind: 'Pod', name: 'p' };
    const {
      exp = 0,
      iat = 0,
      ...claims
    } = decodeJwt(tokenOf(await request('robot', { expirationSeconds: 3607, boundObjectRef })));
    t.is(exp - iat, extendExpiration ? 365 * 86_400 : 3607);
    const { warnafter } = claims['kubernetes.io'] as { warnafter?: number };
    t.is(warnafter, extendExpiration ? iat + 3607 : undefined);
  }
});

test('a pod gets the default account and a token volume, as soon as its namespace has the account', async (t) => {
  const { plane } = await planeWith(t, { serviceAccounts: { signingKey, certificateAuthority: 'PEM' } });
  await plane.client(Namespace).create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'new' } } as Namespace);
  const { spec } = await plane
    .client(Pod)
    .namespace('new')
    .create({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'p' },
      spec: {
        initContainers: [{ name: 'init', image: 'none' }],
        containers: [
          { name: 'main', image: 'none' },
          {
            name: 'own',
            image: 'none',
            volumeMounts: [{ name: 'mine', mountPath: '/var/run/secrets/kubernetes.io/serviceaccount' }],
          },
        ],
        volumes: [{ name: 'mine', emptyDir: {} }],
      },
    } as unknown as Pod);
  t.deepEqual([spec.serviceAccountName, spec.serviceAccount], ['default', 'default']);
  const volume = spec.volumes?.[1];
  t.regex(volume?.name ?? '', /^kube-api-access-[a-z0-9]{5}$/);
  t.deepEqual(volume?.projected, {
    defaultMode: 420,
    sources: [
      { serviceAccountToken: { expirationSeconds: 3607, path: 'token' } },
      { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
      {
        downwardAPI: {
          items: [{ path: 'namespace', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } }],
        },
      },
    ],
  });
  const mount = {
    name: volume?.name,
    readOnly: true,
    mountPath: '/var/run/secrets/kubernetes.io/serviceaccount',
  };
  t.deepEqual(spec.containers[0]?.volumeMounts as unknown, [mount]);
  t.deepEqual(spec.initContainers?.[0]?.volumeMounts as unknown, [mount]);
  t.is(spec.containers[1]?.volumeMounts?.length, 1, 'a mount of the pod at the path counts more');
  const map = await plane.client(ConfigMap).namespace('new').get('kube-root-ca.crt');
  t.deepEqual(map.data, { 'ca.crt': 'PEM' });
});

test('pod and account can decline the token; the account gives its pull secrets', async (t) => {
  const { accounts, pod } = await planeWith(t);
  await accounts.create({
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: 'quiet' },
    automountServiceAccountToken: false,
    imagePullSecrets: [{ name: 'registry' }],
  });
  const quiet = await pod('a', { serviceAccountName: 'quiet' });
  t.is(quiet.spec.volumes, undefined);
  t.deepEqual(quiet.spec.imagePullSecrets as unknown, [{ name: 'registry' }]);
  const loud = await pod('b', { serviceAccountName: 'quiet', automountServiceAccountToken: true });
  t.is(loud.spec.volumes?.length, 1);
  const silent = await pod('c', { automountServiceAccountToken: false, imagePullSecrets: [{ name: 'own' }] });
  t.is(silent.spec.volumes, undefined);
  t.deepEqual(silent.spec.imagePullSecrets as unknown, [{ name: 'own' }]);
});

test('a pod of a missing account and a mirror pod with an account are rejected', async (t) => {
  const { pod } = await planeWith(t);
  await t.throwsAsync(pod('p', { serviceAccountName: 'x' }), {
    message: 'pods "p" is forbidden: error looking up service account default/x: serviceaccount "x" not found',
  });
  const mirror = { annotations: { 'kubernetes.io/config.mirror': 'h' } };
  t.is((await pod('m', { nodeName: 'n' }, mirror)).spec.serviceAccountName, undefined);
  await t.throwsAsync(pod('n', { nodeName: 'n', serviceAccountName: 'default' }, mirror), {
    message: 'pods "n" is forbidden: a mirror pod may not reference service accounts',
  });
});

test('the account default and kube-root-ca.crt are restored in every namespace that is not being deleted', async (t) => {
  const { plane } = await planeWith(t, { serviceAccounts: { signingKey, certificateAuthority: 'PEM' } });
  const accounts = plane.client(ServiceAccount);
  const maps = plane.client(ConfigMap).namespace('kube-system');
  for (const namespace of ['default', 'kube-system', 'kube-public', 'kube-node-lease'])
    await until(() => accounts.namespace(namespace).get('default'));
  const before = await until(() => maps.get('kube-root-ca.crt'));
  await maps.update({ ...before, data: { 'ca.crt': 'changed', more: 'x' } });
  await until(async () => {
    const { data } = await maps.get('kube-root-ca.crt');
    return data?.['ca.crt'] === 'PEM' && !('more' in data);
  });
  const old = await accounts.namespace('default').get('default');
  await accounts.namespace('default').delete('default');
  const fresh = await until(() => accounts.namespace('default').get('default'));
  t.not(fresh.metadata?.uid, old.metadata?.uid);
  await plane
    .client(Namespace)
    .create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'gone' } } as Namespace);
  await until(() => accounts.namespace('gone').get('default'));
  await plane.client(Namespace).delete('gone');
  await until(async () => {
    const { items } = await plane.client(Namespace).list();
    return !items.some(({ metadata }) => metadata?.name === 'gone');
  });
  t.deepEqual(
    (await accounts.list()).items.filter(({ metadata }) => metadata?.namespace === 'gone'),
    [],
  );
});

test('a changed authority is published in every namespace and in Secrets with tokens without a restart', async (t) => {
  let authority = 'old';
  const clock: Clock = {
    ...systemClock,
    after: (ms, callback) => systemClock.after(ms === 60_000 ? 20 : ms, callback),
  };
  const serviceAccounts = { signingKey, certificateAuthority: () => authority };
  const { plane, account } = await planeWith(t, { serviceAccounts, clock });
  await account('robot');
  const secrets = plane.client(Secret).namespace('default');
  await secrets.create(tokenSecret('robot-token', 'robot'));
  const published = async () => {
    const maps = await plane.client(ConfigMap).list({ fieldSelector: 'metadata.name=kube-root-ca.crt' });
    const { data } = await secrets.get('robot-token');
    return [...maps.items.map((map) => map.data?.['ca.crt']), textOf(data?.['ca.crt'])];
  };
  await until(async () => (await published()).join() === 'old,old,old,old,old');
  authority = 'new';
  await until(async () => (await published()).join() === 'new,new,new,new,new');
  t.pass();
});

test('a Secret for the token of an account is filled; the token is valid until the Secret or the account is deleted', async (t) => {
  const { plane, accounts, account, review, isValid } = await planeWith(t, {
    serviceAccounts: { signingKey, certificateAuthority: 'PEM' },
  });
  const robot = await account('robot');
  const secrets = plane.client(Secret).namespace('default');
  const filled = async (name: string) => {
    await secrets.create(tokenSecret(name, 'robot'));
    return until(async () => {
      const found = await secrets.get(name);
      return found.data?.['token'] === undefined ? undefined : found;
    });
  };
  const secret = await filled('one');
  t.is(secret.metadata?.annotations?.['kubernetes.io/service-account.uid'], robot.metadata?.uid);
  t.is(textOf(secret.data?.['namespace']), 'default');
  t.is(textOf(secret.data?.['ca.crt']), 'PEM');
  const token = textOf(secret.data?.['token']);
  t.deepEqual(decodeJwt(token), {
    iss: 'kubernetes/serviceaccount',
    sub: 'system:serviceaccount:default:robot',
    'kubernetes.io/serviceaccount/namespace': 'default',
    'kubernetes.io/serviceaccount/secret.name': 'one',
    'kubernetes.io/serviceaccount/service-account.name': 'robot',
    'kubernetes.io/serviceaccount/service-account.uid': robot.metadata?.uid,
  } as never);
  t.deepEqual((await review(token))?.user, {
    username: 'system:serviceaccount:default:robot',
    uid: robot.metadata?.uid,
    groups: ['system:serviceaccounts', 'system:serviceaccounts:default', 'system:authenticated'],
  } as never);
  t.false((await review(token, ['vault']))?.authenticated ?? false, 'it is for the API server only');
  const [head, body, signature] = token.split('.');
  t.false(await isValid(`${head}.${body}x.${signature}`), 'the signature is verified');

  await secrets.patch('one', 'merge', { data: { token: Buffer.from('other').toString('base64') } });
  t.false(await isValid(token), 'only the token that the Secret contains is valid');
  await secrets.patch('one', 'merge', { data: { token: Buffer.from(token).toString('base64') } });
  t.true(await isValid(token));
  await secrets.delete('one');
  t.false(await isValid(token));

  const second = textOf((await filled('two')).data?.['token']);
  t.true(await isValid(second));
  await secrets.create({ ...tokenSecret('other', 'robot'), type: 'Opaque' });
  await accounts.delete('robot');
  await until(async () => (await secrets.list()).items.map(({ metadata }) => metadata?.name).join() === 'other');
  t.false(await isValid(second));
  await account('robot');
  const misdirected = tokenSecret('stale', 'robot', { 'kubernetes.io/service-account.uid': uidOf(robot) });
  await secrets.create(misdirected);
  await secrets.create(tokenSecret('missing', 'nobody'));
  await until(async () => (await secrets.list()).items.map(({ metadata }) => metadata?.name).join() === 'other');
  t.pass('Secrets of an earlier account of the name, and of no account, are deleted');
});

test('over HTTPS a token is its account, and the issuer documents verify it', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-accounts-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const credentials = await loadCredentials(folder, '127.0.0.1', systemClock.now());
  const {
    plane,
    account,
    request: tokenRequest,
  } = await planeWith(t, {
    serviceAccounts: { signingKey, verificationKeys: [keyPem('P-384')] },
  });
  await account('robot');
  const { url, port } = await plane.listen({ credentials });
  const get = (path: string, token?: string) =>
    new Promise<{ code: number; text: string; type: string; cache: string }>((resolve, reject) => {
      const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
      const outgoing = request(url + path, { agent: false, ca: credentials.authority, headers }, (incoming) => {
        let text = '';
        incoming.setEncoding('utf8').on('data', (part: string) => {
          text += part;
        });
        incoming.on('end', () =>
          resolve({
            code: incoming.statusCode ?? 0,
            text,
            type: incoming.headers['content-type'] ?? '',
            cache: incoming.headers['cache-control'] ?? '',
          }),
        );
      });
      outgoing.on('error', reject);
      outgoing.end();
    });
  const token = tokenOf(await tokenRequest('robot'));
  const refused = await get('/api/v1/namespaces/default/pods', token);
  t.is(refused.code, 403);
  t.true(refused.text.includes('User \\"system:serviceaccount:default:robot\\" cannot list resource'));
  t.is((await get('/openid/v1/jwks')).code, 401, 'anonymous users do not read them');
  t.is((await get('/apis', `${token}x`)).code, 401);

  const configuration = await get('/.well-known/openid-configuration', token);
  t.deepEqual([configuration.type, configuration.cache], ['application/json', 'public, max-age=3600']);
  t.deepEqual(JSON.parse(configuration.text), {
    issuer,
    jwks_uri: `https://127.0.0.1:${port}/openid/v1/jwks`,
    response_types_supported: ['id_token'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['ES256', 'ES384'],
  });
  const keys = await get('/openid/v1/jwks', token);
  t.is(keys.type, 'application/jwk-set+json');
  const { payload } = await jwtVerify(token, createLocalJWKSet(JSON.parse(keys.text) as JSONWebKeySet), {
    issuer,
    audience: issuer,
  });
  t.is(payload.sub, 'system:serviceaccount:default:robot');
  t.false(keys.text.includes('"d"'), 'no private part');

  const shown = async <T extends KubeObject>(objects: ResourceClient<T>) => objects.get('kubernetes');
  const { spec } = await shown(plane.client(Service).namespace('default'));
  t.deepEqual([spec.clusterIP, spec.ports?.[0]?.port], ['127.0.0.1', port]);
  t.is((await shown(plane.client(Endpoints).namespace('default'))).subsets, undefined, 'no loopback address');

  const moved = await plane.listen({ credentials, advertiseAddress: '192.0.2.7' });
  t.is((await shown(plane.client(Service).namespace('default'))).spec.clusterIP, '192.0.2.7');
  t.deepEqual((await shown(plane.client(Endpoints).namespace('default'))).subsets as unknown, [
    { addresses: [{ ip: '192.0.2.7' }], ports: [{ name: 'https', port: moved.port, protocol: 'TCP' }] },
  ]);
});

test('a node gets tokens only for pods that it runs, and for recipients that a volume of the pod names', async (t) => {
  const { plane, account, pod } = await planeWith(t);
  await account('robot');
  const volumes = [{ name: 'v', projected: { sources: [{ serviceAccountToken: { path: 't', audience: 'vault' } }] } }];
  const bound = await pod('p', { serviceAccountName: 'robot', nodeName: 'n1', volumes } as Partial<Pod['spec']>);
  const service = plane.registry.find({ group: '', version: 'v1', resource: 'serviceaccounts' });
  const token = service?.kind.subresources.find(({ name }) => name === 'token');
  const asNode = async (node: string, spec: object) => {
    if (service === undefined || token === undefined) throw new Error('the subresource is not served');
    const context = internalContext({ user: { name: `system:node:${node}`, groups: ['system:nodes'] } });
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec };
    const bytes = Buffer.from(JSON.stringify(body));
    const target = { namespace: 'default', name: 'robot' };
    const parameters = { dryRun: false, fieldValidation: 'Strict' } as const;
    await service.createSubresource(context, target, token, { bytes, format: 'json' }, parameters);
  };
  const boundObjectRef = { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: uidOf(bound) };
  const refusals: readonly [string, object, string][] = [
    ['n1', {}, 'node requested token not bound to a pod'],
    ['n2', { boundObjectRef }, 'node requested token bound to a pod scheduled on a different node'],
    ['n1', { boundObjectRef, audiences: ['a', 'vault'] }, 'node may only request 0 or 1 audiences'],
    [
      'n1',
      { boundObjectRef, audiences: ['bank'] },
      'audience "bank" not found in pod spec volume, system:node:n1 is not authorized to request tokens for this audience',
    ],
  ];
  for (const [node, spec, why] of refusals)
    await t.throwsAsync(asNode(node, spec), { message: `serviceaccounts "robot" is forbidden: ${why}` });
  await t.notThrowsAsync(asNode('n1', { boundObjectRef }));
  await t.notThrowsAsync(asNode('n1', { boundObjectRef, audiences: ['vault'] }));
});

test('the first start creates the signing key for its owner only, and later starts keep it', async (t) => {
  const data = await mkdtemp(join(tmpdir(), 'keelson-accounts-'));
  t.teardown(() => rm(data, { recursive: true }));
  const load = async (...args: string[]) =>
    loadServiceAccounts(await loadOptions(['--data', data, ...args], {}), silentLogger);
  const { signingKey: created, ...rest } = await load();
  t.deepEqual(rest, { verificationKeys: [], extendExpiration: false });
  t.is((await stat(join(data, 'service-account.key'))).mode & 0o777, 0o600);
  t.is((await load()).signingKey, created);
  const other = join(data, 'other.key');
  await writeFile(other, keyPem('P-521'), { mode: 0o600 });
  const changed = await load(
    ...['--service-account-signing-key-file', other, '--service-account-key-file', join(data, 'service-account.key')],
    ...['--service-account-issuer', 'https://a', '--service-account-issuer', 'https://b', '--api-audiences', 'x,y'],
    ...['--service-account-max-token-expiration', '2h', '--service-account-extend-token-expiration'],
  );
  t.not(changed.signingKey, created);
  t.like(changed, {
    verificationKeys: [created],
    issuers: ['https://a', 'https://b'],
    audiences: ['x', 'y'],
    maxExpirationSeconds: 7200,
    extendExpiration: true,
  });
});

test('options and keys that cannot be used are one sentence that names the option', async (t) => {
  const data = await mkdtemp(join(tmpdir(), 'keelson-accounts-'));
  t.teardown(() => rm(data, { recursive: true }));
  const load = async (...args: string[]) =>
    loadServiceAccounts(await loadOptions(['--data', data, ...args], {}), silentLogger);
  const cases: [string[], RegExp][] = [
    [
      ['--service-account-signing-key-file', join(data, 'none')],
      /^--service-account-signing-key-file .*none does not exist$/,
    ],
    [['--service-account-key-file', join(data, 'none')], /^--service-account-key-file .*none cannot be read: ENOENT/],
    [
      ['--service-account-max-token-expiration', '59m'],
      /^--service-account-max-token-expiration must be a duration from 1h to 2\^32 seconds, not "59m/,
    ],
    [['--service-account-jwks-uri', 'http://a'], /^--service-account-jwks-uri must be an https URL/],
    [['--service-account-issuer', 'https:'], /^--service-account-issuer must be a name or a URL, not "https:"$/],
    [['--advertise-address', '0.0.0.0'], /^--advertise-address must be an IP address at which pods reach this server/],
  ];
  const noKey = join(data, 'no.key');
  await writeFile(noKey, 'text', { mode: 0o600 });
  cases.push(
    [
      ['--service-account-signing-key-file', noKey],
      /no.key must contain a private key in PEM form without a passphrase$/,
    ],
    [['--service-account-key-file', noKey], /no.key must contain public keys in PEM form$/],
  );
  for (const [args, message] of cases) await t.throwsAsync(load(...args), { name: 'UsageError', message });
  const weak = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey.export({ type: 'pkcs8', format: 'pem' });
  for (const key of ['no key', weak as string]) {
    await t.throwsAsync(createControlPlane({ serviceAccounts: { signingKey: key } }), {
      name: 'UsageError',
      message: /^the signing key of service accounts must contain /,
    });
  }
});
