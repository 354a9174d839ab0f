import type { KindDefinition } from '@keelson/core';
import test from 'ava';
import { EndpointSlice, Lease, LimitRange, PriorityClass, ResourceQuota, systemPriorityClasses } from '../src/index.ts';
import { create, row, update, updateStatus } from './helpers/writes.ts';

const metadata = { name: 'x', namespace: 'default' };

type Case = readonly [title: string, fields: Record<string, unknown>, messages: readonly string[]];

function table(kind: KindDefinition, cases: readonly Case[]): void {
  for (const [title, fields, messages] of cases) {
    test(`${kind.kind} with ${title}`, (t) => {
      t.deepEqual(create(kind, { metadata, ...fields }).messages, messages);
    });
  }
}

function slice(fields: Record<string, unknown>, addresses: string[] = ['10.1.2.3']) {
  return { addressType: 'IPv4', endpoints: [{ addresses, ...fields }], ports: [{ name: 'http', port: 80 }] };
}

table(EndpointSlice, [
  ['an endpoint', slice({ nodeName: 'n1', hostname: 'a', zone: 'z', conditions: { ready: true } }), []],
  ['no endpoints', { addressType: 'IPv6', endpoints: [] }, []],
  ['no type', { endpoints: [] }, ['addressType: Required value']],
  [
    'an unknown type',
    { addressType: 'IPX', endpoints: [] },
    ['addressType: Unsupported value: "IPX": supported values: "FQDN", "IPv4", "IPv6"'],
  ],
  ['no addresses', slice({}, []), ['endpoints[0].addresses: Required value: must contain at least 1 address']],
  [
    'an address of another family',
    slice({}, ['2001:db8::1']),
    ['endpoints[0].addresses: Invalid value: "2001:db8::1": must be an IPv4 address'],
  ],
  [
    'an IPv6 address that is not canonical',
    { addressType: 'IPv6', endpoints: [{ addresses: ['2001:DB8::0:1', '::ffff:10.1.2.3', '2001:db8::1'] }] },
    [
      'endpoints[0].addresses[0]: Invalid value: "2001:DB8::0:1": must be in canonical form ("2001:db8::1")',
      'endpoints[0].addresses[1]: Invalid value: "::ffff:10.1.2.3": must not be an IPv4-mapped IPv6 address',
    ],
  ],
  [
    'a loopback address',
    slice({}, ['127.0.0.1']),
    ['endpoints[0].addresses[0]: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)'],
  ],
  [
    'domains',
    { addressType: 'FQDN', endpoints: [{ addresses: ['a.example.com', 'a.b.', 'local', ''] }] },
    [
      'endpoints[0].addresses[2]: Invalid value: "local": should be a domain with at least two segments separated by dots',
      'endpoints[0].addresses[3]: Required value',
    ],
  ],
  [
    'too many endpoints',
    { addressType: 'IPv4', endpoints: Array(1001).fill({ addresses: [] }) },
    ['endpoints: Too many: 1001: must have at most 1000 items'],
  ],
  [
    'repeated ports, unnamed and named',
    { addressType: 'IPv4', endpoints: [], ports: [{}, {}, { name: 'a' }, { name: 'a', protocol: 'ICMP' }] },
    [
      'ports[1].name: Duplicate value: ""',
      'ports[3].name: Duplicate value: "a"',
      'ports[3].protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"',
    ],
  ],
  [
    'hints',
    slice({ hints: { forZones: [{ name: 'a' }, { name: 'a' }], forNodes: Array(9).fill({ name: 'n' }) } }),
    [
      'endpoints[0].hints.forZones[1].name: Duplicate value: "a"',
      'endpoints[0].hints.forNodes: Too many: 9: must have at most 8 items',
    ],
  ],
]);

test('the type of an EndpointSlice cannot be changed, and invalid endpoints of a stored one may remain', (t) => {
  const { object } = create(EndpointSlice, { metadata, ...slice({}, ['127.0.0.1']) });
  t.deepEqual(object.ports, [{ name: 'http', protocol: 'TCP', port: 80 }]);
  t.deepEqual(update(EndpointSlice, object, (one) => Object.assign(one, { ports: [] })).messages, []);
  t.deepEqual(update(EndpointSlice, object, (one) => Object.assign(one, { addressType: 'IPv6' })).messages, [
    'addressType: Invalid value: "IPv6": field is immutable',
  ]);
});

test('the table of EndpointSlices shows the first ports and addresses', (t) => {
  const many = slice({}, ['10.0.0.1', '10.0.0.2', '10.0.0.3', '10.0.0.4']);
  const cells = row(EndpointSlice, create(EndpointSlice, { metadata, ...many }).object);
  t.is(cells['Ports'], '80');
  t.is(cells['Endpoints'], '10.0.0.1,10.0.0.2,10.0.0.3 + 1 more...');
  const empty = row(EndpointSlice, create(EndpointSlice, { metadata, addressType: 'IPv4', endpoints: [] }).object);
  t.is(empty['Ports'], '<unset>');
  t.is(empty['Endpoints'], '<unset>');
});

