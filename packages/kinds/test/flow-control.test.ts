import test from 'ava';
import { defaultFlowSchemas, defaultPriorityLevels, FlowSchema, PriorityLevelConfiguration } from '../src/index.ts';
import { create, row, updateStatus } from './helpers/writes.ts';

const apiVersion = 'flowcontrol.apiserver.k8s.io/v1';
const group = { kind: 'Group', group: { name: 'system:authenticated' } };
const resourceRule = { verbs: ['list'], apiGroups: [''], resources: ['pods'], namespaces: ['*'] };
const rule = { subjects: [group], resourceRules: [resourceRule] };

function schema(spec: Record<string, unknown> = {}, name = 'own') {
  return {
    apiVersion,
    kind: 'FlowSchema',
    metadata: { name },
    spec: { priorityLevelConfiguration: { name: 'system' }, rules: [rule], ...spec },
  };
}

function level(limited: Record<string, unknown> | undefined, spec: Record<string, unknown> = {}, name = 'own') {
  return {
    apiVersion,
    kind: 'PriorityLevelConfiguration',
    metadata: { name },
    spec: { type: 'Limited', ...(limited ? { limited } : {}), ...spec },
  };
}

const reject = { limitResponse: { type: 'Reject' } };
const queue = (queuing: Record<string, unknown> | undefined) => ({ limitResponse: { type: 'Queue', queuing } });

test('the default objects are valid and have no defaults to add', (t) => {
  for (const object of defaultFlowSchemas) {
    const { messages, object: created } = create(FlowSchema, structuredClone(object));
    t.deepEqual(messages, [], object.metadata?.name);
    t.deepEqual(created.spec, object.spec);
  }
  for (const object of defaultPriorityLevels) {
    const { messages, object: created } = create(PriorityLevelConfiguration, structuredClone(object));
    t.deepEqual(messages, [], object.metadata?.name);
    t.deepEqual(created.spec, object.spec);
  }
});

test('defaults of flow schemas and levels, and their rows', (t) => {
  const { object } = create(FlowSchema, schema());
  t.is(object.spec.matchingPrecedence, 1000);
  const shown = { PriorityLevel: 'system', MatchingPrecedence: 1000, DistinguisherMethod: '<none>' };
  t.like(row(FlowSchema, object), { ...shown, MissingPL: '?' });
  const dangling = { ...object, status: { conditions: [{ type: 'Dangling', status: 'True' }] } };
  t.like(row(FlowSchema, dangling), { ...shown, MissingPL: 'True' });
  const { object: limited } = create(PriorityLevelConfiguration, level(queue({})));
  t.deepEqual(limited.spec.limited, {
    nominalConcurrencyShares: 30,
    limitResponse: { type: 'Queue', queuing: { queues: 64, handSize: 8, queueLengthLimit: 50 } },
    lendablePercent: 0,
  });
  t.like(row(PriorityLevelConfiguration, limited), {
    ...{ Type: 'Limited', NominalConcurrencyShares: 30 },
    ...{ Queues: 64, HandSize: 8, QueueLengthLimit: 50 },
  });
  const exempt = create(PriorityLevelConfiguration, level(undefined, { type: 'Exempt', exempt: {} }, 'exempt')).object;
  t.deepEqual(exempt.spec.exempt, { nominalConcurrencyShares: 0, lendablePercent: 0 });
  t.like(row(PriorityLevelConfiguration, exempt), { Type: 'Exempt', Queues: '<none>', QueueLengthLimit: '<none>' });
});

