import {
  type AccessAttributes,
  type Authorizer,
  internalContext,
  type KindDefinition,
  type KubeObject,
  type UserInfo,
  type VirtualCall,
} from '@keelson/core';
import { decoderOf } from '@keelson/core/internal';
import test from 'ava';
import {
  AuthenticationV1beta1TokenReview,
  AuthorizationV1beta1LocalSubjectAccessReview,
  AuthorizationV1beta1SelfSubjectAccessReview,
  AuthorizationV1beta1SelfSubjectRulesReview,
  AuthorizationV1beta1SubjectAccessReview,
  builtinKinds,
  LocalSubjectAccessReview,
  SelfSubjectAccessReview,
  SelfSubjectReview,
  SelfSubjectRulesReview,
  SubjectAccessReview,
  TokenReview,
} from '../src/index.ts';
import { causesOf } from './helpers/writes.ts';

const jane: UserInfo = {
  name: 'jane',
  uid: '7',
  groups: ['dev', 'system:authenticated'],
  extra: { team: ['red', 'blue'] },
};

interface Asked {
  readonly attributes: AccessAttributes;
  readonly user: UserInfo;
}

interface Answer extends KubeObject {
  readonly status?: Record<string, unknown>;
}

/** Sends a review as the registry would; gives causes when it is refused. */
async function ask(
  kind: KindDefinition,
  manifest: Record<string, unknown>,
  options: {
    namespace?: string;
    authorizer?: Partial<Authorizer>;
    authenticateToken?: VirtualCall['authenticateToken'];
  } = {},
) {
  const asked: Asked[] = [];
  const authorizer: Authorizer = {
    authorize: (attributes, user) => {
      asked.push({ attributes, user });
      return { allowed: attributes.verb === 'get', reason: 'because' };
    },
    rulesFor: () => ({ resourceRules: [], nonResourceRules: [], incomplete: true, evaluationError: 'too hard' }),
    ...options.authorizer,
  };
  const { value, errors } = decoderOf(kind.schema)({
    apiVersion: kind.apiVersion,
    kind: kind.kind,
    metadata: options.namespace === undefined ? {} : { namespace: options.namespace },
    ...manifest,
  });
  const causes = causesOf(errors.length > 0 ? errors : (kind.strategy.validate?.(value) ?? []));
  const call: VirtualCall = {
    dryRun: false,
    createSubresource: () => Promise.reject(new Error('reviews call no subresources')),
    context: internalContext({ user: jane }),
    namespace: options.namespace,
    now: new Date('2026-01-02T12:00:00Z'),
    authorizer,
    authenticateToken: options.authenticateToken,
  };
  const answer = causes.length > 0 ? undefined : ((await kind.virtual?.create?.(value, call)) as Answer);
  return { answer, causes, asked };
}

const pods = { verb: 'get', resource: 'pods', namespace: 'team' };

for (const [kind, groups] of [
  [SubjectAccessReview, 'groups'],
  [AuthorizationV1beta1SubjectAccessReview, 'group'],
] as const) {
  test(`${kind.apiVersion} SubjectAccessReview is decided for the user in its spec`, async (t) => {
    const { answer, asked } = await ask(kind, {
      spec: {
        resourceAttributes: { ...pods, group: 'g', version: 'v', subresource: 'log', name: 'n' },
        user: 'bob',
        [groups]: ['ops'],
        uid: '9',
        extra: { a: ['b'] },
      },
    });
    t.deepEqual(answer?.status, { allowed: true, reason: 'because' });
    t.deepEqual(asked, [
      {
        attributes: {
          verb: 'get',
          isResourceRequest: true,
          apiGroup: 'g',
          apiVersion: 'v',
          namespace: 'team',
          resource: 'pods',
          subresource: 'log',
          name: 'n',
          path: '',
        },
        user: { name: 'bob', uid: '9', groups: ['ops'], extra: { a: ['b'] } },
      },
    ]);
    const path = await ask(kind, { spec: { nonResourceAttributes: { verb: 'post', path: '/x' }, [groups]: ['ops'] } });
    t.like(path.asked[0], {
      attributes: { isResourceRequest: false, path: '/x', verb: 'post' },
      user: { name: '', groups: ['ops'] },
    });
    t.like(path.answer?.status, { allowed: false });
  });
}

test('denied is set only for an explicit denial, and never together with allowed', async (t) => {
  const decided = async (decision: { allowed: boolean; denied?: boolean }) => {
    const manifest = { spec: { user: 'bob', resourceAttributes: pods } };
    return (await ask(SubjectAccessReview, manifest, { authorizer: { authorize: () => decision } })).answer?.status;
  };
  t.deepEqual(await decided({ allowed: false }), { allowed: false });
  t.deepEqual(await decided({ allowed: false, denied: true }), { allowed: false, denied: true });
  t.deepEqual(await decided({ allowed: true, denied: true }), { allowed: true });
});

