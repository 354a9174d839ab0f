import type { UserInfo } from '@keelson/core';
import type { RequestAttributes } from '@keelson/core/internal';
import test, { type ExecutionContext } from 'ava';
import { configMap, FakeRegistry, stored } from './support/fake-registry.ts';
import { call, serve } from './support/serve.ts';

const path = '/api/v1/namespaces/default/configmaps/a';
const known: UserInfo = { name: 'root', groups: ['admins'] };

interface Asked {
  readonly attributes: RequestAttributes;
  readonly user: UserInfo;
}

/** A server that allows everything but what `refuse` matches, and records each authorization. */
async function started(t: ExecutionContext, refuse: (asked: Asked) => boolean = () => false) {
  const registry = new FakeRegistry();
  registry.service(configMap).objects.set('a', stored(configMap, 'a', 5));
  const asked: Asked[] = [];
  const { port } = await serve(t, {
    registry,
    authenticate: () => known,
    authorize: async (attributes, user) => {
      asked.push({ attributes, user });
      return refuse({ attributes, user }) ? { allowed: false, reason: 'by rule' } : true;
    },
  });
  const get = (headers: Readonly<Record<string, string | string[]>>) => call(port, 'GET', path, { headers });
  return {
    get,
    asked,
    words: () =>
      asked.map(
        ({ attributes: a, user }) =>
          `${user.name}: ${a.verb} ${a.apiGroup}/${a.resource}/${a.subresource} ${a.namespace}/${a.name}`,
      ),
  };
}

test('a request without impersonation headers keeps its user, and only the request itself is authorized', async (t) => {
  const { get, asked } = await started(t);
  t.is((await get({ 'if-none-match': '"x"', impersonat: 'x' })).status, 200);
  t.is(asked.length, 1);
  t.is(asked[0]?.user, known);
});

test('every attribute of the impersonated user is authorized, and the request runs as that user alone', async (t) => {
  const { get, asked, words } = await started(t);
  const reply = await get({
    'Impersonate-User': 'jane',
    'Impersonate-Group': ['dev', 'ops'],
    'Impersonate-Uid': '77',
    'Impersonate-Extra-Team%2fcolor': ['red', 'blue'],
  });
  t.is(reply.status, 200);
  t.deepEqual(words(), [
    'root: impersonate /users/ /jane',
    'root: impersonate /groups/ /dev',
    'root: impersonate /groups/ /ops',
    'root: impersonate authentication.k8s.io/uids/ /77',
    'root: impersonate authentication.k8s.io/userextras/team/color /red',
    'root: impersonate authentication.k8s.io/userextras/team/color /blue',
    'jane: get /configmaps/ default/a',
  ]);
  t.deepEqual(asked.at(-1)?.user, {
    name: 'jane',
    uid: '77',
    groups: ['dev', 'ops', 'system:authenticated'],
    extra: { 'team/color': ['red', 'blue'] },
  });
});

const refusals: readonly (readonly [resource: string, text: RegExp])[] = [
  [
    'users',
    /^users "jane" is forbidden: User "root" cannot impersonate resource "users" in API group "" at the cluster scope: by rule$/,
  ],
  ['groups', /^groups "dev" is forbidden: User "root" cannot impersonate resource "groups"/],
  ['uids', /^uids\.authentication\.k8s\.io "77" is forbidden/],
  ['userextras', /cannot impersonate resource "userextras\/team" in API group "authentication\.k8s\.io"/],
  ['configmaps', /User "jane" cannot get resource "configmaps"/],
];
for (const [resource, text] of refusals) {
  test(`a request is 403 when access to ${resource} is denied`, async (t) => {
    const { get } = await started(t, ({ attributes }) => attributes.resource === resource);
    const reply = await get({
      'impersonate-user': 'jane',
      'impersonate-group': 'dev',
      'impersonate-uid': '77',
      'impersonate-extra-team': 'red',
    });
    t.is(reply.status, 403);
    t.regex(reply.json.message, text);
  });
}

