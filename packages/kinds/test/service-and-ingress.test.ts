import test from 'ava';
import { Endpoints, Ingress, Service } from '../src/index.ts';
import { serviceManifest } from './helpers/manifests.ts';
import { create, defaulted, row, update, updateStatus } from './helpers/writes.ts';

type Case = readonly [title: string, spec: Record<string, unknown>, causes: readonly string[]];

const serviceCases: readonly Case[] = [
  ['one port', {}, []],
  ['no ports', { ports: [] }, ['spec.ports Required']],
  ['no ports but headless', { ports: [], clusterIP: 'None' }, []],
  ['two ports without names', { ports: [{ port: 1 }, { port: 2, name: 'b' }] }, ['spec.ports[0].name Required']],
  [
    'a name twice',
    {
      ports: [
        { port: 1, name: 'a' },
        { port: 2, name: 'a' },
      ],
    },
    ['spec.ports[1].name Duplicate'],
  ],
  [
    'a port twice',
    {
      ports: [
        { port: 1, name: 'a' },
        { port: 1, name: 'b' },
      ],
    },
    ['spec.ports[1] Duplicate'],
  ],
  [
    'a port for two protocols',
    {
      ports: [
        { port: 1, name: 'a' },
        { port: 1, name: 'b', protocol: 'UDP' },
      ],
    },
    [],
  ],
  ['port 0', { ports: [{ port: 0, targetPort: 1 }] }, ['spec.ports[0].port Invalid']],
  ['a bad target', { ports: [{ port: 1, targetPort: 'a_b' }] }, ['spec.ports[0].targetPort Invalid']],
  ['an unknown protocol', { ports: [{ port: 1, protocol: 'ICMP' }] }, ['spec.ports[0].protocol NotSupported']],
  ['a node port it has no use for', { ports: [{ port: 1, nodePort: 30000 }] }, ['spec.ports[0].nodePort Forbidden']],
  [
    'a node port twice',
    {
      type: 'NodePort',
      ports: [
        { port: 1, name: 'a', nodePort: 30000 },
        { port: 2, name: 'b', nodePort: 30000 },
      ],
    },
    ['spec.ports[1].nodePort Invalid'],
  ],
  ['an unknown type', { type: 'Public' }, ['spec.type NotSupported']],
  ['an address', { clusterIP: '10.0.0.1' }, []],
  ['no address', { clusterIP: 'ten' }, ['spec.clusterIPs[0] Invalid']],
  ['node ports without address', { type: 'NodePort', clusterIP: 'None' }, ['spec.clusterIPs[0] Invalid']],
  ['addresses that disagree', { clusterIP: '10.0.0.1', clusterIPs: ['10.0.0.2'] }, ['spec.clusterIPs Invalid']],
  ['an alias', { type: 'ExternalName', externalName: 'a.example.', ports: [] }, []],
  ['an alias to nothing', { type: 'ExternalName' }, ['spec.externalName Required']],
  [
    'an alias with an address',
    { type: 'ExternalName', externalName: 'a', clusterIP: '10.0.0.1' },
    ['spec.clusterIPs Forbidden'],
  ],
  ['unknown affinity', { sessionAffinity: 'Cookie' }, ['spec.sessionAffinity NotSupported']],
  [
    'affinity for too long',
    { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 86401 } } },
    ['spec.sessionAffinityConfig.clientIP.timeoutSeconds Invalid'],
  ],
  [
    'a policy for external traffic without external addresses',
    { externalTrafficPolicy: 'Local' },
    ['spec.externalTrafficPolicy Invalid'],
  ],
  [
    'an unknown policy',
    { type: 'NodePort', externalTrafficPolicy: 'Near' },
    ['spec.externalTrafficPolicy NotSupported'],
  ],
  ['an outside address on the loopback', { externalIPs: ['127.0.0.1'] }, ['spec.externalIPs[0] Invalid']],
  ['an IPv6 outside address of the link', { externalIPs: ['fe80::1'] }, ['spec.externalIPs[0] Invalid']],
  [
    'source ranges',
    { type: 'LoadBalancer', loadBalancerSourceRanges: ['10.0.0.0/33'] },
    ['spec.LoadBalancerSourceRanges[0] Invalid'],
  ],
  ['a balancer class without a balancer', { loadBalancerClass: 'x.io/y' }, ['spec.loadBalancerClass Forbidden']],
  ['only the newer field of addresses', { clusterIPs: ['None'] }, ['spec.clusterIPs Invalid']],
  ['an address of the other family', { clusterIP: '10.0.0.1', ipFamilies: ['IPv6'] }, ['spec.clusterIPs[0] Invalid']],
  ['two families without a policy', { ipFamilies: ['IPv4', 'IPv6'] }, ['spec.ipFamilyPolicy Invalid']],
  ['a bad selector', { selector: { 'a b': 'c' } }, ['spec.selector Invalid']],
];
for (const [title, spec, causes] of serviceCases) {
  test(`Service with ${title}`, (t) => {
    t.deepEqual(create(Service, serviceManifest(spec)).causes, causes);
  });
}

