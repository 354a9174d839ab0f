import type { Container, Pod, Service } from '@keelson/kinds';
import test from 'ava';
import type { ObjectReader } from '../../../src/base/pod/object-reader.ts';
import {
  ContainerConfigError,
  containerEnvironment,
  expand,
} from '../../../src/pods/environment/container-environment.ts';
import { parseResolvConf, podDns } from '../../../src/pods/start-preparation.ts';
import { testPod } from '../../support/bench.ts';

const values: Readonly<Record<string, string>> = { A: 'a', B: 'b', LOOP: '$(A)', EMPTY: '' };

for (const [text, expected] of [
  ['$(A)', 'a'],
  ['$(A)$(B)', 'ab'],
  ['x$(A)y', 'xay'],
  ['$$(A)', '$(A)'],
  ['$$$(A)', '$a'],
  ['$$$$(A)', '$$(A)'],
  ['$(LOOP)', '$(A)'],
  ['$(NONE)', '$(NONE)'],
  ['$(EMPTY)', ''],
  ['$A', '$A'],
  ['$(A', '$(A'],
  ['$', '$'],
  ['cost: $5', 'cost: $5'],
] as const) {
  test(`expand: ${text} → ${expected}`, (t) =>
    t.is(
      expand(text, (name) => values[name]),
      expected,
    ));
}

const objects: ObjectReader = {
  claim: async () => undefined,
  volume: async () => undefined,
  configMap: async (_, name) =>
    name === 'map' ? { data: { colour: 'blue', 'not=a name': 'x', __proto__x: 'p' } } : undefined,
  secret: async (_, name) => (name === 'safe' ? { data: { word: Buffer.from('hush').toString('base64') } } : undefined),
  services: async () => [
    {
      metadata: { name: 'my-db' },
      spec: { clusterIP: '10.1.1.1', ports: [{ port: 5432, name: 'pg', protocol: 'TCP' }] },
    },
  ],
};
const facts = {
  place: { nodeName: 'n', hostIps: ['192.0.2.1'], podIps: ['10.0.0.9'] },
  objects,
  allocatable: { cpu: '4', memory: '8Gi' },
};

