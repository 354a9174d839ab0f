import { existsSync } from 'node:fs';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { silentLogger, systemClock } from '@keelson/core/runtime';
import anyTest from 'ava';
import {
  type BridgeNetworkOptions,
  createBridgeNetwork,
  createCniNetwork,
  type HairpinMode,
  NetworkError,
} from '../src/index.ts';
import { type Bench, binDirs, missingHere, openBench } from './support/namespaces.ts';

const missing = missingHere();
const test = missing.length === 0 ? anyTest : anyTest.skip;
const needs = missing.length === 0 ? '' : ` (needs ${missing.join(', ')})`;

const common = { binDirs, clock: systemClock, logger: silentLogger };
const bridgeOf = ({ stateDirectory, launch }: Bench, options: Partial<BridgeNetworkOptions> = {}) =>
  createBridgeNetwork({ ...common, stateDirectory, launch, podCidr: '10.77.3.0/24', bridge: 'tbr0', ...options });

/** Three through the service, and one after them. */
const datagrams = `const s = require('dgram').createSocket('udp4');
  const send = (text, port, host) => new Promise((done) => s.send(text, port, host, () => setTimeout(done, 50)));
  send('one', 53, '10.99.0.1').then(() => send('two', 53, '10.99.0.1')).then(() => send('three', 53, '10.99.0.1'))
    .then(() => send('last', 5300, '10.77.3.3')).then(() => s.close())`;

interface Link {
  readonly ifname: string;
  readonly mtu: number;
  readonly promiscuity: number;
  readonly flags: readonly string[];
  readonly master?: string;
  readonly linkinfo?: { readonly info_slave_data?: { readonly hairpin?: boolean } };
}

const linksOf = async ({ node }: Bench) => JSON.parse(await node.run('ip', '-j', '-d', 'link', 'show')) as Link[];
const rulesOf = ({ node }: Bench) => node.run('iptables-save');
const reserved = async ({ stateDirectory }: Bench) =>
  (await readdir(join(stateDirectory, 'addresses', 'pods'))).filter((name) => /^\d|:/.test(name));

for (const [mode, hairpin, promiscuous] of [
  ['promiscuous-bridge', false, true],
  ['hairpin-veth', true, false],
  ['none', false, false],
] as readonly (readonly [HairpinMode, boolean, boolean])[]) {
  test(`a bridge with hairpin mode ${mode} connects pods with each other and with the node${needs}`, async (t) => {
    t.timeout(120_000);
    const bench = await openBench(t);
    const network = bridgeOf(bench, { hairpinMode: mode });
    t.deepEqual(await network.status(), { ready: true });
    const [a, b] = [await bench.pod('a'), await bench.pod('b')];
    t.deepEqual(await network.add(a.request), { ips: ['10.77.3.2'] });
    t.deepEqual(await network.add(b.request), { ips: ['10.77.3.3'] });
    await network.check(a.request);
    const links = await linksOf(bench);
    const bridge = links.find(({ ifname }) => ifname === 'tbr0');
    t.is(bridge?.mtu, 1460);
    t.is(bridge?.flags.includes('PROMISC'), promiscuous);
    const ports = links.filter(({ master }) => master === 'tbr0');
    t.deepEqual(
      ports.map(({ linkinfo }) => linkinfo?.info_slave_data?.hairpin),
      [hairpin, hairpin],
    );
    t.regex(await a.run('ip', 'link', 'show', 'eth0'), /mtu 1460 .*state UP/);
    t.regex(await a.run('ip', 'link', 'show', 'lo'), /LOOPBACK,UP/);
    await a.serve(80);
    t.is(await b.ask('10.77.3.2', 80), '10.77.3.3');
    t.is(await bench.node.ask('10.77.3.2', 80), '10.77.3.1');
    await network.remove(b.request);
    t.is((await linksOf(bench)).filter(({ master }) => master === 'tbr0').length, 1);
    t.deepEqual(await reserved(bench), ['10.77.3.2']);
    t.is(await bench.node.ask('10.77.3.2', 80), '10.77.3.1', 'the other pod is still there');
    await network.remove(a.request);
    t.notRegex(await rulesOf(bench), /10\.77\.3\./, 'no rule of a pod is left');
  });
}

test(`a published port of a pod is reachable through the node until the pod is removed${needs}`, async (t) => {
  t.timeout(120_000);
  const bench = await openBench(t);
  const network = bridgeOf(bench, { portMarkBit: 11 });
  const pod = await bench.pod('a');
  await pod.serve(80);
  await network.add({ ...pod.request, portMappings: [{ protocol: 'TCP', containerPort: 80, hostPort: 18_080 }] });
  t.regex(await bench.node.ask('10.77.3.1', 18_080), /^10\.77\.3\.1$/);
  t.regex(await rulesOf(bench), /--set-xmark 0x800\/0x800/);
  await network.remove(pod.request);
  t.is(await bench.node.ask('10.77.3.1', 18_080), 'ECONNREFUSED');
  t.notRegex(await rulesOf(bench), /CNI-DN-/);
});