test('defaults of a service depend on its type', (t) => {
  t.deepEqual(create(Service, serviceManifest()).object.spec, {
    ports: [{ port: 80, protocol: 'TCP', targetPort: 80 }],
    selector: { app: 'web' },
    type: 'ClusterIP',
    sessionAffinity: 'None',
    internalTrafficPolicy: 'Cluster',
    ipFamilyPolicy: 'SingleStack',
    ipFamilies: ['IPv4'],
  });
  t.like(
    create(Service, serviceManifest({ type: 'LoadBalancer', clusterIP: '2001:db8::1', sessionAffinity: 'ClientIP' }))
      .object.spec,
    {
      externalTrafficPolicy: 'Cluster',
      allocateLoadBalancerNodePorts: true,
      clusterIPs: ['2001:db8::1'],
      ipFamilies: ['IPv6'],
      sessionAffinityConfig: { clientIP: { timeoutSeconds: 10800 } },
    },
  );
  const alias = create(Service, serviceManifest({ type: 'ExternalName', externalName: 'a.b' })).object.spec;
  t.is(alias.internalTrafficPolicy, undefined);
  t.is(alias.ipFamilies, undefined);
});

test('an update keeps an omitted cluster IP and rejects a different one', (t) => {
  const old = create(Service, serviceManifest({ clusterIP: '10.0.0.1' })).object;
  const left = update(Service, old, ({ spec }) => {
    delete spec.clusterIP;
    delete spec.clusterIPs;
  });
  t.deepEqual(left.causes, []);
  t.is(left.object.spec.clusterIP, '10.0.0.1');
  t.deepEqual(left.object.spec.clusterIPs, ['10.0.0.1']);
  const moved = update(Service, old, ({ spec }) => {
    spec.clusterIP = '10.0.0.2';
    spec.clusterIPs = ['10.0.0.2'];
  });
  t.deepEqual(moved.messages, ['spec.clusterIPs[0]: Invalid value: ["10.0.0.2"]: may not change once set']);
  const half = update(Service, old, ({ spec }) => {
    spec.clusterIP = '10.0.0.3';
  });
  t.deepEqual(half.causes, ['spec.clusterIPs[0] Invalid']);
});

test('a headless service without a selector has both address families, unless its policy is SingleStack', (t) => {
  const familiesOf = (spec: Record<string, unknown>) => {
    const { object } = create(Service, serviceManifest({ clusterIP: 'None', ...spec }));
    return [object.spec.ipFamilyPolicy, ...(object.spec.ipFamilies ?? [])];
  };
  t.deepEqual(familiesOf({ selector: undefined }), ['RequireDualStack', 'IPv4', 'IPv6']);
  t.deepEqual(familiesOf({ selector: undefined, ipFamilies: ['IPv6'] }), ['RequireDualStack', 'IPv6', 'IPv4']);
  const prefers = { ipFamilyPolicy: 'PreferDualStack' };
  t.deepEqual(familiesOf({ selector: undefined, ...prefers }), ['PreferDualStack', 'IPv4', 'IPv6']);
  t.deepEqual(familiesOf(prefers), ['PreferDualStack', 'IPv4']);
  t.deepEqual(familiesOf({ selector: undefined, ipFamilyPolicy: 'SingleStack' }), ['SingleStack', 'IPv4']);
  t.deepEqual(familiesOf({}), ['SingleStack', 'IPv4']);
});

