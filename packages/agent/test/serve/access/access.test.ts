import { request } from 'node:https';
import type { ApiClient, KindDefinition, KubeObject } from '@keelson/core';
import { UsageError } from '@keelson/core/internal';
import type { Pod, SubjectAccessReview, TokenReview } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { parseOptions } from '../../../src/startup/options/parse-options.ts';
import { resolveConfig } from '../../../src/startup/options/resolve-config.ts';
import { openTestServers } from '../../support/test-servers.ts';

interface ReviewServer {
  /** Answers to token reviews, by token; a function may be slow or fail. */
  readonly tokens?: (token: string) => TokenReview['status'] | Promise<TokenReview['status']>;
  readonly pods?: () => readonly Pod[];
  readonly access?: (
    spec: SubjectAccessReview['spec'],
  ) => SubjectAccessReview['status'] | Promise<SubjectAccessReview['status']>;
}

/** An API server that only serves reviews, and counts them. */
function reviewServer({ tokens = () => ({ user: {} }), access = () => ({ allowed: true }) }: ReviewServer) {
  const asked: { readonly tokens: string[]; readonly access: SubjectAccessReview['spec'][] } = {
    tokens: [],
    access: [],
  };
  const create = async (kind: string, review: KubeObject) => {
    if (kind === 'TokenReview') {
      const { token } = (review as TokenReview).spec;
      asked.tokens.push(token);
      return { ...review, status: await tokens(token) };
    }
    const { spec } = review as SubjectAccessReview;
    asked.access.push(spec);
    return { ...review, status: await access(spec) };
  };
  const resource = ({ kind }: KindDefinition) => ({ create: (review: KubeObject) => create(kind, review) });
  return { asked, api: { resource } as unknown as Pick<ApiClient, 'resource'> };
}

const jane = { authenticated: true, user: { username: 'jane', uid: '7', groups: ['dev'], extra: { team: ['red'] } } };

async function open(t: ExecutionContext, words: readonly string[], server: ReviewServer = {}) {
  const { api, asked } = reviewServer(server);
  const { servers, clock, logger } = await openTestServers(t, ['--clusterconfig=/c', ...words], () => ({
    ...(server.pods && { state: { pods: server.pods } }),
    reviewApi: api,
  }));
  const ask = (
    path: string,
    { token, ...rest }: { token?: string; method?: string; headers?: Record<string, string> } = {},
  ) =>
    new Promise<{ readonly status: number; readonly body: string }>((resolve, reject) => {
      const headers = { ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }), ...rest.headers };
      const options = { agent: false, rejectUnauthorized: false, ...rest, headers };
      const outgoing = request(`https://127.0.0.1:${servers.port}${path}`, options, (incoming) => {
        let body = '';
        incoming.on('data', (chunk) => {
          body += String(chunk);
        });
        incoming.on('error', reject);
        incoming.on('end', () => resolve({ status: incoming.statusCode ?? 0, body }));
      });
      outgoing.on('error', reject);
      outgoing.end();
    });
  const statusOf = async (...rest: Parameters<typeof ask>) => (await ask(...rest)).status;
  return { ask, statusOf, asked, clock, logger, url: `https://127.0.0.1:${servers.port}` };
}

const known = (token: string) => (token === 'good' ? jane : { user: {} });

test('--authentication-token-webhook: a valid token is accepted, an invalid one is 401, no token is anonymous', async (t) => {
  const { ask, statusOf, asked } = await open(t, ['--authentication-token-webhook'], { tokens: known });
  t.is(await statusOf('/pods', { token: 'good' }), 200);
  t.deepEqual(await ask('/pods', { token: 'bad' }), { status: 401, body: 'Unauthorized\n' });
  t.is(await statusOf('/pods'), 200);
  t.deepEqual(asked.tokens, ['good', 'bad']);
  for (const header of ['Bearer', 'Bearer ', 'bearer two words']) {
    t.is(await statusOf('/pods', { headers: { Authorization: header } }), 401, header);
  }
  t.is(await statusOf('/pods', { headers: { Authorization: 'bEARER   good' } }), 200, 'the scheme has no case');
  t.is(await statusOf('/pods', { headers: { Authorization: 'Basic eDp5' } }), 200, 'other schemes mean nothing');
  t.deepEqual(asked.tokens, ['good', 'bad'], 'what cannot be a token is nobody’s');
  t.deepEqual(asked.access, [], '--authorization-mode=AlwaysAllow asks nobody');
});