const seesFrames = existsSync('/proc/sys/net/bridge/bridge-nf-call-iptables');
const testFrames = seesFrames ? test : anyTest.skip;
const needsFrames = seesFrames ? needs : ' (needs br_netfilter)';

testFrames(
  `a promiscuous bridge delivers packets to a service once, also where packet filters see bridged frames${needsFrames}`,
  async (t) => {
    t.timeout(120_000);
    const bench = await openBench(t);
    const network = bridgeOf(bench, { hairpinMode: 'promiscuous-bridge' });
    const [a, b] = [await bench.pod('a'), await bench.pod('b')];
    await bench.node.run('sh', '-c', 'echo 1 > /proc/sys/net/bridge/bridge-nf-call-iptables');
    await network.add(a.request);
    await network.add(b.request);
    const service = [
      '-d',
      '10.99.0.1/32',
      '-p',
      'udp',
      '--dport',
      '53',
      '-j',
      'DNAT',
      '--to-destination',
      '10.77.3.3:5300',
    ];
    await bench.node.run('iptables', '-t', 'nat', '-A', 'PREROUTING', ...service);
    const received = await b.receive(5300);
    await a.run(process.execPath, '-e', datagrams);
    t.deepEqual(await received('last'), ['one', 'two', 'three', 'last']);
  },
);

test(`packets of a pod to the outside have the address of the node, and bandwidth limits apply${needs}`, async (t) => {
  t.timeout(120_000);
  const bench = await openBench(t);
  const outside = await bench.namespace('out');
  await bench.node.run(
    'ip',
    'link',
    'add',
    'up0',
    'type',
    'veth',
    'peer',
    'name',
    'eth0',
    'netns',
    outside.path.slice('/run/netns/'.length),
  );
  await bench.node.run('ip', 'address', 'add', '192.0.2.1/24', 'dev', 'up0');
  await bench.node.run('ip', 'link', 'set', 'up0', 'up');
  await outside.run('ip', 'address', 'add', '192.0.2.9/24', 'dev', 'eth0');
  await outside.run('ip', 'link', 'set', 'eth0', 'up');
  await outside.serve(80);
  const pod = await bench.pod('a');
  const network = bridgeOf(bench, { mtu: 1400 });
  await network.add({ ...pod.request, bandwidth: { ingressRate: 5_000_000 } });
  // There is no way back to the pod's own address.
  t.is(await pod.ask('192.0.2.9', 80), '192.0.2.1');
  t.regex(await bench.node.run('tc', 'qdisc', 'show'), /tbf .* rate 5Mbit/);
  t.regex(await pod.run('ip', 'link', 'show', 'eth0'), /mtu 1400 /);
  await network.remove(pod.request);
});

test(`addresses are released after the namespace is gone, also by another agent${needs}`, async (t) => {
  t.timeout(120_000);
  const bench = await openBench(t);
  const [a, b] = [await bench.pod('a'), await bench.pod('b')];
  const first = bridgeOf(bench);
  await first.add(a.request);
  await bench.node.run('ip', 'netns', 'delete', a.path.slice('/run/netns/'.length));
  const second = bridgeOf(bench, { podCidr: '10.77.4.0/24' });
  t.deepEqual(await second.add(b.request), { ips: ['10.77.4.2'] });
  await second.sweep(new Set([b.request.sandboxId]));
  t.deepEqual(await reserved(bench), ['10.77.4.2']);
  second.updateConfig({ podCidr: '10.77.5.0/24' });
  await second.remove(b.request);
  t.deepEqual(await second.add(b.request), { ips: ['10.77.5.2'] });
  await second.remove(b.request);
});

test(`an exhausted address range fails with the message of the plugin and leaves no interface behind${needs}`, async (t) => {
  t.timeout(120_000);
  const bench = await openBench(t);
  // One address for the bridge, one for a pod.
  const network = bridgeOf(bench, { podCidr: '10.77.3.0/30' });
  const [a, b] = [await bench.pod('a'), await bench.pod('b')];
  await network.add(a.request);
  const error = await t.throwsAsync(network.add(b.request), { instanceOf: NetworkError });
  t.regex(error?.message ?? '', /^plugin bridge failed \(ADD\): .*no IP addresses available in range/);
  t.deepEqual(await reserved(bench), ['10.77.3.2']);
  t.is((await linksOf(bench)).filter(({ master }) => master === 'tbr0').length, 1);
  await network.remove(a.request);
  await network.add(b.request);
});