test('the second address and family of a service are released by the policy SingleStack only', (t) => {
  const clusterIPs = ['10.0.0.1', 'fd00::1'];
  const dual = { ipFamilyPolicy: 'RequireDualStack', ipFamilies: ['IPv4', 'IPv6'], clusterIP: '10.0.0.1', clusterIPs };
  const { object: old, causes } = create(Service, serviceManifest(dual));
  t.deepEqual(causes, []);
  const reduced = update(Service, old, ({ spec }) => {
    spec.clusterIPs = ['10.0.0.1'];
    spec.ipFamilies = ['IPv4'];
  });
  t.deepEqual(reduced.messages, [
    'spec.ipFamilyPolicy: Invalid value: "RequireDualStack": must be \'SingleStack\' to release the secondary cluster IP',
    'spec.ipFamilyPolicy: Invalid value: "RequireDualStack": must be \'SingleStack\' to release the secondary IP family',
  ]);
  const single = update(Service, old, ({ spec }) => {
    spec.ipFamilyPolicy = 'SingleStack';
  });
  t.deepEqual(
    [single.causes, single.object.spec.clusterIPs, single.object.spec.ipFamilies],
    [[], ['10.0.0.1'], ['IPv4']],
  );
  const older = update(Service, old, ({ spec }) => {
    delete spec.clusterIPs;
    delete spec.ipFamilies;
    delete spec.ipFamilyPolicy;
  });
  t.deepEqual(older.object.spec, old.spec);
});

test('class and health check port of a load balancer cannot be changed', (t) => {
  const spec = { type: 'LoadBalancer', externalTrafficPolicy: 'Local', healthCheckNodePort: 31000 };
  const old = create(Service, serviceManifest({ ...spec, loadBalancerClass: 'a.io/b' })).object;
  const moved = update(Service, old, (service) => {
    Object.assign(service.spec, { loadBalancerClass: 'a.io/c', healthCheckNodePort: 31001 });
  });
  t.deepEqual(moved.messages, [
    'spec.loadBalancerClass: Invalid value: "a.io/c": may not change once set',
    'spec.healthCheckNodePort: Forbidden: field is immutable',
  ]);
});

test('a service with external addresses has a policy for external traffic, and loses it with them', (t) => {
  const { object: old } = create(Service, serviceManifest({ externalIPs: ['1.2.3.4'] }));
  t.is(old.spec.externalTrafficPolicy, 'Cluster');
  const inner = update(Service, old, ({ spec }) => {
    delete spec.externalIPs;
  });
  t.deepEqual([inner.causes, inner.object.spec.externalTrafficPolicy], [[], undefined]);
});

test('annotations of a service for topology and source ranges are validated', (t) => {
  const causes = (annotations: Record<string, string>, spec = {}) =>
    create(Service, { ...serviceManifest(spec), metadata: { name: 'web', namespace: 'default', annotations } })
      .messages;
  const topology = 'service.kubernetes.io/topology-';
  t.deepEqual(causes({ [`${topology}mode`]: 'Auto', [`${topology}aware-hints`]: 'Auto' }), []);
  t.deepEqual(causes({ [`${topology}mode`]: 'Auto', [`${topology}aware-hints`]: 'Disabled' }), [
    `metadata.annotations[${topology}mode]: Invalid value: "Auto": ` +
      `must match annotations[${topology}aware-hints] when both are specified`,
  ]);
  const ranges = 'service.beta.kubernetes.io/load-balancer-source-ranges';
  const balanced = { type: 'LoadBalancer' };
  t.deepEqual(causes({ [ranges]: ' 10.0.0.0/8, fd00::/8 ' }, balanced), []);
  t.deepEqual(causes({ [ranges]: 'x' }, balanced), [
    `metadata.annotations[${ranges}]: Invalid value: "x": ` +
      'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)',
  ]);
  t.deepEqual(causes({ [ranges]: '10.0.0.0/8' }), [
    `metadata.annotations[${ranges}]: Forbidden: may only be used when \`type\` is 'LoadBalancer'`,
  ]);
});

