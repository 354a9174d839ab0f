import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AccessAttributes, AccessDecision, Authorizer, UserInfo } from '@keelson/core';
import { UsageError } from '@keelson/core/internal';
import { FakeClock, silentLogger } from '@keelson/core/runtime';
import test, { type ExecutionContext } from 'ava';
import { alwaysAllow, authorizerChain } from '../../src/authorization/chain.ts';
import { policyAuthorizer, readPolicyFile } from '../../src/authorization/policy-file.ts';
import { WebhookAuthorizer, type WebhookAuthorizerOptions } from '../../src/authorization/webhook-authorizer.ts';

const jane: UserInfo = { name: 'jane', groups: ['devs', 'system:authenticated'] };
const get: AccessAttributes = {
  ...{ verb: 'get', isResourceRequest: true, apiGroup: 'apps', apiVersion: 'v1', namespace: 'a' },
  ...{ resource: 'deployments', subresource: '', name: 'x', path: '' },
};
const path = (url: string, verb = 'get'): AccessAttributes => ({
  ...{ verb, isResourceRequest: false, apiGroup: '', apiVersion: '', namespace: '', resource: '' },
  ...{ subresource: '', name: '', path: url },
});

const member = (decision: AccessDecision, asked: string[] = [], name = ''): Authorizer => ({
  authorize: () => {
    asked.push(name);
    return decision;
  },
  rulesFor: () => ({ resourceRules: [], nonResourceRules: [], incomplete: name === 'incomplete' }),
});
const later = (authorizer: Authorizer): Authorizer => ({
  ...authorizer,
  authorize: async (...question) => authorizer.authorize(...question),
});
const allow = { allowed: true, reason: 'because' };
const deny = { allowed: false, denied: true, reason: 'never' };

test('the first authorizer with an opinion decides, the following ones are not asked', async (t) => {
  for (const wrap of [(one: Authorizer) => one, later]) {
    const asked: string[] = [];
    const chain = (...decisions: AccessDecision[]) =>
      authorizerChain(decisions.map((decision, i) => wrap(member(decision, asked, String(i))))).authorize(get, jane);
    t.deepEqual(await chain({ allowed: false }, allow, deny), allow);
    t.deepEqual(asked.splice(0), ['0', '1']);
    t.deepEqual(await chain(deny, allow), deny);
    t.deepEqual(asked.splice(0), ['0']);
    t.deepEqual(await chain({ allowed: false, reason: 'one' }, { allowed: false }, { allowed: false, reason: 'two' }), {
      allowed: false,
      reason: 'one\ntwo',
    });
    t.deepEqual(await chain(), { allowed: false });
  }
});

test('decisions of synchronous authorizers are synchronous, and masters are always allowed', async (t) => {
  t.deepEqual(authorizerChain([member({ allowed: false }), member(allow)]).authorize(get, jane), allow);
  const master = { name: 'ann', groups: ['system:masters'] };
  const denying = authorizerChain([member(deny)]);
  t.deepEqual(denying.authorize(get, master), { allowed: true });
  t.deepEqual((await denying.rulesFor(master, 'a')).resourceRules[0]?.verbs, ['*']);
  t.true((await authorizerChain([member(allow), member(allow, [], 'incomplete')]).rulesFor(jane, 'a')).incomplete);
  t.deepEqual(alwaysAllow.authorize(get, jane), { allowed: true });
});

const line = (spec: object) =>
  JSON.stringify({ apiVersion: 'abac.authorization.kubernetes.io/v1beta1', kind: 'Policy', spec });

const policies = [
  '# comment',
  '',
  line({ user: 'jane', namespace: 'a', resource: 'deployments', apiGroup: 'apps' }),
  line({ group: 'devs', namespace: '*', resource: '*', apiGroup: '*', readonly: true }),
  line({ user: '*', nonResourcePath: '/logs/*', readonly: true }),
  line({ user: 'bob', group: 'ops', namespace: '*', resource: 'pods', apiGroup: '' }),
].join('\n');