test(`without an address range or without plugins the bridge is not ready${needs}`, async (t) => {
  const bench = await openBench(t);
  const { stateDirectory } = bench;
  const network = createBridgeNetwork({ ...common, stateDirectory });
  const reason = 'NetworkPluginNotReady';
  const message = 'the node has no pod CIDR (option --pod-cidr, or spec.podCIDR of the node)';
  t.deepEqual(await network.status(), { ready: false, reason, message });
  const pod = await bench.pod('a');
  await t.throwsAsync(network.add(pod.request), { code: 'Unavailable' });
  network.updateConfig({ podCidr: '10.77.3.0/24' });
  t.deepEqual(await network.status(), { ready: true });
  const empty = createBridgeNetwork({ ...common, stateDirectory, binDirs: ['/nowhere'], podCidr: '10.77.3.0/24' });
  t.deepEqual(await empty.status(), {
    ready: false,
    reason,
    message: 'failed to find plugin "bridge" in path [/nowhere]',
  });
});

async function conflist(bench: Bench): Promise<string> {
  const confDir = join(bench.stateDirectory, 'net.d');
  await mkdir(confDir);
  await writeFile(
    join(confDir, '10-pods.conflist'),
    JSON.stringify({
      cniVersion: '1.0.0',
      name: 'pods',
      plugins: [
        {
          type: 'bridge',
          bridge: 'tbr1',
          isGateway: true,
          capabilities: { ipRanges: true },
          ipam: {
            type: 'host-local',
            dataDir: join(bench.stateDirectory, 'addresses'),
            routes: [{ dst: '0.0.0.0/0' }],
          },
        },
        { type: 'portmap', capabilities: { portMappings: true } },
      ],
    }),
  );
  return confDir;
}

for (const hairpin of [true, false]) {
  test(`a folder of networks with Debian's plugins: addresses of the node's range, ports, hairpin ${hairpin ? 'on' : 'off'}${needs}`, async (t) => {
    t.timeout(120_000);
    const bench = await openBench(t);
    const { stateDirectory, launch } = bench;
    const confDir = await conflist(bench);
    const network = createCniNetwork({ ...common, confDir, stateDirectory, launch, podCidr: '10.77.9.0/24', hairpin });
    t.deepEqual(await network.status(), { ready: true });
    const pod = await bench.pod('a');
    await pod.serve(80);
    t.deepEqual(
      await network.add({ ...pod.request, portMappings: [{ protocol: 'TCP', containerPort: 80, hostPort: 18_081 }] }),
      {
        ips: ['10.77.9.2'],
      },
    );
    t.is(await bench.node.ask('10.77.9.1', 18_081), '10.77.9.1');
    const port = (await linksOf(bench)).find(({ master }) => master === 'tbr1');
    t.is(port?.linkinfo?.info_slave_data?.hairpin, hairpin);
    await network.remove(pod.request);
    t.is(await bench.node.ask('10.77.9.1', 18_081), 'ECONNREFUSED');
    t.deepEqual(await reserved(bench), []);
  });
}

for (const [family, podCidr, gateway, pattern] of [
  ['IPv4', '10.77.3.0/24', '10.77.3.1', /^10\.77\.3\.\d+$/],
  ['IPv6', 'fd00:77::/64', 'fd00:77::1', /^fd00:77::[0-9a-f]+$/],
] as const) {
  test(`pods that are added and removed concurrently, with ${family} addresses, get unique addresses and release them${needs}`, async (t) => {
    t.timeout(120_000);
    const bench = await openBench(t);
    const network = bridgeOf(bench, { podCidr });
    const pods = await Promise.all([...'abcdefgh'].map((name) => bench.pod(name)));
    const added = await Promise.all(
      pods.map(({ request }, index) =>
        network.add({ ...request, portMappings: [{ protocol: 'TCP', containerPort: 80, hostPort: 19_000 + index }] }),
      ),
    );
    const ips = added.flatMap((attachment) => attachment.ips);
    t.is(new Set(ips).size, pods.length);
    for (const ip of ips) t.regex(ip, pattern);
    const [first] = pods;
    t.regex(
      (await first?.run('ip', '-j', family === 'IPv6' ? '-6' : '-4', 'route', 'show', 'default')) ?? '',
      new RegExp(`"${gateway}"`),
    );
    await Promise.all(pods.map(({ request }) => network.remove(request)));
    t.deepEqual(await reserved(bench), []);
    for (const save of ['iptables-save', 'ip6tables-save']) t.notRegex(await bench.node.run(save), /CNI-DN-|id: /);
  });
}
