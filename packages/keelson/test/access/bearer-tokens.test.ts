import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseTokenFile, tokenUsers } from '@keelson/access';
import { systemClock } from '@keelson/core/runtime';
import { SubjectAccessReview, TokenReview } from '@keelson/kinds';
import test from 'ava';
import { startServer } from '../../src/cli/serve.ts';
import { loadOptions } from '../../src/config/load-options.ts';
import { createControlPlane } from '../../src/control-plane/create-control-plane.ts';
import { loadCredentials } from '../../src/tls/credentials.ts';

const tokens = parseTokenFile('s-admin,ann,1,system:masters\ns-jane,jane,7,dev\n', 'x');

test('over HTTPS a token authenticates its user, an unknown one is 401, and reviews agree', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-bearer-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const credentials = await loadCredentials(folder, '127.0.0.1', systemClock.now());
  const plane = await createControlPlane({ authenticateToken: tokenUsers(tokens) });
  t.teardown(() => plane.close());
  const { url } = await plane.listen({ credentials });
  const statusOf = (path: string, authorization?: string, admin = false) =>
    new Promise<number>((resolve, reject) => {
      const certificate = admin ? { cert: credentials.admin.certificate, key: credentials.admin.key } : {};
      const headers = authorization === undefined ? {} : { authorization };
      const outgoing = request(
        url + path,
        { agent: false, ca: credentials.authority, headers, ...certificate },
        (incoming) => {
          incoming.resume().on('end', () => resolve(incoming.statusCode ?? 0));
        },
      );
      outgoing.on('error', reject);
      outgoing.end();
    });
  const namespaces = '/api/v1/namespaces';
  t.is(await statusOf(namespaces, 'Bearer s-admin'), 200);
  t.is(await statusOf(namespaces, ' bearer s-admin '), 200);
  t.is(await statusOf(namespaces, 'Bearer s-admin more'), 200);
  t.is(await statusOf(namespaces, 'Bearer s-jane'), 403, 'known, and not allowed');
  t.is(await statusOf('/api', 'Bearer s-jane'), 200, 'discovery is for whoever is known');
  t.is(await statusOf('/version', 'Bearer nope'), 401);
  for (const header of ['Bearer', 'Bearer ', 'Bearer  s-admin', 'Bearer\ts-admin']) {
    t.is(await statusOf('/version', header), 200, `${header}: no credential`);
    t.is(await statusOf(namespaces, header), 401, header);
  }
  t.is(await statusOf(namespaces), 401, 'without a token anonymous, which is for few paths');
  t.is(await statusOf(namespaces, 'Bearer nope', true), 200, 'a verified certificate counts more');

  const review = async (token: string, audiences?: string[]) =>
    (
      await plane.client(TokenReview).create({
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenReview',
        spec: { token, ...(audiences && { audiences }) },
      } as TokenReview)
    ).status;
  t.deepEqual(await review('s-jane'), {
    authenticated: true,
    user: { username: 'jane', uid: '7', groups: ['dev', 'system:authenticated'] },
  });
  t.deepEqual(await review('nope'), { user: {}, error: 'invalid bearer token' });
  t.deepEqual(await review('s-jane', ['elsewhere']), { user: {}, error: 'invalid bearer token' });

  const allowed = async (user: string, groups: string[]) =>
    (
      await plane.client(SubjectAccessReview).create({
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SubjectAccessReview',
        spec: {
          user,
          groups,
          resourceAttributes: { verb: 'get', version: 'v1', resource: 'nodes', name: 'n1', subresource: 'stats' },
        },
      } as SubjectAccessReview)
    ).status?.allowed;
  t.true(await allowed('ann', ['system:masters']));
  t.false(await allowed('jane', ['dev', 'system:authenticated']));
});

test('on a server without tokens no token has an owner', async (t) => {
  const plane = await createControlPlane();
  t.teardown(() => plane.close());
  const { status } = await plane.client(TokenReview).create({
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenReview',
    spec: { token: 's-jane' },
  } as TokenReview);
  t.deepEqual(status, { user: {}, error: 'invalid bearer token' });
});

test('tokens of a file are valid for the audiences of the server, and for those only', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-bearer-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const tokenFile = join(folder, 'tokens.csv');
  await writeFile(tokenFile, 's-jane,jane,7,dev\n', { mode: 0o600 });
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const plane = await createControlPlane({
    authentication: { tokenFile },
    serviceAccounts: {
      signingKey: String(privateKey.export({ type: 'pkcs8', format: 'pem' })),
      audiences: ['api', 'api.example.org'],
    },
  });
  t.teardown(() => plane.close());
  const review = async (audiences?: string[]) =>
    (
      await plane.client(TokenReview).create({
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenReview',
        spec: { token: 's-jane', ...(audiences && { audiences }) },
      } as TokenReview)
    ).status;
  t.like(await review(), { authenticated: true, audiences: ['api', 'api.example.org'] });
  t.like(await review(['vault', 'api']), { authenticated: true, user: { username: 'jane' }, audiences: ['api'] });
  t.deepEqual(await review(['vault']), { user: {}, error: 'invalid bearer token' });
});

test('keelson serve --token-auth-file accepts the tokens of the file', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-bearer-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const file = join(folder, 'tokens.csv');
  await writeFile(file, 's-admin,ann,1,"system:masters"\n', { mode: 0o600 });
  const words = ['--data', join(folder, 'data'), '--storage=memory:', '--listen=127.0.0.1:0', '--log-level=silent'];
  const server = await startServer(await loadOptions([...words, '--token-auth-file', file], {}), false);
  t.teardown(() => server.stop());
  const statusOf = (authorization: string) =>
    new Promise<number>((resolve, reject) => {
      const options = { agent: false, rejectUnauthorized: false, headers: { authorization } };
      const outgoing = request(`${server.url}/api/v1/nodes`, options, (incoming) => {
        incoming.resume().on('end', () => resolve(incoming.statusCode ?? 0));
      });
      outgoing.on('error', reject);
      outgoing.end();
    });
  t.is(await statusOf('Bearer s-admin'), 200);
  t.is(await statusOf('Bearer s-other'), 401);
});