test('--authentication-token-webhook with --anonymous-auth=false: a request without credentials is 401', async (t) => {
  const { statusOf } = await open(t, ['--authentication-token-webhook', '--anonymous-auth=false'], { tokens: known });
  t.is(await statusOf('/pods'), 401);
  t.is(await statusOf('/pods', { token: 'good' }), 200);
});

test('--authentication-token-webhook-cache-ttl: one review per token within that time, whatever its result', async (t) => {
  const { statusOf, asked, clock } = await open(
    t,
    ['--authentication-token-webhook', '--authentication-token-webhook-cache-ttl=10s'],
    { tokens: known },
  );
  for (let round = 0; round < 3; round += 1) {
    t.is(await statusOf('/pods', { token: 'good' }), 200);
    t.is(await statusOf('/pods', { token: 'bad' }), 401);
  }
  t.deepEqual(asked.tokens, ['good', 'bad']);
  clock.advance(9_999);
  t.is(await statusOf('/pods', { token: 'good' }), 200);
  t.is(asked.tokens.length, 2);
  clock.advance(1);
  t.is(await statusOf('/pods', { token: 'good' }), 200);
  t.is(await statusOf('/pods', { token: 'bad' }), 401);
  t.is(asked.tokens.length, 4);
});

test('--authentication-token-webhook: concurrent requests with one token share one review', async (t) => {
  let answer: (status: TokenReview['status']) => void = () => {};
  const later = new Promise<TokenReview['status']>((resolve) => {
    answer = resolve;
  });
  const words = ['--authentication-token-webhook', '--authentication-token-webhook-cache-ttl=0s'];
  const { statusOf, asked } = await open(t, words, { tokens: () => later });
  const both = [statusOf('/pods', { token: 'good' }), statusOf('/healthz', { token: 'good' })];
  await until(() => asked.tokens.length > 0);
  // A third request with another token follows on its own connection, and waits as well.
  const third = statusOf('/pods', { token: 'other' });
  await until(() => asked.tokens.length === 2);
  answer(jane);
  t.deepEqual(await Promise.all([...both, third]), [200, 200, 200]);
  t.true(asked.tokens.length <= 3, 'with a time of 0 only those who wait together share');
});

test('a request whose client disconnects during a review is not served', async (t) => {
  let answer: (status: TokenReview['status']) => void = () => {};
  let served = 0;
  const { asked, url, statusOf } = await open(t, ['--authentication-token-webhook'], {
    tokens: (token) => (token === 'other' ? jane : new Promise((resolve) => (answer = resolve))),
    pods: () => {
      served += 1;
      return [];
    },
  });
  const headers = { Authorization: 'Bearer good' };
  const left = new Promise<void>((resolve) => {
    const outgoing = request(`${url}/pods`, { agent: false, rejectUnauthorized: false, headers });
    outgoing.on('error', () => resolve()).end();
    void until(() => asked.tokens.length > 0).then(() => outgoing.destroy(new Error('left')));
  });
  await left;
  // By the time a later connection is served, the server has seen the end of the earlier one.
  t.is(await statusOf('/healthz', { token: 'other' }), 200);
  answer(jane);
  t.is(await statusOf('/pods', { token: 'good' }), 200);
  t.is(served, 1);
});