test('a cluster IP can be assigned to a service that has none', (t) => {
  const old = create(Service, serviceManifest()).object;
  t.deepEqual(
    update(Service, old, ({ spec }) => {
      spec.clusterIP = '10.0.0.9';
    }).causes,
    [],
  );
});

test('omitted node ports are kept, and removed when the type no longer has them', (t) => {
  const old = create(Service, serviceManifest({ type: 'NodePort', ports: [{ port: 80, nodePort: 30080 }] })).object;
  const kept = update(Service, old, ({ spec }) => void delete spec.ports![0]!.nodePort);
  t.is(kept.object.spec.ports?.[0]?.nodePort, 30080);
  const inner = update(Service, old, ({ spec }) => {
    spec.type = 'ClusterIP';
  });
  t.deepEqual(inner.causes, []);
  t.is(inner.object.spec.ports?.[0]?.nodePort, undefined);
  t.is(inner.object.spec.externalTrafficPolicy, undefined);
  const alias = update(Service, create(Service, serviceManifest({ clusterIP: '10.0.0.1' })).object, ({ spec }) => {
    spec.type = 'ExternalName';
    spec.externalName = 'a.b';
  });
  t.deepEqual(alias.causes, []);
  t.is(alias.object.spec.clusterIP, undefined);
  const emptied = update(Service, create(Service, serviceManifest({ clusterIP: '10.0.0.1' })).object, ({ spec }) => {
    Object.assign(spec, { type: 'ExternalName', externalName: 'a.b', clusterIP: '' });
  });
  t.deepEqual([emptied.causes, emptied.object.spec.clusterIPs], [[], undefined]);
});

test('the node port of a port is kept by its name when its number changes', (t) => {
  const old = create(Service, serviceManifest({ type: 'NodePort', ports: [{ port: 80, nodePort: 30080 }] })).object;
  const { object } = update(Service, old, ({ spec }) => {
    spec.ports = [{ port: 81 }];
  });
  t.is(object.spec.ports?.[0]?.nodePort, 30080);
});

test('the status of a service has valid load balancer addresses, only with type LoadBalancer', (t) => {
  const written = (spec: Record<string, unknown>, ingress: Record<string, string>[]) =>
    updateStatus(Service, create(Service, serviceManifest(spec)).object, (service) => {
      service.status = { loadBalancer: { ingress } };
    });
  t.deepEqual(written({}, [{ ip: '1.2.3.4' }]).messages, [
    "status.loadBalancer.ingress: Forbidden: may only be used when `spec.type` is 'LoadBalancer'",
  ]);
  const balanced = { type: 'LoadBalancer' };
  t.deepEqual(
    written(balanced, [
      { ip: 'x', ipMode: 'x' },
      { hostname: 'A_b', ipMode: 'VIP' },
    ]).causes,
    [
      'status.loadBalancer.ingress[0].ip Invalid',
      'status.loadBalancer.ingress[0].ipMode NotSupported',
      'status.loadBalancer.ingress[1].ipMode Forbidden',
      'status.loadBalancer.ingress[1].hostname Invalid',
    ],
  );
  const valid = written(balanced, [{ ip: '1.2.3.4' }, { hostname: 'a.example' }]);
  t.deepEqual(valid.messages, []);
  const ingress = [{ ip: '1.2.3.4', ipMode: 'VIP' }, { hostname: 'a.example' }];
  t.deepEqual(valid.object.status, { loadBalancer: { ingress } });
  const moved = update(Service, valid.object, ({ spec }) => {
    spec.type = 'ClusterIP';
  });
  t.deepEqual(moved.messages, []);
  t.deepEqual(moved.object.status, { loadBalancer: {} });
  t.deepEqual(valid.object.status, { loadBalancer: { ingress } });
});

