import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { DnsConfig } from '@keelson/container-runtime';
import type { Pod } from '@keelson/kinds';
import { temporaryDirectory } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { type Bench, startBench, testPod } from '../../support/bench.ts';

/** Starts a pod under these options, on a machine with this resolv.conf. */
async function started(t: ExecutionContext, words: readonly string[], spec: Partial<Pod['spec']>, resolvConf: string) {
  const path = join(await temporaryDirectory(t), 'resolv.conf');
  await writeFile(path, resolvConf);
  const dns: DnsConfig[] = [];
  const bench: Bench = await startBench(t, {
    // The last one given counts.
    words: [`--resolv-conf=${path}`, ...words],
    script: ({ sandbox }) => {
      if (sandbox.dns) dns.push(sandbox.dns);
      return {};
    },
  });
  const pod = testPod('web', spec);
  bench.pods.put(pod);
  await bench.until(() => bench.status(pod).phase === 'Running');
  return { dns: dns[0], events: bench.events.filter(({ reason }) => /DNS/.test(reason)) };
}

const machine = 'nameserver 192.0.2.53\nnameserver 192.0.2.54\nsearch corp.example lan\noptions timeout:1 rotate\n';
const copied = {
  servers: ['192.0.2.53', '192.0.2.54'],
  searches: ['corp.example', 'lan'],
  options: ['timeout:1', 'rotate'],
};
const cluster = ['--cluster-dns=10.96.0.10,10.96.0.11', '--cluster-domain=cluster.local.'];
const first = { dnsPolicy: 'ClusterFirst' } as const;

test('--cluster-dns and --cluster-domain: name servers, the domains of the namespace and of the host, and ndots', async (t) => {
  const { dns, events } = await started(t, cluster, first, machine);
  t.deepEqual(dns, {
    servers: ['10.96.0.10', '10.96.0.11'],
    searches: ['default.svc.cluster.local', 'svc.cluster.local', 'cluster.local', 'corp.example', 'lan'],
    options: ['ndots:5'],
  });
  t.deepEqual(events, []);
});

test('--cluster-dns without --cluster-domain: only the domains of the host', async (t) => {
  const { dns } = await started(t, ['--cluster-dns=10.96.0.10'], first, machine);
  t.deepEqual(dns, { servers: ['10.96.0.10'], searches: ['corp.example', 'lan'], options: ['ndots:5'] });
});

test('without --cluster-dns pods have the DNS configuration of the host, and an event reports it', async (t) => {
  const { dns, events } = await started(t, ['--cluster-domain=cluster.local'], first, machine);
  t.deepEqual(dns, copied);
  t.deepEqual(
    events.map(({ type, reason, pod }) => [type, reason, pod]),
    [['Warning', 'MissingClusterDNS', 'web']],
  );
});

for (const [what, spec, expected] of [
  ['policy Default', { dnsPolicy: 'Default' }, copied.servers],
  ['the network of the machine', { ...first, hostNetwork: true }, copied.servers],
  [
    'the network of the machine and ClusterFirstWithHostNet',
    { dnsPolicy: 'ClusterFirstWithHostNet', hostNetwork: true },
    ['10.96.0.10', '10.96.0.11'],
  ],
] as const) {
  test(`--resolv-conf determines the name servers: ${what}`, async (t) => {
    const { dns, events } = await started(t, cluster, spec, machine);
    t.deepEqual(dns?.servers, expected);
    t.deepEqual(events, []);
  });
}

test('an empty --resolv-conf: no domain of the host, and 127.0.0.1 for policy Default', async (t) => {
  const words = [...cluster, '--resolv-conf='];
  t.deepEqual((await started(t, words, { dnsPolicy: 'Default' }, machine)).dns, {
    servers: ['127.0.0.1'],
    searches: ['.'],
    options: [],
  });
  t.deepEqual((await started(t, words, first, machine)).dns?.searches, [
    'default.svc.cluster.local',
    'svc.cluster.local',
    'cluster.local',
  ]);
});

test('DNS settings are limited to 3 servers, 6 domains and 256 characters, and an event contains the applied ones', async (t) => {
  const many = `${[1, 2, 3, 4].map((n) => `nameserver 192.0.2.${n}\n`).join('')}search a b c d\n`;
  const wide = await started(t, cluster, first, many);
  t.deepEqual(wide.dns?.searches.slice(3), ['a', 'b', 'c']);
  t.deepEqual(
    wide.events.map(({ reason, message }) => [reason, message]),
    [
      [
        'DNSConfigForming',
        'Search line limits were exceeded, the applied search line is: default.svc.cluster.local svc.cluster.local cluster.local a b c',
      ],
    ],
  );
  const servers = await started(t, [], { dnsPolicy: 'Default' }, many);
  t.deepEqual(servers.dns?.servers, ['192.0.2.1', '192.0.2.2', '192.0.2.3']);
  t.regex(servers.events[0]?.message ?? '', /^Nameserver limits were exceeded/);
  const long = ['x', 'y', 'z'].map((letter) => `${letter.repeat(60)}.${letter.repeat(39)}`);
  const cut = await started(t, cluster, first, `search ${long.join(' ')}\n`);
  t.deepEqual(cut.dns?.searches.slice(3), long.slice(0, 1), 'three of 100 characters do not fit beside the others');
  t.is(cut.events[0]?.reason, 'DNSConfigForming');
});

test('an unreadable --resolv-conf prevents the start of pods, with an event, until it can be read', async (t) => {
  const path = join(await temporaryDirectory(t), 'resolv.conf');
  const bench = await startBench(t, { words: [`--resolv-conf=${path}`] });
  const pod = testPod('web', first);
  bench.pods.put(pod);
  await bench.until(() =>
    bench.events.some(({ reason, message }) => reason === 'FailedCreatePodSandBox' && message.includes(path)),
  );
  t.is(bench.status(pod).phase, 'Pending');
  const { waiting } = bench.status(pod).containerStatuses?.[0]?.state ?? {};
  t.is(waiting?.reason, 'ContainerCreating');
  t.regex(waiting?.message ?? '', /^failed to create pod sandbox: ENOENT: .*resolv\.conf/);
  t.false(
    bench.events.some(({ reason }) => reason === 'FailedSync'),
    'one event suffices',
  );
  await writeFile(path, machine);
  await bench.until(() => bench.status(pod).phase === 'Running');
  await rm(path);
});