for (const [title, spec, messages] of [
  [
    'a precedence out of range',
    { matchingPrecedence: -1 },
    ['spec.matchingPrecedence: Invalid value: -1: must be a positive value'],
  ],
  [
    'a precedence above the maximum',
    { matchingPrecedence: 10_001 },
    ['spec.matchingPrecedence: Invalid value: 10001: must not be greater than 10000'],
  ],
  [
    'the precedence of the schema exempt',
    { matchingPrecedence: 1 },
    ["spec.matchingPrecedence: Invalid value: 1: only the schema named 'exempt' may have matchingPrecedence 1"],
  ],
  [
    'another distinguisher, and no level',
    { distinguisherMethod: { type: 'ByVerb' }, priorityLevelConfiguration: {} },
    [
      'spec.distinguisherMethod.type: Unsupported value: "ByVerb": supported values: "ByNamespace", "ByUser"',
      'spec.priorityLevelConfiguration.name: Required value: must reference a priority level',
    ],
  ],
  [
    'an empty rule',
    { rules: [{}] },
    [
      'spec.rules[0].subjects: Required value: subjects must contain at least one value',
      'spec.rules[0]: Required value: at least one of resourceRules and nonResourceRules has to be non-empty',
    ],
  ],
  [
    'subjects of two kinds',
    {
      rules: [
        {
          ...rule,
          subjects: [
            { ...group, user: { name: 'a' } },
            { kind: 'User' },
            { kind: 'Node' },
            { kind: 'ServiceAccount', serviceAccount: { name: 'A' } },
          ],
        },
      ],
    },
    [
      "spec.rules[0].subjects[0].user: Forbidden: user is forbidden when subject kind is not 'User'",
      "spec.rules[0].subjects[1].user: Required value: user is required when subject kind is 'User'",
      'spec.rules[0].subjects[2].kind: Unsupported value: "Node": supported values: "Group", "ServiceAccount", "User"',
      'spec.rules[0].subjects[3].serviceAccount.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist ' +
        "of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character " +
        "(e.g. 'example.com', regex used for validation is " +
        "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      'spec.rules[0].subjects[3].serviceAccount.namespace: Required value: must specify namespace for service account',
    ],
  ],
  [
    'wildcards beside other values, and empty lists',
    {
      rules: [
        {
          subjects: [group],
          resourceRules: [
            { verbs: ['*', 'get'], apiGroups: ['*', ''], resources: ['*', 'pods'], namespaces: ['*', 'a'] },
            {},
            { ...resourceRule, verbs: ['read'], namespaces: [], clusterScope: true },
          ],
        },
      ],
    },
    [
      'spec.rules[0].resourceRules[0].verbs: Invalid value: ["*","get"]: ' +
        "if '*' is present, must not specify other verbs",
      'spec.rules[0].resourceRules[0].apiGroups: Invalid value: ["*",""]: ' +
        "if '*' is present, must not specify other api groups",
      'spec.rules[0].resourceRules[0].resources: Invalid value: ["*","pods"]: ' +
        "if '*' is present, must not specify other resources",
      'spec.rules[0].resourceRules[0].namespaces: Invalid value: ["*","a"]: ' +
        "if '*' is present, must not specify other namespaces",
      'spec.rules[0].resourceRules[1].verbs: Required value: verbs must contain at least one value',
      'spec.rules[0].resourceRules[1].apiGroups: Required value: resource rules must supply at least one api group',
      'spec.rules[0].resourceRules[1].resources: Required value: resource rules must supply at least one resource',
      'spec.rules[0].resourceRules[1].namespaces: Required value: ' +
        'resource rules that are not cluster scoped must supply at least one namespace',
      'spec.rules[0].resourceRules[2].verbs: Unsupported value: ["read"]: supported values: "create", "delete", ' +
        '"deletecollection", "get", "list", "patch", "proxy", "update", "watch"',
    ],
  ],
  [
    'paths',
    {
      rules: [
        {
          subjects: [group],
          nonResourceRules: [
            { verbs: ['get'], nonResourceURLs: ['', '/', 'a', '/a b', '/a//b', '/a*', '/*/a', '/a/*'] },
          ],
        },
      ],
    },
    [
      'nonResourceURLs[0]: Invalid value: "": must not be empty',
      'nonResourceURLs[2]: Invalid value: "a": must start with slash',
      'nonResourceURLs[3]: Invalid value: "/a b": must not contain white-space',
      'nonResourceURLs[4]: Invalid value: "/a//b": must not contain double slash',
      'nonResourceURLs[5]: Invalid value: "/a*": wildcard can only do suffix matching',
      'nonResourceURLs[6]: Invalid value: "/*/a": wildcard can only do suffix matching',
    ].map((text) => `spec.rules[0].nonResourceRules[0].${text}`),
  ],
] as readonly [string, Record<string, unknown>, readonly string[]][]) {
  test(`FlowSchema with ${title}`, (t) => {
    t.deepEqual(create(FlowSchema, schema(spec)).messages, messages);
  });
}