for (const kind of [
  SubjectAccessReview,
  LocalSubjectAccessReview,
  SelfSubjectAccessReview,
] as readonly KindDefinition[]) {
  test(`${kind.kind} contains exactly one of resource and non-resource attributes`, async (t) => {
    const options = kind === LocalSubjectAccessReview ? { namespace: 'team' } : {};
    const whom = kind === SelfSubjectAccessReview ? {} : { user: 'bob' };
    const causes = async (spec: Record<string, unknown>) =>
      (await ask(kind, { spec: { ...whom, ...spec } }, options)).causes;
    t.deepEqual(await causes({}), ['spec.resourceAttributes Invalid']);
    t.true(
      (await causes({ resourceAttributes: pods, nonResourceAttributes: { path: '/' } })).includes(
        'spec.nonResourceAttributes Invalid',
      ),
    );
    t.deepEqual(await causes({ resourceAttributes: pods }), []);
  });
}

for (const kind of [SubjectAccessReview, SelfSubjectAccessReview] as readonly KindDefinition[]) {
  test(`the selectors of a ${kind.kind} are checked, and its field selector is that of the request`, async (t) => {
    const whom = kind === SelfSubjectAccessReview ? {} : { user: 'bob' };
    const asked = (selectors: Record<string, unknown>) =>
      ask(kind, { spec: { ...whom, resourceAttributes: { ...pods, ...selectors } } });
    const selector = async (requirements: unknown[]) =>
      (await asked({ fieldSelector: { requirements } })).asked[0]?.attributes.fieldSelector;
    const onNode = { key: 'spec.nodeName', operator: 'In', values: ['n,1'] };
    t.is(await selector([onNode, { key: 'a', operator: 'NotIn', values: ['b'] }]), 'a!=b,spec.nodeName=n\\,1');
    const unusable = [
      { key: 'a', operator: 'In', values: ['b', 'c'] },
      { key: 'a', operator: 'Exists' },
      { key: 'a', operator: 'Newer' },
      { key: 'spec.nodeName=n1,x', operator: 'In', values: ['y'] },
    ];
    t.is(await selector(unusable), '', 'left out: the request is broader');
    const raw = await asked({ fieldSelector: { rawSelector: 'spec.nodeName=n1' } });
    t.is(raw.asked[0]?.attributes.fieldSelector, 'spec.nodeName=n1');
    const labels = { requirements: [{ key: 'tier', operator: 'In', values: ['a'] }] };
    t.deepEqual((await asked({ labelSelector: labels })).causes, []);

    const at = 'spec.resourceAttributes';
    const wrong: readonly (readonly [Record<string, unknown>, string])[] = [
      [{ fieldSelector: {} }, `${at}.fieldSelector.requirements Required`],
      [{ labelSelector: {} }, `${at}.labelSelector.requirements Required`],
      [{ fieldSelector: { rawSelector: 'a=b', requirements: [onNode] } }, `${at}.fieldSelector.rawSelector Invalid`],
      [{ labelSelector: { ...labels, rawSelector: 'a=b' } }, `${at}.labelSelector.rawSelector Invalid`],
      [
        { fieldSelector: { requirements: [{ key: '', operator: 'Exists' }] } },
        `${at}.fieldSelector.requirements[0].key Required`,
      ],
      [
        { fieldSelector: { requirements: [onNode, { key: 'a', operator: 'In' }] } },
        `${at}.fieldSelector.requirements[1].values Required`,
      ],
      [
        { fieldSelector: { requirements: [{ ...onNode, operator: 'Exists' }] } },
        `${at}.fieldSelector.requirements[0].values Forbidden`,
      ],
      [
        { labelSelector: { requirements: [{ key: 'no key', operator: 'Exists' }] } },
        `${at}.labelSelector.requirements[0].key Invalid`,
      ],
    ];
    for (const [selectors, cause] of wrong) t.deepEqual((await asked(selectors)).causes, [cause], cause);
    const newer = { requirements: [{ key: 'a', operator: 'Newer' }] };
    t.deepEqual((await asked({ labelSelector: newer, fieldSelector: newer })).causes, [], 'of a newer server');
  });
}

test('a SubjectAccessReview requires a user or groups, and reviews have no metadata', async (t) => {
  t.deepEqual((await ask(SubjectAccessReview, { spec: { resourceAttributes: pods } })).causes, ['spec.user Invalid']);
  const spec = { user: 'bob', resourceAttributes: pods };
  t.deepEqual((await ask(SubjectAccessReview, { metadata: { name: 'x' }, spec })).causes, ['metadata Invalid']);
  t.deepEqual((await ask(SubjectAccessReview, { metadata: { creationTimestamp: null, labels: {} }, spec })).causes, []);
});