table(PriorityClass, [
  ['a value', { value: 1000 }, []],
  ['the highest value', { value: 1_000_000_000 }, []],
  [
    'a value above',
    { value: 1_000_000_001 },
    ['value: Forbidden: maximum allowed value of a user defined priority is 1000000000'],
  ],
  [
    'an unknown policy',
    { value: 1, preemptionPolicy: 'Always' },
    ['preemptionPolicy: Unsupported value: "Always": supported values: "Never", "PreemptLowerPriority"'],
  ],
  [
    'a reserved name',
    { metadata: { name: 'system-mine' }, value: 1 },
    [
      "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. " +
        'error: system-mine is not a known system priority class',
    ],
  ],
  [
    'a system name and another value',
    { metadata: { name: 'system-node-critical' }, value: 1 },
    [
      "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. " +
        'error: value of system-node-critical PriorityClass must be 2000001000',
    ],
  ],
]);

test('the value and the policy of a PriorityClass cannot be changed; system classes cannot be deleted', (t) => {
  const { object } = create(PriorityClass, { metadata: { name: 'x' }, value: 5 });
  t.is(object.preemptionPolicy, 'PreemptLowerPriority');
  t.is(PriorityClass.columns.find(({ name }) => name === 'PreemptionPolicy')?.priority, 0);
  t.is(object.metadata?.generation, 1);
  const change = (fields: object) => update(PriorityClass, object, (one) => Object.assign(one, fields)).messages;
  t.deepEqual(change({ value: 6, preemptionPolicy: 'Never' }), [
    'value: Forbidden: may not be changed in an update.',
    'preemptionPolicy: Invalid value: "Never": field is immutable',
  ]);
  t.deepEqual(change({ globalDefault: true, description: 'y' }), []);
  t.deepEqual(
    systemPriorityClasses.map((one) => [one.metadata?.name, create(PriorityClass, one).messages]),
    [
      ['system-node-critical', []],
      ['system-cluster-critical', []],
    ],
  );
  t.is(
    PriorityClass.strategy.undeletable?.('system-cluster-critical'),
    'this is a system priority class and cannot be deleted',
  );
  t.is(PriorityClass.strategy.undeletable?.('x'), undefined);
});

const hard = { pods: '10', 'requests.cpu': '4', 'count/deployments.apps': '2' };

table(ResourceQuota, [
  ['limits', { spec: { hard } }, []],
  ['devices', { spec: { hard: { 'requests.example.com/gpu': '4', 'limits.memory': '8Gi' } } }, []],
  [
    'unknown resources',
    { spec: { hard: { disks: '1', storage: '1' } } },
    [
      'spec.hard[disks]: Invalid value: "disks": must be a standard resource type or fully qualified',
      'spec.hard[disks]: Invalid value: "disks": must be a standard resource for quota',
      'spec.hard[storage]: Invalid value: "storage": must be a standard resource for quota',
    ],
  ],
  [
    'amounts that cannot be',
    { spec: { hard: { pods: '1500m', cpu: '-1' } } },
    [
      'spec.hard[pods]: Invalid value: "1500m": must be an integer',
      'spec.hard[cpu]: Invalid value: "-1": must be greater than or equal to 0',
    ],
  ],
  ['scopes', { spec: { hard: { pods: '1' }, scopes: ['BestEffort', 'NotTerminating'] } }, []],
  ['an unknown scope', { spec: { scopes: ['Night'] } }, ['spec.scopes: Invalid value: ["Night"]: unsupported scope']],
  [
    'conflicting scopes',
    { spec: { scopes: ['Terminating', 'NotTerminating'] } },
    ['spec.scopes: Invalid value: ["Terminating","NotTerminating"]: conflicting scopes'],
  ],
  [
    'a scope that has no such resource',
    { spec: { hard: { 'requests.cpu': '1' }, scopes: ['BestEffort'] } },
    ['spec.scopes: Invalid value: ["BestEffort"]: unsupported scope applied to resource'],
  ],
  [
    'a selector of priority classes',
    {
      spec: {
        hard: { pods: '1' },
        scopeSelector: { matchExpressions: [{ scopeName: 'PriorityClass', operator: 'In', values: ['high'] }] },
      },
    },
    [],
  ],
  [
    'a selector without values',
    { spec: { scopeSelector: { matchExpressions: [{ scopeName: 'PriorityClass', operator: 'In' }] } } },
    [
      'spec.scopeSelector.matchExpressions.values: Required value: must be at least one value when `operator` is ' +
        "'In' or 'NotIn' for scope selector",
    ],
  ],
  [
    'a selector with a wrong operator',
    { spec: { scopeSelector: { matchExpressions: [{ scopeName: 'BestEffort', operator: 'DoesNotExist' }] } } },
    [
      'spec.scopeSelector.matchExpressions.operator: Invalid value: "DoesNotExist": must be \'Exists\' when scope is ' +
        'any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ' +
        'ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity',
    ],
  ],
]);

