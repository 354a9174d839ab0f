import { createHash, createSign, generateKeyPairSync, type KeyObject, randomBytes, X509Certificate } from 'node:crypto';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, Agent as HttpsAgent, request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AuthenticationOptions } from '@keelson/access';
import { createRevocationList, type KeyPair } from '@keelson/certificates';
import { FakeClock, type Logger } from '@keelson/core/runtime';
import { until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { createControlPlane } from '../../src/control-plane/create-control-plane.ts';
import { createAuthority, issueCertificate } from '../../src/tls/authority.ts';
import { loadCredentials } from '../../src/tls/credentials.ts';

const dayMs = 86_400_000;
const filePollMs = 10_000;

interface Call {
  readonly pair?: KeyPair | undefined;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly agent?: HttpsAgent;
}

interface Answer {
  readonly status: number;
  /** `name: group, group` of the user whom the server has identified. */
  readonly user: string;
  readonly extra: Readonly<Record<string, readonly string[]>> | undefined;
}

/** A server over TLS with a clock of its own, and everything that it logs. */
async function serve(
  t: ExecutionContext,
  options: (folder: string) => AuthenticationOptions | Promise<AuthenticationOptions>,
) {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-authentication-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const clock = new FakeClock(Date.now());
  const lines: string[] = [];
  const log = (message: string, fields?: object) =>
    void lines.push(
      `${message} ${JSON.stringify(fields, (_, value: unknown) => (value instanceof Error ? value.stack : value))}`,
    );
  const logger: Logger = { debug: log, info: log, warn: log, error: log, child: () => logger };
  const credentials = await loadCredentials(folder, '127.0.0.1', clock.now());
  const authentication = await options(folder);
  const plane = await createControlPlane({ controllers: false, authentication, clock, logger });
  t.teardown(() => plane.close());
  const server = await plane.listen({ credentials });
  const send = (path: string, { pair, headers = {}, agent }: Call, body?: string) =>
    new Promise<{ status: number; text: string }>((resolve, reject) => {
      const certificate = pair && { cert: pair.certificate, key: pair.key };
      const tls = { agent: agent ?? false, ca: credentials.authority, ...certificate };
      const method = body === undefined ? 'GET' : 'POST';
      const json = body === undefined ? {} : { 'content-type': 'application/json', 'content-length': body.length };
      const outgoing = request(server.url + path, { ...tls, method, headers: { ...json, ...headers } }, (incoming) => {
        let text = '';
        incoming.on('data', (chunk) => {
          text += String(chunk);
        });
        incoming.on('end', () => resolve({ status: incoming.statusCode ?? 0, text }));
      });
      outgoing.on('error', reject);
      // A text would be joined with the head and change the encoding of its bytes.
      outgoing.end(body === undefined ? undefined : Buffer.from(body));
    });
  const whoAmI = async (call: Call): Promise<Answer> => {
    const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' };
    const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews';
    const { status, text } = await send(path, call, JSON.stringify(review));
    const info = status === 201 ? JSON.parse(text).status.userInfo : undefined;
    const user = info ? `${info.username}: ${info.groups.join(', ')}` : '';
    return { status, user, extra: info?.extra };
  };
  const bearer = (token: string) => whoAmI({ headers: { authorization: `Bearer ${token}` } });
  /** Lets files be checked until the condition holds. */
  /** Lets the files be read until the condition holds. */
  const polled = (condition: () => boolean | Promise<boolean>) =>
    until(async () => {
      if (await condition()) return true;
      clock.advance(filePollMs);
      return false;
    });
  const authority: KeyPair = { certificate: credentials.authority, key: credentials.authorityKey };
  const client = (commonName: string, organizations: string[] = [], by = authority) =>
    issueCertificate(by, { commonName, organizations, usage: 'client' }, clock.now());
  return { folder, clock, lines, plane, server, credentials, authority, client, send, whoAmI, bearer, polled };
}

/** Replaces a file as an editor or a Secret volume does. */
async function replace(path: string, content: string | Buffer): Promise<void> {
  await writeFile(`${path}.new`, content, { mode: 0o600 });
  await rename(`${path}.new`, path);
}

async function listen(
  t: ExecutionContext,
  pair: KeyPair,
  handle: (request: IncomingMessage, response: ServerResponse) => void,
) {
  const server = createServer({ cert: pair.certificate, key: pair.key }, handle);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  t.teardown(close);
  return { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}

const loopbackServer = { commonName: 'x', usage: 'server', names: { dns: [], ips: ['127.0.0.1'] } } as const;

test('tokens of the file change with it; an invalid file keeps the previous tokens', async (t) => {
  const { folder, bearer, polled, lines } = await serve(t, async (data) => {
    await writeFile(join(data, 'tokens'), 'canary-one,ann,1,dev\n', { mode: 0o600 });
    return { tokenFile: join(data, 'tokens') };
  });
  t.is((await bearer('canary-one')).user, 'ann: dev, system:authenticated');
  await replace(join(folder, 'tokens'), 'canary-two,bob,2\ncanary-three');
  await polled(() => lines.some((line) => line.includes('line 2: must contain')));
  t.is((await bearer('canary-one')).status, 201);
  t.is((await bearer('canary-two')).status, 401);
  await replace(join(folder, 'tokens'), 'canary-two,bob,2\n');
  await polled(async () => (await bearer('canary-one')).status === 401);
  t.is((await bearer('canary-two')).user, 'bob: system:authenticated');
  t.deepEqual(
    lines.filter((line) => line.includes('canary')),
    [],
  );
});

test('a WebSocket request sends its token as a subprotocol, beside another one', async (t) => {
  const { send } = await serve(t, async (data) => {
    await writeFile(join(data, 'tokens'), 's-admin,ann,1,system:masters\n', { mode: 0o600 });
    return { tokenFile: join(data, 'tokens') };
  });
  const protocol = (token: string) =>
    `base64url.bearer.authorization.k8s.io.${Buffer.from(token).toString('base64url')}`;
  const exec = '/api/v1/namespaces/default/pods/p/exec?command=x&stdout=1';
  const status = async (protocols: string, path = exec) => {
    const key = randomBytes(16).toString('base64');
    const webSocket = { upgrade: 'websocket', 'sec-websocket-version': '13', 'sec-websocket-key': key };
    const headers = { connection: 'Upgrade', ...webSocket, 'sec-websocket-protocol': protocols };
    return (await send(path, { headers })).status;
  };
  t.is(await status(`v5.channel.k8s.io, ${protocol('s-admin')}`), 404, 'the pod does not exist');
  t.is(await status(`a, ${protocol('s-admin')}`, '/api/v1/namespaces'), 200, 'also where there is no upgrade');
  for (const protocols of [
    protocol('s-admin'),
    `v5.channel.k8s.io, ${protocol('other')}`,
    `v5.channel.k8s.io, ${protocol('s-admin')}, ${protocol('s-admin')}`,
    'v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.***',
    `v5.channel.k8s.io, ${protocol('s-admin')}=`,
  ])
    t.is(await status(protocols), 401, protocols);
  const notUpgraded = { 'sec-websocket-protocol': `a, ${protocol('s-admin')}` };
  t.is((await send(exec, { headers: notUpgraded })).status, 401, 'not a WebSocket request');
});

test('anonymous requests are served on the configured paths, and 401 elsewhere', async (t) => {
  const none = await serve(t, () => ({ anonymous: { enabled: false } }));
  for (const path of ['/livez', '/version', '/api/v1/nodes']) t.is((await none.send(path, {})).status, 401, path);
  const all = await serve(t, () => ({ anonymous: { enabled: true } }));
  t.is((await all.send('/api/v1/nodes', {})).status, 403);
  t.is((await all.send('/livez?verbose', {})).status, 200);
  const few = await serve(t, async (data) => {
    const config = { apiVersion: 'apiserver.config.k8s.io/v1', kind: 'AuthenticationConfiguration' };
    const anonymous = { enabled: true, conditions: [{ path: '/livez' }] };
    await writeFile(join(data, 'config'), JSON.stringify({ ...config, anonymous }));
    return { configFile: join(data, 'config') };
  });
  t.is((await few.send('/livez', {})).status, 200);
  for (const path of ['/livez/ping', '/livez/', '/readyz', '//livez'])
    t.is((await few.send(path, {})).status, 401, path);
});

const revocationList = (by: KeyPair, revoked: readonly KeyPair[], until: number) =>
  createRevocationList(
    by,
    revoked.map(({ certificate }) => certificate),
    { notBefore: new Date(0), notAfter: new Date(until) },
  );

test('a revoked certificate is 401 on open connections too; an expired list remains in use and is logged once', async (t) => {
  const other = await createAuthority(Date.now());
  const { folder, clock, authority, client, whoAmI, polled, lines } = await serve(t, async (data) => {
    await writeFile(join(data, 'crl'), revocationList(other, [], Date.now() + dayMs));
    await writeFile(join(data, 'users'), other.certificate);
    return { revocationFile: join(data, 'crl'), clientAuthorityFile: join(data, 'users') };
  });
  const [ann, bob] = [await client('ann', ['dev']), await client('bob')];
  const agent = new HttpsAgent({ keepAlive: true, maxSockets: 1 });
  t.teardown(() => agent.destroy());
  const known = await whoAmI({ pair: ann, agent });
  t.is(known.user, 'ann: dev, system:authenticated');
  const fingerprint = createHash('sha256').update(new X509Certificate(ann.certificate).raw).digest('hex');
  t.deepEqual(known.extra, { 'authentication.kubernetes.io/credential-id': [`X509SHA256=${fingerprint}`] });
  await replace(join(folder, 'crl'), 'nonsense');
  await polled(() => lines.some((line) => line.includes('not a certificate revocation list')));
  t.is((await whoAmI({ pair: ann, agent })).status, 201);
  await replace(join(folder, 'crl'), revocationList(authority, [ann], clock.now() + dayMs));
  await polled(async () => (await whoAmI({ pair: ann, agent })).status === 401);
  t.is((await whoAmI({ pair: ann })).status, 401, 'on a new connection');
  t.is((await whoAmI({ pair: bob })).status, 201, 'another certificate of the same authority');
  const same = await issueCertificate(other, { commonName: 'ann', usage: 'client' }, clock.now());
  t.is((await whoAmI({ pair: same })).status, 201, 'the list of one authority is not one of another');
  clock.advance(2 * dayMs);
  t.is((await whoAmI({ pair: ann })).status, 401);
  t.is((await whoAmI({ pair: bob })).status, 201);
  t.is(lines.filter((line) => line.includes('revocation list has expired')).length, 1);
});

test('authorities of client certificates are added and removed while the server runs', async (t) => {
  const [first, second] = [await createAuthority(Date.now()), await createAuthority(Date.now())];
  const { folder, client, whoAmI, polled, clock } = await serve(t, async (data) => {
    await writeFile(join(data, 'users'), first.certificate);
    return { clientAuthorityFile: join(data, 'users') };
  });
  const [ann, bob] = [await client('ann', [], first), await client('bob', [], second)];
  const agent = new HttpsAgent({ keepAlive: true, maxSockets: 1 });
  t.teardown(() => agent.destroy());
  t.is((await whoAmI({ pair: ann, agent })).status, 201);
  t.is((await whoAmI({ pair: bob })).status, 401);
  await replace(join(folder, 'users'), second.certificate);
  await polled(async () => (await whoAmI({ pair: bob })).status === 201);
  t.is((await whoAmI({ pair: ann, agent })).status, 401, 'the open connection of a removed authority');
  t.is((await whoAmI({ pair: await client('eve') })).status, 201, 'the own authority remains');
  const short = await issueCertificate(second, { commonName: 'kim', usage: 'client', lifeMs: 3_600_000 }, clock.now());
  const kept = new HttpsAgent({ keepAlive: true, maxSockets: 1 });
  t.teardown(() => kept.destroy());
  t.is((await whoAmI({ pair: short, agent: kept })).status, 201);
  clock.advance(3_600_001);
  t.is((await whoAmI({ pair: short, agent: kept })).status, 401, 'a connection that outlives its certificate');
});

test('only a front proxy of its own authority and with an allowed name states users', async (t) => {
  const proxies = await createAuthority(Date.now());
  const { client, whoAmI } = await serve(t, async (data) => {
    await writeFile(join(data, 'proxies'), proxies.certificate);
    return {
      requestHeaders: {
        authorityFile: join(data, 'proxies'),
        allowedNames: ['front'],
        username: ['X-Remote-User'],
        uid: ['X-Remote-Uid'],
        groups: ['X-Remote-Group'],
        extraPrefixes: ['X-Remote-Extra-'],
      },
    };
  });
  const stated = {
    'X-Remote-User': 'j\u00f6rg',
    'X-Remote-Uid': '7',
    'X-Remote-Group': ['dev', 'system:masters'],
    'X-Remote-Extra-Example.com%2fTeam': ['a', 'b'],
  };
  const headers = { ...stated, 'X-Remote-User': Buffer.from(stated['X-Remote-User']).toString('latin1') };
  const front = await client('front', [], proxies);
  const answer = await whoAmI({ pair: front, headers });
  t.is(answer.user, 'j\u00f6rg: dev, system:masters, system:authenticated');
  t.deepEqual(answer.extra, { 'example.com/team': ['a', 'b'] });
  t.is((await whoAmI({ pair: front })).status, 401, 'a proxy is no user itself');
  t.is((await whoAmI({ pair: front, headers: { 'X-Remote-Group': 'dev' } })).status, 401, 'no user is stated');
  t.is((await whoAmI({ pair: await client('other', [], proxies), headers })).status, 401, 'another name');
  const spoofed = await whoAmI({ pair: await client('front', ['dev']), headers });
  t.is(spoofed.user, 'front: dev, system:authenticated', 'a user with the name of the proxy remains that user');
  t.is((await whoAmI({ headers })).status, 401, 'without a certificate');
});

interface SignOptions {
  readonly key: KeyObject;
  readonly kid?: string;
  readonly alg?: string;
}

const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

function signed(claims: object, { key, kid, alg = 'RS256' }: SignOptions): string {
  const text = `${encoded({ alg, typ: 'JWT', ...(kid ? { kid } : {}) })}.${encoded(claims)}`;
  return `${text}.${createSign('sha256').update(text).sign(key).toString('base64url')}`;
}

test('tokens of OpenID Connect issuers: claims, rotation, outage, audiences, clocks and forged algorithms', async (t) => {
  const authority = await createAuthority(Date.now());
  const pair = await issueCertificate(authority, loopbackServer, Date.now());
  const keys = ['one', 'two', 'three'].map((kid) => ({ kid, ...generateKeyPairSync('rsa', { modulusLength: 2048 }) }));
  const [one, two, three] = keys as [(typeof keys)[0], (typeof keys)[0], (typeof keys)[0]];
  let published = [one];
  let fetches = 0;
  let down = false;
  const answer = (path: string | undefined, url: string, by: typeof keys) => {
    const jwks = by.map(({ kid, publicKey }) => ({ ...publicKey.export({ format: 'jwk' }), kid, use: 'sig' }));
    return JSON.stringify(path === '/keys' ? { keys: jwks } : { issuer: url, jwks_uri: `${url}/keys` });
  };
  const issuer = await listen(t, pair, (incoming, response) => {
    if (down) return void incoming.socket.destroy();
    fetches += 1;
    response.end(answer(incoming.url, issuer.url, published));
  });
  const second = await listen(t, pair, ({ url }, response) => response.end(answer(url, second.url, [three])));
  const { bearer, clock, lines } = await serve(t, async (data) => {
    const config = {
      apiVersion: 'apiserver.config.k8s.io/v1beta1',
      kind: 'AuthenticationConfiguration',
      jwt: [
        {
          issuer: {
            url: issuer.url,
            audiences: ['here', 'there'],
            audienceMatchPolicy: 'MatchAny',
            certificateAuthority: authority.certificate,
          },
          claimMappings: {
            username: { claim: 'email', prefix: 'oidc:' },
            groups: { claim: 'roles', prefix: 'oidc:' },
            uid: { claim: 'sub' },
            extra: [{ key: 'example.com/team', valueExpression: 'claims.team' }],
          },
          claimValidationRules: [{ claim: 'hd', requiredValue: 'example.com' }],
        },
        {
          issuer: { url: second.url, audiences: ['second'], certificateAuthority: authority.certificate },
          claimMappings: { username: { claim: 'sub', prefix: 'second:' } },
        },
      ],
    };
    await writeFile(join(data, 'config'), JSON.stringify(config));
    return { configFile: join(data, 'config') };
  });
  const seconds = () => Math.floor(clock.now() / 1000);
  let serial = 0;
  const claims = (more: object = {}) => ({
    ...{ iss: issuer.url, aud: 'here', exp: seconds() + 3600, sub: '1', jti: `${++serial}` },
    ...{ email: 'ann@example.com', hd: 'example.com', ...more },
  });
  const by = ({ kid, privateKey }: (typeof keys)[0]) => ({ kid, key: privateKey });

  const full = await bearer(signed(claims({ roles: ['dev', 'ops'], team: 'red', email_verified: true }), by(one)));
  t.is(full.user, 'oidc:ann@example.com: oidc:dev, oidc:ops, system:authenticated');
  t.deepEqual(full.extra, { 'example.com/team': ['red'] });
  t.is((await bearer(signed(claims({ roles: 'dev' }), by(one)))).status, 201, 'a single group');
  t.is((await bearer(signed(claims(), { key: one.privateKey }))).status, 201, 'without the identifier of the key');

  const ofSecond = (more: object = {}) => claims({ iss: second.url, aud: 'second', ...more });
  t.is((await bearer(signed(ofSecond(), by(three)))).user, 'second:1: system:authenticated', 'another issuer');

  const refused: Readonly<Record<string, string>> = {
    'the key of another issuer': signed(ofSecond(), by(one)),
    'a key of another issuer without its identifier': signed(ofSecond(), { key: one.privateKey }),
    'the audience of another issuer': signed(ofSecond({ aud: 'here' }), by(three)),
    'another audience': signed(claims({ aud: 'elsewhere' }), by(one)),
    'an unknown issuer': signed(claims({ iss: 'https://example.com' }), by(one)),
    expired: signed(claims({ exp: seconds() - 11 }), by(one)),
    'not yet valid': signed(claims({ nbf: seconds() + 30 }), by(one)),
    'without an end': signed(claims({ exp: undefined }), by(one)),
    'without a user': signed(claims({ email: undefined }), by(one)),
    'an address that was not verified': signed(claims({ email_verified: false }), by(one)),
    'a missing claim': signed(claims({ hd: undefined }), by(one)),
    'another value of a claim': signed(claims({ hd: 'example.org' }), by(one)),
    'groups that are not text': signed(claims({ roles: [1] }), by(one)),
    'alg none': `${encoded({ alg: 'none' })}.${encoded(claims())}.`,
    'alg none with a signature': signed(claims(), { ...by(one), alg: 'none' }),
    'the key of another': signed(claims(), { key: two.privateKey, kid: 'one' }),
    'changed claims': signed(claims(), by(one)).replace(/\.[^.]+\./, `.${encoded(claims({ email: 'root' }))}.`),
  };
  for (const [what, token] of Object.entries(refused)) t.is((await bearer(token)).status, 401, what);
  const { createHmac } = await import('node:crypto');
  for (const secret of [
    one.publicKey.export({ type: 'spki', format: 'pem' }),
    JSON.stringify(one.publicKey.export({ format: 'jwk' })),
  ]) {
    const text = `${encoded({ alg: 'HS256', kid: 'one' })}.${encoded(claims())}`;
    const hmac = createHmac('sha256', secret).update(text).digest('base64url');
    t.is((await bearer(`${text}.${hmac}`)).status, 401, 'HS256 with the public key as the secret');
  }
  for (const skew of [{ exp: seconds() - 9 }, { nbf: seconds() + 9 }])
    t.is((await bearer(signed(claims(skew), by(one)))).status, 201, 'clocks may differ by ten seconds');

  published = [two];
  clock.advance(5_000);
  const before = fetches;
  t.is((await bearer(signed(claims(), by(two)))).status, 201, 'the key was rotated');
  for (let i = 0; i < 5; i += 1) t.is((await bearer(signed(claims(), { ...by(three), kid: `k${i}` }))).status, 401);
  t.is(fetches - before, 2, 'unknown keys cause at most one fetch in five seconds');
  t.is((await bearer(signed(claims(), by(one)))).status, 401, 'the former key is no longer published');

  down = true;
  t.is((await bearer(signed(ofSecond(), by(three)))).status, 201, 'an outage concerns one issuer');
  clock.advance(2 * 3_600_000);
  t.is((await bearer(signed(claims(), by(two)))).status, 201, 'known keys are sufficient during an outage');
  clock.advance(5_000);
  t.is((await bearer(signed(claims(), by(three)))).status, 401);
  const secrets = [...Object.values(refused), signed(claims(), by(two))].map((token) => token.split('.')[2] ?? '');
  t.deepEqual(
    lines.filter((line) => secrets.some((part) => part.length > 20 && line.includes(part))),
    [],
  );
});

test('AuthenticationConfiguration: what is not supported is refused with the field', async (t) => {
  const issuer = {
    issuer: { url: 'https://a.example', audiences: ['x'] },
    claimMappings: { username: { claim: 'sub', prefix: '' } },
  };
  const refused: readonly (readonly [object, RegExp])[] = [
    [
      { jwt: [{ ...issuer, issuer: { ...issuer.issuer, url: 'http://a.example' } }] },
      /jwt\[0\]\.issuer\.url: must be an https URL/,
    ],
    [{ jwt: [{ ...issuer, issuer: { url: 'https://a.example' } }] }, /audiences: at least one audience is required/],
    [{ jwt: [{ ...issuer, claimMappings: { username: { claim: 'sub' } } }] }, /username\.prefix: is required/],
    [
      { jwt: [{ ...issuer, claimMappings: { username: { expression: '"x" + claims.sub' } } }] },
      /username\.expression: CEL expressions are not supported/,
    ],
    [
      { jwt: [{ ...issuer, claimValidationRules: [{ expression: 'true' }] }] },
      /claimValidationRules\[0\]\.expression: CEL/,
    ],
    [{ jwt: [{ ...issuer, userValidationRules: [{ expression: 'true' }] }] }, /userValidationRules: CEL/],
    [{ jwt: [issuer, issuer] }, /jwt: the issuer "https:\/\/a\.example" occurs twice/],
    [{ jwt: [{ ...issuer, issuers: 1 }] }, /has an unknown field jwt\[0\]\.issuers/],
    [{ jwt: [{ ...issuer, claimMappings: 1 }] }, /jwt\[0\]\.claimMappings must be/],
    [{ anonymous: { conditions: [] } }, /anonymous\.enabled: must be true or false/],
    [{ anonymous: { enabled: false, conditions: [{ path: '/x' }] } }, /anonymous\.conditions/],
    [
      { kind: 'Other' },
      /must contain an object with apiVersion: apiserver\.config\.k8s\.io\/v1 and kind: AuthenticationConfiguration/,
    ],
  ];
  const folder = await mkdtemp(join(tmpdir(), 'keelson-authentication-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const configFile = join(folder, 'config');
  for (const [content, message] of refused) {
    await writeFile(
      configFile,
      JSON.stringify({ apiVersion: 'apiserver.config.k8s.io/v1', kind: 'AuthenticationConfiguration', ...content }),
    );
    await t.throwsAsync(createControlPlane({ controllers: false, authentication: { configFile } }), {
      name: 'UsageError',
      message,
    });
  }
});

test('a token webhook: answers are cached, hangs and malformed answers are 401 with a line in the log', async (t) => {
  const authority = await createAuthority(Date.now());
  const pair = await issueCertificate(authority, loopbackServer, Date.now());
  const asked: { token: string; audiences?: string[] }[] = [];
  const reply: Record<string, (response: ServerResponse) => void> = {
    'canary-hang': () => {},
    'canary-text': (response) => response.end('not JSON'),
    'canary-empty': (response) => response.end('{}'),
    'canary-nameless': (response) => response.end('{"kind":"TokenReview","status":{"authenticated":true,"user":{}}}'),
    'canary-long': (response) => response.end(`"${'x'.repeat(2_000_000)}"`),
    'canary-moved': (response) => response.writeHead(302, { location: '/' }).end(),
    'canary-error': (response) =>
      response.end('{"kind":"TokenReview","status":{"authenticated":false,"error":"no luck"}}'),
    'canary-good': (response) => {
      const user = { username: 'ann', uid: '7', groups: ['dev'], extra: { team: ['red'] } };
      response.end(
        JSON.stringify({ kind: 'TokenReview', status: { authenticated: true, user, audiences: ['elsewhere'] } }),
      );
    },
  };
  let failures = 0;
  const webhook = await listen(t, pair, (incoming, response) => {
    let text = '';
    incoming.on('data', (chunk) => {
      text += String(chunk);
    });
    incoming.on('end', () => {
      const { spec } = JSON.parse(text);
      asked.push(spec);
      if (failures > 0) {
        failures -= 1;
        return void response.writeHead(503).end();
      }
      const answer = reply[spec.token];
      if (answer) answer(response);
      else response.end('{"kind":"TokenReview","status":{}}');
    });
  });
  const { bearer, clock, lines, plane } = await serve(t, async (data) => {
    const base64 = Buffer.from(authority.certificate).toString('base64');
    const config = {
      clusters: [{ name: 'c', cluster: { server: webhook.url, 'certificate-authority-data': base64 } }],
      contexts: [{ name: 'c', context: { cluster: 'c', user: '' } }],
      'current-context': 'c',
    };
    await writeFile(join(data, 'webhook'), JSON.stringify(config));
    return { webhook: { configFile: join(data, 'webhook') } };
  });
  /** Lets time pass until the answer. */
  const impatient = async (token: string): Promise<Answer> => {
    let open = true;
    const done = bearer(token).finally(() => {
      open = false;
    });
    while (open) {
      await Promise.race([done, new Promise((resolve) => setTimeout(resolve, 20))]);
      if (open) clock.advance(250);
    }
    return done;
  };
  const good = await bearer('canary-good');
  t.is(good.user, 'ann: dev, system:authenticated');
  t.deepEqual(good.extra, { team: ['red'] });
  t.is((await bearer('canary-none')).status, 401);
  t.is(asked.length, 2);
  clock.advance(100_000);
  t.is((await bearer('canary-good')).status, 201);
  t.is((await bearer('canary-none')).status, 401);
  t.is(asked.length, 2, 'both answers were cached');
  clock.advance(20_001);
  await bearer('canary-good');
  t.is(asked.length, 3);

  for (const [token, problem] of [
    ['canary-text', 'the answer is not JSON'],
    ['canary-empty', 'is not a TokenReview'],
    ['canary-nameless', 'no status.user.username'],
    ['canary-long', 'longer than'],
    ['canary-moved', 'status 302'],
    ['canary-error', 'no luck'],
  ] as const) {
    clock.advance(10_000);
    t.is((await bearer(token)).status, 401, token);
    t.true(lines.at(-1)?.includes(problem), `${token}: ${lines.at(-1)}`);
  }
  failures = 2;
  asked.length = 0;
  t.is((await impatient('canary-other')).status, 401, 'an answer after two failures');
  t.true(asked.length >= 3);
  asked.length = 0;
  t.is((await impatient('canary-hang')).status, 401);
  t.true(asked.length >= 2, 'a server that hangs is asked again');
  t.true(lines.some((line) => line.includes('no answer within 10000 ms')));

  const review = (audiences: string[]) =>
    plane.api
      .dynamic({ group: 'authentication.k8s.io', version: 'v1', resource: 'tokenreviews' })
      .create({
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenReview',
        spec: { token: 'canary-good', audiences },
      } as never)
      .then((answer) => (answer as { status?: unknown }).status);
  t.like(await review(['elsewhere', 'more']), { authenticated: true, audiences: ['elsewhere'] });
  t.deepEqual(await review(['more']), { user: {}, error: 'invalid bearer token' });
  t.deepEqual(
    lines.filter((line) => line.includes('canary')),
    [],
  );
});