for (const [title, object, messages] of [
  [
    'the type of the level exempt',
    level(undefined, { type: 'Exempt' }),
    ["spec.type: Invalid value: \"Exempt\": must be 'Exempt' if and only if `name` is 'exempt'"],
  ],
  [
    'an unknown type',
    level(undefined, { type: 'Some' }),
    ['spec.type: Unsupported value: "Some": supported values: "Exempt", "Limited"'],
  ],
  ['no limits', level(undefined), ['spec.limited: Required value: must not be empty when type is Limited']],
  [
    'limits out of range',
    level({ ...reject, nominalConcurrencyShares: -1, lendablePercent: 101, borrowingLimitPercent: -1 }),
    [
      'spec.limited.nominalConcurrencyShares: Invalid value: -1: must be a non-negative integer',
      'spec.limited.lendablePercent: Invalid value: 101: must be between 0 and 100, inclusive',
      'spec.limited.borrowingLimitPercent: Invalid value: -1: if specified, must be a non-negative integer',
    ],
  ],
  [
    'queues of a level that rejects',
    level({ limitResponse: { type: 'Reject', queuing: {} } }),
    ['spec.limited.limitResponse.queuing: Forbidden: must be nil if limited.limitResponse.type is not Limited'],
  ],
  [
    'no queues',
    level(queue(undefined)),
    ['spec.limited.limitResponse.queuing: Required value: must not be empty if limited.limitResponse.type is Limited'],
  ],
  [
    'more queues of a flow than queues',
    level(queue({ queues: 4, handSize: 5, queueLengthLimit: -1 })),
    [
      'spec.limited.limitResponse.queuing.queueLengthLimit: Invalid value: -1: must be positive',
      'spec.limited.limitResponse.queuing.handSize: Invalid value: 5: should not be greater than queues (4)',
    ],
  ],
  [
    'too many queues of a flow',
    level(queue({ queues: 1024, handSize: 8 })),
    [
      'spec.limited.limitResponse.queuing.handSize: Invalid value: 8: ' +
        'required entropy bits of deckSize 1024 and handSize 8 should not be greater than 60',
    ],
  ],
] as readonly [string, ReturnType<typeof level>, readonly string[]][]) {
  test(`PriorityLevelConfiguration with ${title}`, (t) => {
    t.deepEqual(create(PriorityLevelConfiguration, object).messages, messages);
  });
}

test('the objects that every server needs cannot be changed, apart from the seats of exempt requests', (t) => {
  const [changed] = create(FlowSchema, schema({}, 'catch-all')).messages;
  t.regex(changed ?? '', /^spec: Invalid value: .*: spec of 'catch-all' must equal the fixed value$/);
  const [lent] = create(PriorityLevelConfiguration, level(reject, {}, 'catch-all')).messages;
  t.regex(lent ?? '', /^spec: Invalid value: .*: spec of 'catch-all' must equal the fixed value$/);
  const exempt = { type: 'Exempt', exempt: { nominalConcurrencyShares: 10 } };
  t.deepEqual(create(PriorityLevelConfiguration, level(undefined, exempt, 'exempt')).messages, []);
});

test('conditions of flow schemas need a type of their own', (t) => {
  const old = create(FlowSchema, schema()).object;
  const { messages } = updateStatus(FlowSchema, old, (object) => {
    object.status = { conditions: [{ type: 'Dangling' }, { type: 'Dangling' }, { status: 'True' }] };
  });
  t.deepEqual(messages, [
    'status.conditions[1].type: Duplicate value: "Dangling"',
    'status.conditions[2].type: Required value',
  ]);
});