test('variables come from every source, later ones override earlier ones, and may refer to each other', async (t) => {
  const container: Container = {
    name: 'main',
    resources: { limits: { cpu: '1500m', memory: '64Mi' } },
    envFrom: [
      { prefix: 'P_', configMapRef: { name: 'map' } },
      { secretRef: { name: 'safe' } },
      { configMapRef: { name: 'none', optional: true } },
    ],
    env: [
      { name: 'word', value: 'own' },
      { name: 'JOIN', value: '$(P_colour)/$(word)/$(MY_DB_SERVICE_HOST)' },
      { name: 'IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
      { name: 'LABEL', valueFrom: { fieldRef: { fieldPath: "metadata.labels['app']" } } },
      { name: 'CPU', valueFrom: { resourceFieldRef: { resource: 'limits.cpu', divisor: '0' } } },
      { name: 'MEM', valueFrom: { resourceFieldRef: { resource: 'limits.memory', divisor: '1Mi' } } },
      { name: 'KEY', valueFrom: { secretKeyRef: { name: 'safe', key: 'word' } } },
      { name: 'MAYBE', valueFrom: { configMapKeyRef: { name: 'map', key: 'none', optional: true } } },
    ],
  };
  const pod = testPod('env', { containers: [container] });
  pod.metadata!.labels = { app: 'web' };
  const { variables, skipped } = await containerEnvironment(pod, container, facts);
  const found = Object.fromEntries(variables);
  t.like(found, {
    P_colour: 'blue',
    word: 'own',
    JOIN: 'blue/own/10.1.1.1',
    IP: '10.0.0.9',
    LABEL: 'web',
    CPU: '2',
    MEM: '64',
    KEY: 'hush',
  });
  t.like(found, { MY_DB_SERVICE_PORT: '5432', MY_DB_SERVICE_PORT_PG: '5432', MY_DB_PORT_5432_TCP_ADDR: '10.1.1.1' });
  t.false(variables.has('MAYBE'));
  t.is(skipped.length, 1);
});

test('a missing object that is not optional delays the container, with a message that names it', async (t) => {
  const failing = async (container: Partial<Container>) => {
    const whole = { name: 'main', ...container };
    return t.throwsAsync(containerEnvironment(testPod('env'), whole, facts), { instanceOf: ContainerConfigError });
  };
  t.is((await failing({ envFrom: [{ configMapRef: { name: 'none' } }] }))?.message, 'configmap "none" not found');
  const key = { name: 'X', valueFrom: { secretKeyRef: { name: 'safe', key: 'none' } } };
  t.is((await failing({ env: [key] }))?.message, `couldn't find key none in secret "safe"`);
  await failing({ env: [{ name: 'X', valueFrom: { fieldRef: { fieldPath: 'spec.containers' } } }] });
});

test('a limit that is not set defaults to the allocatable resources of the node', async (t) => {
  const env = [{ name: 'CPU', valueFrom: { resourceFieldRef: { resource: 'limits.cpu' } } }];
  const { variables } = await containerEnvironment(testPod('env'), { name: 'main', env }, facts);
  t.is(variables.get('CPU'), '4');
});

const machine = parseResolvConf('# x\nnameserver 1.1.1.1\nsearch old\nsearch corp.example. lan\noptions timeout:1\n');
const dns = { servers: ['10.96.0.10'], domain: 'cluster.local', resolvConf: '/etc/resolv.conf' };

test('the DNS configuration of pods depends on policy, network and limits', (t) => {
  const cluster = podDns(testPod('a', { dnsPolicy: 'ClusterFirst' }), dns, machine).dns;
  t.deepEqual(cluster, {
    servers: ['10.96.0.10'],
    searches: ['default.svc.cluster.local', 'svc.cluster.local', 'cluster.local', 'corp.example', 'lan'],
    options: ['ndots:5'],
  });
  t.deepEqual(podDns(testPod('a', { dnsPolicy: 'ClusterFirst', hostNetwork: true }), dns, machine).dns, machine);
  t.deepEqual(podDns(testPod('a', { dnsPolicy: 'Default' }), dns, undefined).dns, {
    servers: ['127.0.0.1'],
    searches: ['.'],
    options: [],
  });
  t.is(podDns(testPod('a'), { ...dns, servers: [] }, machine).warnings[0]?.reason, 'MissingClusterDNS');
  const own = podDns(
    testPod('a', { dnsPolicy: 'None', dnsConfig: { nameservers: ['1', '2', '3', '4'], options: [{ name: 'edns0' }] } }),
    dns,
    machine,
  );
  t.deepEqual(own.dns, { servers: ['1', '2', '3'], searches: [], options: ['edns0'] });
  t.is(own.warnings[0]?.reason, 'DNSConfigForming');
});

test('every pod has the variables of the API server, also in other namespaces and without service links', async (t) => {
  const service = (name: string, clusterIP: string) =>
    ({ metadata: { name }, spec: { clusterIP, ports: [{ port: 443, name: 'https' }] } }) as Service;
  const all: Readonly<Record<string, readonly Service[]>> = {
    default: [service('kubernetes', '192.0.2.9'), service('web', '192.0.2.10')],
    other: [service('db', '192.0.2.11')],
  };
  const reader: ObjectReader = { ...objects, services: async (namespace) => all[namespace] ?? [] };
  const hosts = async (namespace: string, spec: Partial<Pod['spec']>) => {
    const pod = testPod('p', { containers: [{ name: 'main' }], ...spec });
    pod.metadata!.namespace = namespace;
    const { variables } = await containerEnvironment(pod, { name: 'main' }, { ...facts, objects: reader });
    return [...variables.keys()].filter((name) => name.endsWith('_SERVICE_HOST')).sort();
  };
  const server = 'KUBERNETES_SERVICE_HOST';
  t.deepEqual(await hosts('default', {}), [server, 'WEB_SERVICE_HOST']);
  t.deepEqual(await hosts('other', {}), ['DB_SERVICE_HOST', server]);
  t.deepEqual(await hosts('other', { enableServiceLinks: false }), [server]);
});