test('export omits addresses and ports that the cluster assigned', (t) => {
  const made = create(
    Service,
    serviceManifest({ type: 'NodePort', clusterIP: '10.0.0.1', ports: [{ port: 80, nodePort: 30080 }] }),
  ).object;
  Service.strategy.export?.(made, false);
  t.is(made.spec.clusterIP, undefined);
  t.is(made.spec.ports?.[0]?.nodePort, undefined);
  const headless = create(Service, serviceManifest({ clusterIP: 'None' })).object;
  Service.strategy.export?.(headless, false);
  t.is(headless.spec.clusterIP, 'None');
  const exact = create(Service, serviceManifest({ clusterIP: '10.0.0.1' })).object;
  Service.strategy.export?.(exact, true);
  t.is(exact.spec.clusterIP, '10.0.0.1');
});

const ingresses = [{ ip: '2.2.2.2' }, { hostname: 'a.example' }, { ip: '2.2.2.2' }];
for (const [title, spec, status, expected] of [
  [
    'inside',
    {},
    {},
    { Type: 'ClusterIP', 'Cluster-IP': '<none>', 'External-IP': '<none>', 'Port(s)': '80/TCP', Selector: 'app=web' },
  ],
  [
    'headless',
    { clusterIP: 'None', ports: [], selector: {} },
    {},
    { 'Cluster-IP': 'None', 'Port(s)': '<none>', Selector: '<none>' },
  ],
  ['on node ports', { type: 'NodePort', ports: [{ port: 80, nodePort: 30080 }] }, {}, { 'Port(s)': '80:30080/TCP' }],
  ['with outside addresses', { externalIPs: ['1.1.1.1', '3.3.3.3'] }, {}, { 'External-IP': '1.1.1.1,3.3.3.3' }],
  ['waiting for a balancer', { type: 'LoadBalancer' }, {}, { 'External-IP': '<pending>' }],
  [
    'behind a balancer',
    { type: 'LoadBalancer', externalIPs: ['1.1.1.1'] },
    { loadBalancer: { ingress: ingresses } },
    { 'External-IP': '2.2.2.2,a.example,1.1.1.1' },
  ],
  [
    'that is an alias',
    { type: 'ExternalName', externalName: 'a.b', ports: [] },
    {},
    { 'Cluster-IP': '<none>', 'External-IP': 'a.b' },
  ],
] as const) {
  test(`the table row of a service ${title}`, (t) => {
    const service = create(Service, serviceManifest(spec)).object;
    service.status = structuredClone(status) as NonNullable<Service['status']>;
    t.like(row(Service, service), expected as Record<string, unknown>);
  });
}

const backend = { serviceName: 'web', servicePort: 80 };
const ingressManifest = (spec: Record<string, unknown>) => ({ metadata: { name: 'i', namespace: 'default' }, spec });
const rule = (path: Record<string, unknown>, host?: string) => ({
  rules: [{ ...(host ? { host } : {}), http: { paths: [{ backend, ...path }] } }],
});
const p = 'spec.rules[0].http.paths[0]';
const ingressCases: readonly Case[] = [
  ['a backend', { backend }, []],
  ['rules', rule({ path: '/a' }, 'a.example'), []],
  ['nothing', {}, ['spec Invalid']],
  ['a backend without service', { backend: { servicePort: 80 } }, ['spec.backend.serviceName Required']],
  ['a backend without port', { backend: { serviceName: 'a' } }, ['spec.backend.servicePort Required']],
  [
    'a port by a bad name',
    { backend: { serviceName: 'a', servicePort: 'A' } },
    ['spec.backend.servicePort Invalid', 'spec.backend.servicePort Invalid'],
  ],
  ['an address as host', rule({}, '1.2.3.4'), ['spec.rules[0].host Invalid']],
  ['a wildcard host', rule({}, '*.a.example'), []],
  ['a star in the middle', rule({}, 'a.*.example'), ['spec.rules[0].host Invalid']],
  ['a port in the host', rule({}, 'a.example:80'), ['spec.rules[0].host Invalid']],
  ['no paths', { rules: [{ http: {} }] }, ['spec.rules[0].http.paths Required']],
  ['a relative path', rule({ path: 'a' }), [`${p}.path Invalid`]],
  ['an exact path with //', rule({ path: '/a//b', pathType: 'Exact' }), [`${p}.path Invalid`]],
  ['an unknown path type', rule({ path: '/', pathType: 'Regex' }), [`${p}.pathType NotSupported`]],
  ['TLS for a bad host', { backend, tls: [{ hosts: ['A'] }] }, ['spec.tls[0].hosts[0] Invalid']],
];
for (const [title, spec, causes] of ingressCases) {
  test(`Ingress with ${title}`, (t) => {
    t.deepEqual(create(Ingress, ingressManifest(spec)).causes, causes);
  });
}