test('a token review that fails is 401, is not cached, and the log never contains the token', async (t) => {
  let works = false;
  const { statusOf, asked, logger } = await open(t, ['--authentication-token-webhook'], {
    tokens: (token) => {
      if (!works) throw new Error(`cannot review ${token} now`);
      return known(token);
    },
  });
  t.is(await statusOf('/pods', { token: 'good' }), 401);
  works = true;
  t.is(await statusOf('/pods', { token: 'good' }), 200);
  t.is(asked.tokens.length, 2);
  t.is(logger.lines.length, 1);
  t.deepEqual(logger.lines[0]?.fields, { problem: 'cannot review (token) now' });
  const unsure = await open(t, ['--authentication-token-webhook'], {
    tokens: () => ({ user: {}, error: 'the backend is away' }),
  });
  for (const _ of [1, 2]) t.is(await unsure.statusOf('/pods', { token: 'good' }), 401);
  t.is(unsure.asked.tokens.length, 2, 'no answer is none');
});

test('--authorization-mode=Webhook: the review contains node, verb and subresource, and a 403 names them', async (t) => {
  const words = ['--authorization-mode=Webhook', '--authentication-token-webhook'];
  const { ask, statusOf, asked } = await open(t, words, {
    tokens: known,
    access: ({ user, resourceAttributes }) => ({
      allowed: user === 'jane' && resourceAttributes?.subresource !== 'proxy',
    }),
  });
  t.is(await statusOf('/stats/summary', { token: 'good' }), 200);
  t.deepEqual(asked.access[0], {
    user: 'jane',
    uid: '7',
    groups: ['dev'],
    extra: { team: ['red'] },
    resourceAttributes: { verb: 'get', version: 'v1', resource: 'nodes', name: 'n1', subresource: 'stats' },
  });
  t.deepEqual(await ask('/pods', { token: 'good' }), {
    status: 403,
    body: 'Forbidden (user=jane, verb=get, resource=nodes, subresource=proxy)\n',
  });
  t.deepEqual(await ask('/stats/summary'), {
    status: 403,
    body: 'Forbidden (user=system:anonymous, verb=get, resource=nodes, subresource=stats)\n',
  });
  t.deepEqual(asked.access.at(-1)?.groups, ['system:unauthenticated']);
  t.is(await statusOf('/nope', { token: 'good' }), 403, 'unauthorized clients do not learn which paths exist');
  t.is(await statusOf('/pods', { token: 'bad' }), 401);
});

const wants = [
  ['GET', '/stats', 'get', 'stats'],
  ['POST', '/stats/default/web/u1/main', 'create', 'stats'],
  ['GET', '/statsx', 'get', 'proxy'],
  ['GET', '/stats%2Fsummary', 'get', 'proxy'],
  ['GET', '//stats//summary', 'get', 'stats'],
  ['GET', '/pods/../stats', 'get', 'stats'],
  ['GET', '/%73tats/summary', 'get', 'stats'],
  ['GET', '/metrics/cadvisor', 'get', 'metrics'],
  ['GET', '/logs/', 'get', 'log'],
  ['GET', '/log', 'get', 'proxy'],
  ['HEAD', '/spec/', 'get', 'spec'],
  ['GET', '/pods', 'get', 'proxy'],
  ['GET', '/', 'get', 'proxy'],
  ['GET', '/containerLogs/a/b/c', 'get', 'proxy'],
  ['POST', '/exec/a/b/c', 'create', 'proxy'],
  ['POST', '/manifests', 'create', 'proxy'],
  ['PUT', '/manifests', 'update', 'proxy'],
  ['PATCH', '/pods', 'patch', 'proxy'],
  ['DELETE', '/manifests/a/b', 'delete', 'proxy'],
  ['OPTIONS', '/pods', 'options', 'proxy'],
] as const;