test('service accounts are authorized as service accounts and get their groups', async (t) => {
  const { get, asked, words } = await started(t);
  t.is((await get({ 'impersonate-user': 'system:serviceaccount:team:robot' })).status, 200);
  t.is(words()[0], 'root: impersonate /serviceaccounts/ team/robot');
  t.deepEqual(asked.at(-1)?.user.groups, [
    'system:serviceaccounts',
    'system:serviceaccounts:team',
    'system:authenticated',
  ]);
});

const groups: readonly (readonly [user: string, asked: readonly string[], got: readonly string[]])[] = [
  ['jane', [], ['system:authenticated']],
  ['jane', ['system:authenticated', 'a'], ['system:authenticated', 'a']],
  ['jane', ['system:unauthenticated'], ['system:unauthenticated']],
  ['system:anonymous', [], ['system:unauthenticated']],
  ['system:serviceaccount:team:robot', ['a'], ['a', 'system:authenticated']],
];
for (const [user, wanted, got] of groups) {
  test(`${user} with the groups [${wanted.join(' ')}] has [${got.join(' ')}]`, async (t) => {
    const { get, asked } = await started(t);
    await get({ 'impersonate-user': user, ...(wanted.length > 0 ? { 'impersonate-group': [...wanted] } : {}) });
    t.deepEqual(asked.at(-1)?.user.groups, got);
  });
}

for (const header of ['impersonate-group', 'impersonate-uid', 'impersonate-extra-team']) {
  test(`${header} without a user is rejected with 400`, async (t) => {
    const { get, asked } = await started(t);
    const reply = await get({ [header]: 'x' });
    t.like(reply.json, { code: 400, reason: 'BadRequest' });
    t.regex(reply.json.message, /without impersonating a user/);
    t.deepEqual(asked, []);
  });
}

test('an empty user or uid is as none', async (t) => {
  const { get, asked } = await started(t);
  t.is((await get({ 'Impersonate-User': '', 'Impersonate-Uid': ' ' })).status, 200);
  t.is(asked.length, 1);
  t.is(asked[0]?.user, known);
  await get({ 'impersonate-user': 'jane', 'Impersonate-Uid': '' });
  t.deepEqual(asked.at(-1)?.user, { name: 'jane', groups: ['system:authenticated'] });
});

const refused: readonly (readonly [headers: Record<string, string | string[]>, message: string])[] = [
  [{ 'Impersonate-Foo': 'x' }, 'the header "Impersonate-Foo" is not supported'],
  [{ 'impersonate-user': 'jane', 'impersonate-groups': 'x' }, 'the header "impersonate-groups" is not supported'],
  [
    { 'Impersonate-User': ' ', 'impersonate-group': 'x' },
    'a group, uid or extra field was requested without impersonating a user',
  ],
  [{ 'Impersonate-User': ['jane', 'root'] }, 'the header "Impersonate-User" was sent more than once'],
];
for (const [headers, message] of refused) {
  test(`${JSON.stringify(headers)} is rejected with 400, and nothing is executed as the sender`, async (t) => {
    const { get, asked } = await started(t);
    t.like((await get(headers)).json, { kind: 'Status', code: 400, reason: 'BadRequest', message });
    t.deepEqual(asked, []);
  });
}

test('names beyond ASCII are decoded, and keys with invalid percent-encoding are kept as they are', async (t) => {
  const { get, asked } = await started(t);
  const utf8 = Buffer.from('jürgen').toString('latin1');
  await get({ 'impersonate-user': utf8, 'impersonate-extra-a%zz': 'b', 'impersonate-extra-__proto__': 'c' });
  const user = asked.at(-1)?.user;
  t.is(user?.name, 'jürgen');
  t.deepEqual(Object.entries(user?.extra ?? {}), [
    ['a%zz', ['b']],
    ['__proto__', ['c']],
  ]);
});