test('table rows of ingresses', (t) => {
  const hosts = ['a.io', 'b.io', 'c.io', 'd.io', 'e.io'].map((host) => ({ host }));
  const many = create(Ingress, ingressManifest({ rules: hosts, tls: [{}], ingressClassName: 'nginx' })).object;
  many.status = { loadBalancer: { ingress: ingresses } };
  t.like(row(Ingress, many), {
    Class: 'nginx',
    Hosts: 'a.io,b.io,c.io + 2 more...',
    Address: '2.2.2.2,a.example',
    Ports: '80, 443',
  });
  t.like(row(Ingress, create(Ingress, ingressManifest({ backend })).object), {
    Class: '<none>',
    Hosts: '*',
    Address: '',
    Ports: '80',
  });
});

const endpoints = (subset: Record<string, unknown>) => ({
  metadata: { name: 'e', namespace: 'default' },
  subsets: [subset],
});
for (const [title, subset, causes] of [
  ['addresses and ports', { addresses: [{ ip: '10.0.0.1' }], ports: [{ port: 80 }] }, []],
  ['no addresses', { ports: [{ port: 80 }] }, ['subsets[0] Required']],
  ['a name for an address', { addresses: [{ ip: 'a.b' }] }, ['subsets[0].addresses[0].ip Invalid']],
  ['the loopback', { notReadyAddresses: [{ ip: '::1' }] }, ['subsets[0].notReadyAddresses[0].ip Invalid']],
  [
    'two ports without names',
    { addresses: [{ ip: '10.0.0.1' }], ports: [{ port: 1 }, { port: 2, name: 'b' }] },
    ['subsets[0].ports[0].name Required'],
  ],
  [
    'a port too large',
    { addresses: [{ ip: '10.0.0.1' }], ports: [{ port: 70000 }] },
    ['subsets[0].ports[0].port Invalid'],
  ],
] as readonly Case[]) {
  test(`Endpoints with ${title}`, (t) => {
    t.deepEqual(create(Endpoints, endpoints(subset)).causes, causes);
  });
}

test('table rows of endpoints', (t) => {
  const addresses = [{ ip: '10.0.0.1' }, { ip: '2001:db8::1' }];
  const two = create(
    Endpoints,
    endpoints({
      addresses,
      ports: [
        { name: 'a', port: 80 },
        { name: 'b', port: 81 },
      ],
    }),
  ).object;
  t.is(row(Endpoints, two)['Endpoints'], '10.0.0.1:80,[2001:db8::1]:80,10.0.0.1:81 + 1 more...');
  t.is(two.subsets?.[0]?.ports?.[0]?.protocol, 'TCP');
  t.is(row(Endpoints, { metadata: {} })['Endpoints'], '<none>');
});

test('a condition without lastTransitionTime is accepted and has null there, as Go writes a zero time', (t) => {
  const condition = { type: 'Ready', status: 'True', reason: 'Test', message: '', lastTransitionTime: null };
  const service = defaulted(Service, { ...serviceManifest(), status: { conditions: [condition] } });
  t.deepEqual(service.status?.conditions, [condition] as never);
});
