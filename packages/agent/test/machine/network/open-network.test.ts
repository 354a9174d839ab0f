import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { silentLogger, systemClock } from '@keelson/core/runtime';
import { createFakeRuntime, FakeWorld } from '@keelson/runtime-fake';
import { missingForNamespaces, networkNamespace, temporaryDirectory } from '@keelson/test-support';
import anyTest, { type ExecutionContext } from 'ava';
import { openNetwork, requirePodNetwork } from '../../../src/machine/network/pod-network.ts';
import { parseOptions } from '../../../src/startup/options/parse-options.ts';
import { resolveConfig } from '../../../src/startup/options/resolve-config.ts';
import { wordsConfig } from '../../support/bench.ts';

const missing = missingForNamespaces('../lib/cni/bridge');
const test = missing.length === 0 ? anyTest : anyTest.skip;
const needs = missing.length === 0 ? '' : ` (needs ${missing.join(', ')})`;

/** The network that these options open, on a node and for a pod of their own. */
async function opened(t: ExecutionContext, ...words: readonly string[]) {
  const directory = await temporaryDirectory(t);
  const [node, pod] = [await networkNamespace(t), await networkNamespace(t)];
  const network = openNetwork(wordsConfig(directory, words), {
    clock: systemClock,
    logger: silentLogger,
    launch: node.launch,
  });
  if (network === undefined) throw new Error('no network');
  const request = { sandboxId: pod.name, namespace: 'web', name: 'front', netnsPath: pod.path };
  const port = async () => {
    const [link] = JSON.parse(await node.run('ip', '-j', '-d', 'link', 'show', 'type', 'veth')) as Record<
      string,
      unknown
    >[];
    return (link?.['linkinfo'] as { info_slave_data?: { hairpin?: boolean } } | undefined)?.info_slave_data?.hairpin;
  };
  return { directory, node, pod, network, request, port };
}

anyTest('without --network-plugin the network of the runtime is used', (t) => {
  t.is(openNetwork(wordsConfig('/x', []), { clock: systemClock, logger: silentLogger }), undefined);
});

test(`--network-plugin=bridge: addresses of --pod-cidr, --network-plugin-mtu, --hairpin-mode${needs}`, async (t) => {
  t.timeout(120_000);
  const words = ['--network-plugin=kubenet', '--cni-bin-dir=/nowhere,/usr/lib/cni', '--pod-cidr=10.66.1.0/24'];
  const { node, pod, network, request, port } = await opened(
    t,
    ...words,
    '--network-plugin-mtu=1300',
    '--hairpin-mode=hairpin-veth',
  );
  t.is(network.name, 'bridge');
  t.deepEqual(await network.add(request), { ips: ['10.66.1.2'] });
  t.regex(await pod.run('ip', 'link', 'show', 'eth0'), /mtu 1300 /);
  t.true(await port());
  t.notRegex(await node.run('ip', 'link', 'show', 'cbr0'), /PROMISC/);
  await network.remove(request);
});

test(`--network-plugin=bridge by default: MTU 1460 and a promiscuous bridge${needs}`, async (t) => {
  t.timeout(120_000);
  const { node, pod, network, request, port } = await opened(
    t,
    '--network-plugin=bridge',
    '--cni-bin-dir=/usr/lib/cni',
    '--pod-cidr=10.66.1.0/24',
    '--iptables-drop-bit=13',
  );
  await network.add({ ...request, portMappings: [{ protocol: 'TCP', containerPort: 80, hostPort: 18_082 }] });
  t.regex(await pod.run('ip', 'link', 'show', 'eth0'), /mtu 1460 /);
  t.regex(await node.run('ip', 'link', 'show', 'cbr0'), /PROMISC/);
  t.false(await port());
  t.regex(
    await node.run('iptables-save', '-t', 'nat'),
    /CNI-HOSTPORT-SETMARK .*--set-xmark 0x1000\/0x1000/,
    'not the bit for dropping',
  );
  await network.remove(request);
});

for (const [mode, hairpin] of [
  ['hairpin-veth', true],
  ['none', false],
  ['promiscuous-bridge', true],
] as const) {
  test(`--network-plugin=cni: networks of --cni-conf-dir, plugins of --cni-bin-dir, --hairpin-mode=${mode}${needs}`, async (t) => {
    t.timeout(120_000);
    const confDir = join(await temporaryDirectory(t), 'net.d');
    await mkdir(confDir);
    const words = ['--network-plugin=cni', '--cni-bin-dir=/usr/lib/cni', `--cni-conf-dir=${confDir}`];
    const { directory, network, request, port } = await opened(
      t,
      ...words,
      '--pod-cidr=10.66.2.0/24',
      `--hairpin-mode=${mode}`,
    );
    const reason = 'NetworkPluginNotReady';
    const message = `no network config found in ${confDir}`;
    t.deepEqual(await network.status(), { ready: false, reason, message });
    const ipam = { type: 'host-local', dataDir: join(directory, 'addresses') };
    const plugins = [{ type: 'bridge', bridge: 'kbr0', isGateway: true, capabilities: { ipRanges: true }, ipam }];
    await writeFile(join(confDir, 'pods.conflist'), JSON.stringify({ cniVersion: '0.4.0', name: 'pods', plugins }));
    t.deepEqual(await network.status(), { ready: true });
    t.deepEqual(await network.add(request), { ips: ['10.66.2.2'] });
    t.is(await port(), hairpin);
    await network.remove(request);
  });
}