test('the scopes of a ResourceQuota cannot be changed; the status is validated', (t) => {
  const { object } = create(ResourceQuota, { metadata, spec: { hard: { pods: '1' }, scopes: ['BestEffort'] } });
  t.deepEqual(update(ResourceQuota, object, (one) => Object.assign(one.spec, { scopes: [] })).messages, [
    'spec.scopes: Invalid value: null: field is immutable',
  ]);
  const status = updateStatus(ResourceQuota, object, (one) => {
    one.status = { hard: { pods: '1' }, used: { pods: '-1' } };
  });
  t.deepEqual(status.messages, ['status.used[pods]: Invalid value: "-1": must be greater than or equal to 0']);
});

test('the table of ResourceQuotas separates requests and limits', (t) => {
  const object: ResourceQuota = {
    ...create(ResourceQuota, { metadata, spec: {} }).object,
    status: { hard: { pods: '10', 'limits.cpu': '2', 'requests.cpu': '1' }, used: { pods: '3', 'limits.cpu': '500m' } },
  };
  const cells = row(ResourceQuota, object);
  t.is(cells['Request'], 'pods: 3/10, requests.cpu: 0/1');
  t.is(cells['Limit'], 'limits.cpu: 500m/2');
});

const item = (fields: Record<string, unknown>, type = 'Container') => ({ spec: { limits: [{ type, ...fields }] } });

table(LimitRange, [
  ['defaults', item({ default: { cpu: '1' }, defaultRequest: { cpu: '500m' } }), []],
  [
    'an unknown type',
    item({}, 'Node'),
    ['spec.limits[0].type: Invalid value: "Node": must be a standard limit type or fully qualified'],
  ],
  [
    'two items of one type',
    { spec: { limits: [{ type: 'Pod' }, { type: 'Pod' }] } },
    ['spec.limits[1].type: Duplicate value: "Pod"'],
  ],
  [
    'defaults of pods',
    item({ default: { cpu: '1' }, defaultRequest: { cpu: '1' } }, 'Pod'),
    [
      "spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'",
      "spec.limits[0].defaultRequest: Forbidden: may not be specified when `type` is 'Pod'",
    ],
  ],
  [
    'claims without a size',
    item({ max: { 'requests.storage': '1Gi' } }, 'PersistentVolumeClaim'),
    [
      'spec.limits[0].limits: Required value: either minimum or maximum storage value is required, but neither was ' +
        'provided',
    ],
  ],
  [
    'a minimum above the maximum',
    item({ min: { cpu: '2' }, max: { cpu: '1' } }, 'Pod'),
    ['spec.limits[0].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1'],
  ],
  [
    'defaults outside',
    item({ min: { cpu: '2' }, max: { cpu: '4' }, default: { cpu: '5' }, defaultRequest: { cpu: '1' } }),
    [
      'spec.limits[0].defaultRequest[cpu]: Invalid value: "1": min value 2 is greater than default request value 1',
      'spec.limits[0].default[cpu]: Invalid value: "4": default value 5 is greater than max value 4',
    ],
  ],
  [
    'ratios',
    item({ min: { cpu: '1' }, max: { cpu: '2' }, maxLimitRequestRatio: { cpu: '3', memory: '500m' } }, 'Pod'),
    [
      'spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "3": ratio 3 is greater than max/min = 2.000000',
      'spec.limits[0].maxLimitRequestRatio[memory]: Invalid value: "500m": ratio 500m is less than 1',
    ],
  ],
  [
    'a device that is shared',
    item({ default: { 'x.io/gpu': '2' }, defaultRequest: { 'x.io/gpu': '1' } }),
    [
      'spec.limits[0].defaultRequest[x.io/gpu]: Invalid value: "1": default value 2 must equal to defaultRequest ' +
        'value 1 in x.io/gpu',
    ],
  ],
]);

test('a LimitRange completes its defaults, and gets a name', (t) => {
  const { object } = create(LimitRange, { ...item({ max: { cpu: '2' }, min: { cpu: '1', memory: '1Mi' } }) });
  const [only] = object.spec.limits;
  t.deepEqual(only?.default, { cpu: '2' });
  t.deepEqual(only?.defaultRequest, { cpu: '2', memory: '1Mi' });
  t.regex(object.metadata?.name ?? '', /^[0-9a-f-]{36}$/);
});

test('a change of its labels raises the generation of an EndpointSlice', (t) => {
  const { object } = create(EndpointSlice, {
    metadata: { name: 'x', generation: 3 },
    addressType: 'IPv4',
    endpoints: [],
  });
  const { object: labelled } = update(EndpointSlice, object, (slice) => {
    slice.metadata = { ...slice.metadata, labels: { a: 'b' } };
  });
  t.is(labelled.metadata?.generation, 4);
});

test('a Lease is stored without the fields of coordinated election', (t) => {
  const spec = { holderIdentity: 'a', strategy: 'OldestEmulationVersion', preferredHolder: 'b' };
  const { causes, object } = create(Lease, { metadata: { name: 'x' }, spec });
  t.deepEqual([causes, object.spec], [[], { holderIdentity: 'a' }]);
});