const decisions: readonly (readonly [title: string, attributes: AccessAttributes, user: UserInfo, allowed: boolean])[] =
  [
    ['a resource in its namespace', { ...get, verb: 'delete' }, jane, true],
    ['a subresource of the resource', { ...get, verb: 'update', subresource: 'scale' }, jane, true],
    ['another namespace', { ...get, verb: 'delete', namespace: 'b' }, jane, false],
    ['another group', { ...get, verb: 'delete', apiGroup: '' }, jane, false],
    ['reading anything by a group', { ...get, namespace: 'b', resource: 'x' }, jane, true],
    ['writing by a read-only policy', { ...get, verb: 'create', namespace: 'b' }, jane, false],
    ['a path for every authenticated user', path('/logs/today'), { name: 'x', groups: ['system:authenticated'] }, true],
    ['a path for an anonymous user', path('/logs/today'), { name: 'x', groups: ['system:unauthenticated'] }, false],
    ['another path', path('/metrics'), jane, false],
    ['a user without the group', { ...get, resource: 'pods', apiGroup: '' }, { name: 'bob', groups: [] }, false],
    ['a user with the group', { ...get, resource: 'pods', apiGroup: '' }, { name: 'bob', groups: ['ops'] }, true],
  ];

test('a policy file allows what one of its lines allows', async (t) => {
  const authorizer = policyAuthorizer(policies, 'file');
  for (const [title, attributes, user, allowed] of decisions)
    t.is((await authorizer.authorize(attributes, user)).allowed, allowed, title);
  const rules = await authorizer.rulesFor(jane, 'a');
  t.deepEqual(rules.resourceRules, [
    { verbs: ['*'], apiGroups: ['apps'], resources: ['deployments'] },
    { verbs: ['get', 'list', 'watch'], apiGroups: ['*'], resources: ['*'] },
  ]);
  t.deepEqual(rules.nonResourceRules, [{ verbs: ['get', 'list', 'watch'], nonResourceURLs: ['/logs/*'] }]);
});

