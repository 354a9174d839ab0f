import { mkdtemp, rm } from 'node:fs/promises';
import { connect as connectHttp2 } from 'node:http2';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseTokenFile, tokenUsers } from '@keelson/access';
import type { KeyPair } from '@keelson/certificates';
import { systemClock } from '@keelson/core/runtime';
import test, { type ExecutionContext } from 'ava';
import { createControlPlane } from '../../src/control-plane/create-control-plane.ts';
import { createAuthority, issueCertificate, type LeafRequest } from '../../src/tls/authority.ts';
import { loadCredentials } from '../../src/tls/credentials.ts';

const dayMs = 86_400_000;
const admin: LeafRequest = { commonName: 'eve', organizations: ['system:masters'], usage: 'client' };

async function served(t: ExecutionContext) {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-certificates-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const credentials = await loadCredentials(folder, '127.0.0.1', systemClock.now());
  const plane = await createControlPlane({
    authenticateToken: tokenUsers(parseTokenFile('s-admin,ann,1,system:masters\n', 'x')),
  });
  t.teardown(() => plane.close());
  const { url } = await plane.listen({ credentials });
  const authority: KeyPair = { certificate: credentials.authority, key: credentials.authorityKey };
  const get = (path: string, pair: KeyPair | undefined, headers: Record<string, string> = {}) =>
    new Promise<number>((resolve, reject) => {
      const shown = pair && { cert: pair.certificate, key: pair.key };
      const outgoing = request(
        url + path,
        { agent: false, ca: credentials.authority, headers, ...shown },
        (incoming) => {
          incoming.resume().on('end', () => resolve(incoming.statusCode ?? 0));
        },
      );
      outgoing.on('error', reject);
      outgoing.end();
    });
  const getHttp2 = (path: string, pair: KeyPair) =>
    new Promise<number>((resolve, reject) => {
      const session = connectHttp2(url, { ca: credentials.authority, cert: pair.certificate, key: pair.key });
      session.on('error', reject);
      const stream = session.request({ ':path': path });
      stream.on('response', (head) => resolve(head[':status'] ?? 0));
      stream.on('error', reject);
      stream.resume().on('close', () => session.close());
    });
  return { credentials, authority, get, getHttp2 };
}

test('a client certificate that does not verify is 401, not the anonymous user', async (t) => {
  const { credentials, authority, get, getHttp2 } = await served(t);
  const now = systemClock.now();
  const invalid: Record<string, KeyPair> = {
    expired: await issueCertificate(authority, { ...admin, lifeMs: dayMs }, now - 3 * dayMs),
    'not yet valid': await issueCertificate(authority, admin, now + 3 * dayMs),
    'of another authority': await issueCertificate(await createAuthority(now), admin, now),
    'for servers': await issueCertificate(authority, { ...admin, usage: 'server' }, now),
    'without a name': await issueCertificate(authority, { ...admin, commonName: '' }, now),
  };
  for (const [what, pair] of Object.entries(invalid)) {
    for (const path of ['/api/v1/namespaces', '/version']) {
      t.is(await get(path, pair), 401, what);
      t.is(await getHttp2(path, pair), 401, `${what}, HTTP/2`);
    }
    t.is(
      await get('/api/v1/namespaces', pair, { authorization: 'Bearer s-admin' }),
      200,
      `${what}, with a valid token`,
    );
    t.is(await get('/api/v1/namespaces', pair, { authorization: 'Bearer other' }), 401);
    t.is(await get('/api/v1/namespaces', pair, { authorization: 'Basic eDp5' }), 401);
  }
  t.is(await get('/api/v1/namespaces', credentials.admin), 200);
  t.is(await get('/api/v1/namespaces', undefined), 401, 'without credentials anonymous on few paths only');
  t.is(await get('/version', undefined), 200);
});

test('a server without tokens answers 401 to every bearer token', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-certificates-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const credentials = await loadCredentials(folder, '127.0.0.1', systemClock.now());
  const plane = await createControlPlane();
  t.teardown(() => plane.close());
  const { url } = await plane.listen({ credentials });
  for (const authorization of ['Bearer x', 'bearer x ', 'Bearer a b']) {
    const status = await new Promise<number>((resolve, reject) => {
      const outgoing = request(`${url}/version`, {
        agent: false,
        ca: credentials.authority,
        headers: { authorization },
      });
      outgoing.on('response', (incoming) => resolve(incoming.resume().statusCode ?? 0)).on('error', reject);
      outgoing.end();
    });
    t.is(status, 401, JSON.stringify(authorization));
  }
});