for (const kind of [
  LocalSubjectAccessReview,
  AuthorizationV1beta1LocalSubjectAccessReview,
] as readonly KindDefinition[]) {
  test(`${kind.apiVersion} LocalSubjectAccessReview is limited to its own namespace`, async (t) => {
    const spec = { user: 'bob', resourceAttributes: pods };
    t.like(await ask(kind, { spec }, { namespace: 'team' }), { causes: [], answer: { status: { allowed: true } } });
    const elsewhere = await ask(kind, { spec }, { namespace: 'other' });
    t.deepEqual(elsewhere.causes, ['spec.resourceAttributes.namespace Invalid']);
    const path = await ask(
      kind,
      { spec: { user: 'bob', nonResourceAttributes: { path: '/', verb: 'get' } } },
      { namespace: 'team' },
    );
    t.deepEqual(path.causes, ['spec.nonResourceAttributes Invalid']);
  });
}

for (const kind of [
  SelfSubjectAccessReview,
  AuthorizationV1beta1SelfSubjectAccessReview,
] as readonly KindDefinition[]) {
  test(`${kind.apiVersion} SelfSubjectAccessReview is decided for the caller`, async (t) => {
    const { asked, answer } = await ask(kind, { spec: { resourceAttributes: { verb: '*', resource: '*' } } });
    t.is(asked[0]?.user, jane);
    t.deepEqual(answer?.status, { allowed: false, reason: 'because' });
  });
}

for (const kind of [SelfSubjectRulesReview, AuthorizationV1beta1SelfSubjectRulesReview] as readonly KindDefinition[]) {
  test(`${kind.apiVersion} SelfSubjectRulesReview lists the permissions of the caller`, async (t) => {
    const rules = {
      resourceRules: [
        { verbs: ['get'], apiGroups: [''], resources: ['pods'] },
        { verbs: ['*'], apiGroups: ['*'], resources: ['*'], resourceNames: ['a'] },
      ],
      nonResourceRules: [{ verbs: ['get'], nonResourceURLs: ['/healthz'] }],
      incomplete: false,
    };
    const full = await ask(kind, { spec: { namespace: 'team' } }, { authorizer: { rulesFor: () => rules } });
    t.deepEqual(full.answer?.status, rules);
    const empty = await ask(kind, { spec: { namespace: 'team' } });
    t.deepEqual(empty.answer?.status, {
      resourceRules: [],
      nonResourceRules: [],
      incomplete: true,
      evaluationError: 'too hard',
    });
    await t.throwsAsync(ask(kind, { spec: {} }), { message: /no namespace/ });
  });
}

for (const kind of [TokenReview, AuthenticationV1beta1TokenReview] as readonly KindDefinition[]) {
  test(`${kind.apiVersion} TokenReview identifies the user of a token`, async (t) => {
    const spec = { token: 'secret', audiences: ['a', 'b'] };
    const known = await ask(
      kind,
      { spec },
      {
        authenticateToken: async (token, audiences) => ({
          user: { ...jane, name: token },
          audiences: audiences.slice(1),
        }),
      },
    );
    t.deepEqual(known.answer?.status, {
      authenticated: true,
      user: { username: 'secret', uid: '7', groups: ['dev', 'system:authenticated'], extra: { team: ['red', 'blue'] } },
      audiences: ['b'],
    });
    const unknown = { user: {}, error: 'invalid bearer token' };
    t.deepEqual((await ask(kind, { spec }, { authenticateToken: async () => undefined })).answer?.status, unknown);
    t.deepEqual((await ask(kind, { spec })).answer?.status, unknown);
    await t.throwsAsync(ask(kind, { spec: {} }), { message: /token is required/ });
  });
}

test('SelfSubjectReview identifies the caller', async (t) => {
  const { answer } = await ask(SelfSubjectReview, {});
  t.deepEqual(answer?.metadata, { creationTimestamp: '2026-01-02T12:00:00Z' });
  t.deepEqual(answer?.status, {
    userInfo: { username: 'jane', uid: '7', groups: ['dev', 'system:authenticated'], extra: { team: ['red', 'blue'] } },
  });
});

test('every response matches the schema of its kind', async (t) => {
  const reviews = builtinKinds.filter(({ virtual, group }) => virtual && group !== '');
  t.is(reviews.length, 11);
  for (const kind of reviews) {
    const spec = { token: 't', user: 'bob', namespace: 'team', resourceAttributes: pods };
    const { answer } = await ask(kind, { spec }, kind.scope === 'Namespaced' ? { namespace: 'team' } : {});
    const { value, unknownFields, errors } = decoderOf(kind.schema)(answer);
    t.deepEqual([unknownFields, errors], [[], []], kind.kind);
    t.deepEqual(JSON.parse(JSON.stringify(value)), JSON.parse(JSON.stringify(answer)), kind.kind);
  }
});