anyTest('with an API server the address range is that of the node, not of --pod-cidr', async (t) => {
  const words = ['--network-plugin=bridge', `--cni-bin-dir=${await temporaryDirectory(t)}`, '--pod-cidr=10.66.1.0/24'];
  const config = wordsConfig(await temporaryDirectory(t), [...words, '--clusterconfig=/c']);
  const network = openNetwork(config, { clock: systemClock, logger: silentLogger });
  const message = async () => {
    const status = await network?.status();
    return status === undefined || status.ready ? '' : status.message;
  };
  t.regex(await message(), /no pod CIDR/);
  network?.updateConfig({ podCidr: '10.66.9.0/24' });
  t.regex(await message(), /failed to find plugin "bridge"/);
});

anyTest('a network plugin is rejected when pods of the runtime have no network of their own', (t) => {
  const { runtime } = createFakeRuntime(new FakeWorld());
  const hostOnly = { name: 'process', capabilities: { ...runtime.capabilities, podNetwork: false } };
  t.notThrows(() => requirePodNetwork({ plugin: 'cni' }, runtime));
  t.notThrows(() => requirePodNetwork({ plugin: '' }, hostOnly));
  t.throws(() => requirePodNetwork({ plugin: 'cni' }, hostOnly), {
    message:
      /^--network-plugin=cni needs a runtime whose pods have a network of their own; those of the runtime process/,
  });
});

for (const [words, message] of [
  [
    ['--network-plugin=flannel'],
    /--network-plugin: unsupported value "flannel"; use one of \(empty\), cni, bridge, kubenet/,
  ],
  [['--pod-cidr=10.1.2.3'], /--pod-cidr must be a range such as 10.1.2.0\/24, not "10.1.2.3"/],
  [['--network-plugin=cni', '--cni-conf-dir='], /--network-plugin=cni needs --cni-conf-dir/],
  [['--network-plugin=bridge', '--cni-bin-dir='], /--network-plugin=bridge needs --cni-bin-dir/],
  [['--network-plugin-mtu=-1'], /--network-plugin-mtu must be at least 0/],
] as const) {
  anyTest(`invalid options are rejected: ${words.join(' ')}`, (t) => {
    t.throws(() => wordsConfig('/x', words), { message });
  });
}

for (const [words, warnings] of [
  [['--network-plugin=cni'], []],
  [
    ['--cni-bin-dir=/x', '--hairpin-mode=none'],
    ['--cni-bin-dir has no effect without --network-plugin', '--hairpin-mode has no effect without --network-plugin'],
  ],
  [
    ['--network-plugin=bridge', '--cni-conf-dir=/x', '--network-plugin-mtu=1'],
    ['--cni-conf-dir has no effect with --network-plugin=bridge, which needs no configuration'],
  ],
  [
    ['--network-plugin=cni', '--network-plugin-mtu=1', '--hairpin-mode=promiscuous-bridge'],
    [
      '--network-plugin-mtu has no effect with --network-plugin=cni: its configuration has the MTU',
      '--hairpin-mode=promiscuous-bridge needs --network-plugin=bridge; hairpin-veth is used',
    ],
  ],
  [
    ['--network-plugin=cni', '--container-runtime-endpoint=unix:///x'],
    ['--network-plugin has no effect with --container-runtime-endpoint: the runtime has a network of its own'],
  ],
  [
    ['--pod-cidr=10.0.0.0/8', '--clusterconfig=/c'],
    ["--pod-cidr has no effect with an API server: the node's spec.podCIDR is used"],
  ],
  [['--cloud-config=/x'], ['--cloud-config has no effect without --cloud-provider']],
  [['--cloud-config=/x', '--cloud-provider=external'], ['--cloud-config has no effect with --cloud-provider=external']],
  [
    ['--make-iptables-util-chains=false', '--iptables-drop-bit=1'],
    ['--iptables-drop-bit has no effect without --make-iptables-util-chains'],
  ],
] as const) {
  anyTest(`options without effect cause a warning: ${words.join(' ')}`, (t) => {
    const machine = { hostname: () => 'n', fileExists: () => false };
    t.deepEqual(resolveConfig(parseOptions([...words]), machine).warnings, [...warnings]);
  });
}