test('--authorization-mode=Webhook: the method determines the verb, and the first path segment the subresource', async (t) => {
  const words = ['--authorization-mode=Webhook', '--authorization-webhook-cache-unauthorized-ttl=0'];
  const { statusOf, asked } = await open(t, words, { access: () => ({ allowed: false }) });
  for (const [method, path, verb, subresource] of wants) {
    t.is(await statusOf(path, { method }), 403, path);
    const attributes = asked.access.at(-1)?.resourceAttributes;
    t.like(attributes, { verb, subresource, resource: 'nodes', name: 'n1' }, `${method} ${path}`);
  }
  t.is(asked.access.length, wants.length, 'with a time of 0 every request is asked about');
});

test('--authorization-webhook-cache-authorized-ttl and --authorization-webhook-cache-unauthorized-ttl: each for its results', async (t) => {
  const words = [
    '--authorization-mode=Webhook',
    '--authorization-webhook-cache-authorized-ttl=60s',
    '--authorization-webhook-cache-unauthorized-ttl=5s',
  ];
  const { statusOf, asked, clock } = await open(t, words, {
    access: ({ resourceAttributes }) => ({ allowed: resourceAttributes?.subresource === 'metrics' }),
  });
  const round = async () => [await statusOf('/metrics'), await statusOf('/pods'), await statusOf('/configz')];
  t.deepEqual(await round(), [200, 403, 403]);
  t.is(asked.access.length, 2, 'paths that mean the same share an answer');
  t.deepEqual(await round(), [200, 403, 403]);
  t.is(asked.access.length, 2);
  clock.advance(5_000);
  t.deepEqual(await round(), [200, 403, 403]);
  t.is(asked.access.length, 3, 'refusals are forgotten');
  clock.advance(55_000);
  t.deepEqual(await round(), [200, 403, 403]);
  t.is(asked.access.length, 5);
  await statusOf('/metrics', { method: 'POST' });
  t.is(asked.access.length, 6, 'another verb is another question');
});

test('--authorization-mode=Webhook: a review that fails is 500 and not cached', async (t) => {
  let works = false;
  const { ask, statusOf, asked, logger } = await open(t, ['--authorization-mode=Webhook'], {
    access: () => {
      if (!works) throw new Error('no API server');
      return { allowed: true };
    },
  });
  t.deepEqual(await ask('/pods'), {
    status: 500,
    body: 'Authorization error (user=system:anonymous, verb=get, resource=nodes, subresource=proxy)\n',
  });
  t.is(logger.lines.length, 1);
  works = true;
  t.is(await statusOf('/pods'), 200);
  t.is(asked.access.length, 2);
});

test('reviews require an API server, and cache times require reviews', (t) => {
  const resolve = (words: readonly string[], fileExists = false) =>
    resolveConfig(parseOptions(words), { hostname: () => 'n1', fileExists: () => fileExists });
  for (const word of ['--authentication-token-webhook', '--authorization-mode=Webhook']) {
    t.throws(() => resolve([word]), {
      instanceOf: UsageError,
      message: new RegExp(`^${word} needs --clusterconfig, `),
    });
    t.throws(() => resolve([word, '--clusterconfig='], true), { message: /needs --clusterconfig/ });
    t.notThrows(() => resolve([word], true), 'the file of the default exists');
    t.notThrows(() => resolve([word, '--enable-server=false']), 'no request is accepted');
  }
  t.deepEqual(
    resolve([
      '--authentication-token-webhook-cache-ttl=1m',
      '--authorization-webhook-cache-authorized-ttl=1m',
      '--authorization-webhook-cache-unauthorized-ttl=1m',
    ]).warnings,
    [
      '--authentication-token-webhook-cache-ttl has no effect without --authentication-token-webhook',
      '--authorization-webhook-cache-authorized-ttl has no effect without --authorization-mode=Webhook',
      '--authorization-webhook-cache-unauthorized-ttl has no effect without --authorization-mode=Webhook',
    ],
  );
});