const mistakes: readonly (readonly [text: string, message: RegExp])[] = [
  ['', /^--f contains no policy; a line is an object like \{/],
  ['# x\n{', /^--f, line 2: not valid JSON: /],
  ['[]', /^--f, line 1: must be an object such as \{/],
  ['{"user":"jane"}', /^--f, line 1: unknown field user; the fields are apiVersion, kind, spec$/],
  ['{"kind":"Policy"}', /^--f, line 1: apiVersion must be abac\.authorization\.kubernetes\.io\/v1beta1$/],
  [line({ user: 'x', resource: 'y', verbs: [] }), /^--f, line 1, spec: unknown field verbs; /],
  [line({ user: 1, resource: 'y' }), /^--f, line 1: spec\.user must be a text$/],
  [line({ user: 'x', resource: 'y', readonly: 'yes' }), /^--f, line 1: spec\.readonly must be true or false$/],
  [line({ resource: 'y' }), /^--f, line 1: spec needs a user or a group$/],
  [line({ user: 'x' }), /^--f, line 1: spec needs a resource or a nonResourcePath$/],
];

test('a mistake in a policy file names the line', async (t) => {
  for (const [text, message] of mistakes)
    t.throws(() => policyAuthorizer(text, '--f'), { instanceOf: UsageError, message }, text);
  await t.throwsAsync(readPolicyFile('/does/not/exist', '--f'), {
    message: /^--f \/does\/not\/exist cannot be read: /,
  });
});

type Reply = (review: { spec: Record<string, unknown> }, response: ServerResponse) => void;

/** A webhook on a real server; `reviews` are those it has received. */
async function webhook(t: ExecutionContext, reply: Reply, options: Partial<WebhookAuthorizerOptions> = {}) {
  const reviews: { spec: Record<string, unknown>; authorization: string | undefined; url: string | undefined }[] = [];
  const server = createServer((request: IncomingMessage, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
    request.on('end', () => {
      const review = JSON.parse(text) as { spec: Record<string, unknown> };
      reviews.push({ ...review, authorization: request.headers.authorization, url: request.url });
      reply(review, response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const folder = await mkdtemp(join(tmpdir(), 'keelson-webhook-'));
  const kubeconfig = join(folder, 'webhook.yaml');
  await writeFile(
    kubeconfig,
    `clusters: [{name: w, cluster: {server: "http://127.0.0.1:${(server.address() as AddressInfo).port}/check"}}]
users: [{name: u, user: {token: secret}}]
contexts: [{name: c, context: {cluster: w, user: u}}]
current-context: c
`,
  );
  const clock = new FakeClock();
  const authorizer = await WebhookAuthorizer.create({ kubeconfig, ...options }, { clock, logger: silentLogger });
  t.teardown(async () => {
    authorizer.close();
    server.closeAllConnections();
    server.close();
    await rm(folder, { recursive: true });
  });
  return { authorizer, reviews, clock };
}

const answer =
  (status: object): Reply =>
  (review, response) =>
    void response.end(JSON.stringify({ ...review, status }));

test('a webhook receives the review and its answer is the decision', async (t) => {
  const { authorizer, reviews } = await webhook(t, answer({ allowed: true, reason: 'on duty' }));
  const user = { ...jane, uid: '7', extra: { team: ['x'] } };
  t.deepEqual(await authorizer.authorize(get, user), { allowed: true, reason: 'on duty' });
  t.deepEqual(await authorizer.authorize(path('/metrics'), jane), { allowed: true, reason: 'on duty' });
  const { name: _name, groups, ...rest } = user;
  t.deepEqual(reviews[0]?.spec, {
    resourceAttributes: {
      ...{ namespace: 'a', verb: 'get', group: 'apps', version: 'v1', resource: 'deployments', name: 'x' },
    },
    user: 'jane',
    groups,
    ...rest,
  });
  t.deepEqual(reviews[1]?.spec, { nonResourceAttributes: { path: '/metrics', verb: 'get' }, user: 'jane', groups });
  t.is(reviews[0]?.authorization, 'Bearer secret');
  t.is(reviews[0]?.url, '/check');
  t.true(authorizer.rulesFor().incomplete);
});

test('answers are used again, those that allow for longer, and one review serves concurrent requests', async (t) => {
  let status: object = { allowed: true };
  const { authorizer, reviews, clock } = await webhook(t, (...call) => answer(status)(...call), { cacheEntries: 2 });
  await Promise.all(Array.from({ length: 10 }, async () => authorizer.authorize(get, jane)));
  t.is(reviews.length, 1);
  t.deepEqual(authorizer.authorize(get, jane), { allowed: true }, 'a cached answer is synchronous');
  clock.advance(300_001);
  status = { allowed: false, denied: true, reason: 'off duty' };
  t.deepEqual(await authorizer.authorize(get, jane), { allowed: false, denied: true, reason: 'off duty' });
  clock.advance(29_000);
  await authorizer.authorize(get, jane);
  t.is(reviews.length, 2);
  clock.advance(2_000);
  await authorizer.authorize(get, jane);
  t.is(reviews.length, 3);
  for (const name of ['y', 'z']) await authorizer.authorize({ ...get, name }, jane);
  await authorizer.authorize(get, jane);
  t.is(reviews.length, 6, 'the oldest of more answers than the limit was removed');
});

const failures: readonly (readonly [title: string, reply: Reply])[] = [
  ['an error status', (_review, response) => void response.writeHead(500).end('{}')],
  ['no JSON', (_review, response) => void response.end('no')],
  ['no status', (review, response) => void response.end(JSON.stringify(review))],
  ['a contradiction', answer({ allowed: true, denied: true })],
  ['a closed connection', (_review, response) => void response.destroy()],
  ['no answer in time', () => {}],
];

for (const [title, reply] of failures) {
  test(`a webhook with ${title} decides nothing, or denies when the options state so, and is asked again`, async (t) => {
    const ask = async ({ authorizer, reviews, clock }: Awaited<ReturnType<typeof webhook>>) => {
      const before = reviews.length;
      const decision = authorizer.authorize(get, jane);
      while (reviews.length === before) await new Promise((resolve) => setImmediate(resolve));
      if (title === 'no answer in time') clock.advance(3_000);
      return decision;
    };
    const open = await webhook(t, reply);
    t.deepEqual(await ask(open), { allowed: false, reason: 'webhook unavailable' });
    await ask(open);
    t.is(open.reviews.length, 2);
    t.true((await ask(await webhook(t, reply, { failurePolicy: 'Deny' }))).denied);
  });
}

test('a kubeconfig that cannot be used is reported in one sentence', async (t) => {
  const context = { clock: new FakeClock(), logger: silentLogger };
  await t.throwsAsync(WebhookAuthorizer.create({ kubeconfig: '/does/not/exist' }, context), {
    instanceOf: UsageError,
    message: /^--authorization-webhook-config-file \/does\/not\/exist: /,
  });
});
