import test from 'ava';
import type { Call } from './support/scripted-plugins.ts';
import { answers, netnsPath, request, scriptedPlugins } from './support/scripted-plugins.ts';

const list = (cniVersion: string | undefined, ...plugins: readonly object[]) => ({
  ...(cniVersion !== undefined && { cniVersion }),
  name: 'pods',
  plugins,
});
const shape = (calls: readonly Call[]) => calls.map(({ plugin, command }) => `${plugin} ${command}`);
const result = (version: string) => ({
  cniVersion: version,
  ips: [{ ...(version < '1' && { version: '4' }), address: '10.9.0.7/24' }],
});

for (const version of ['0.3.1', '0.4.0', '1.0.0'] as const) {
  test(`CNI ${version}: plugins are called in order with the previous result, and for DEL in reverse order`, async (t) => {
    const bench = await scriptedPlugins(t);
    await bench.plugin('first', answers(version));
    await bench.plugin('second', answers(version));
    await bench.network('10-pods.conflist', list(version, { type: 'first', mtu: 7 }, { type: 'second' }));
    const network = bench.open();
    t.deepEqual(await network.status(), { ready: true });
    t.deepEqual(await network.add(request), { ips: ['10.9.0.7'] });
    await network.check(request);
    await network.remove(request);
    const calls = await bench.calls();
    const checks = version === '0.3.1' ? [] : ['first CHECK', 'second CHECK'];
    t.deepEqual(shape(calls), ['loopback ADD', 'first ADD', 'second ADD', ...checks, 'second DEL', 'first DEL']);
    t.like(calls[0], { ifName: 'lo' });
    t.deepEqual(calls[1]?.stdin, { type: 'first', mtu: 7, name: 'pods', cniVersion: version });
    t.deepEqual(calls[2]?.stdin['prevResult'], result(version));
    // Before 0.4.0 results were not cached.
    const remembered = version === '0.3.1' ? undefined : result(version);
    for (const call of calls.slice(3))
      t.deepEqual(call.stdin['prevResult'], remembered, `${call.plugin} ${call.command}`);
    for (const call of calls.slice(1)) {
      t.like(call, { id: 's1', netns: netnsPath, ifName: 'eth0', path: bench.binDir });
      t.is(
        call.args,
        'IgnoreUnknown=1;K8S_POD_NAMESPACE=web;K8S_POD_NAME=front-1;K8S_POD_INFRA_CONTAINER_ID=s1;K8S_POD_UID=u-1',
      );
    }
  });
}

test('a file with a single plugin is a network, and one without a version uses the first version of CNI', async (t) => {
  const bench = await scriptedPlugins(t);
  await bench.plugin(
    'old',
    `if [ $CNI_COMMAND = ADD ]; then echo '{"ip4":{"ip":"10.9.0.8/24"},"ip6":{"ip":"fd00::8/64"}}'; fi`,
  );
  await bench.network('net.conf', { name: 'pods', type: 'old', bridge: 'x' });
  const network = bench.open();
  t.deepEqual(await network.add(request), { ips: ['10.9.0.8', 'fd00::8'] });
  t.deepEqual((await bench.calls())[1]?.stdin, { type: 'old', bridge: 'x', name: 'pods', cniVersion: '0.1.0' });
});

test('a network that disables CHECK is not checked', async (t) => {
  const bench = await scriptedPlugins(t);
  await bench.plugin('one', `${answers('1.0.0')}; [ $CNI_COMMAND != CHECK ]`);
  await bench.network('a.conflist', { ...list('1.0.0', { type: 'one' }), disableCheck: true });
  const network = bench.open();
  await network.add(request);
  await network.check(request);
  t.deepEqual(shape(await bench.calls()), ['loopback ADD', 'one ADD']);
  await t.throwsAsync(network.check({ sandboxId: 's2', netnsPath }), { code: 'NotFound' });
});

test('plugins receive the capability arguments that they declare, and no others', async (t) => {
  const bench = await scriptedPlugins(t);
  for (const name of ['ports', 'all', 'none']) await bench.plugin(name, answers('0.4.0'));
  await bench.network(
    'a.conflist',
    list(
      '0.4.0',
      { type: 'ports', capabilities: { portMappings: true, ipRanges: false } },
      { type: 'all', capabilities: { ipRanges: true, bandwidth: true, dns: true } },
      { type: 'none' },
    ),
  );
  const network = bench.open({ podCidr: '10.9.0.0/24' });
  await network.add({
    ...request,
    portMappings: [
      { protocol: 'TCP', containerPort: 80, hostPort: 8080, hostIp: '127.0.0.1' },
      { protocol: 'UDP', containerPort: 53, hostPort: 5353 },
      { protocol: 'TCP', containerPort: 443 },
    ],
    bandwidth: { ingressRate: 1_000_000 },
    dns: { servers: ['10.0.0.10'], searches: ['svc'], options: ['ndots:5'] },
  });
  network.updateConfig({ podCidr: '10.9.1.0/24' });
  await network.remove(request);
  await network.add({ ...request, sandboxId: 's2' });
  const calls = await bench.calls();
  const received = (plugin: string, command: string) =>
    calls
      .filter((call) => call.plugin === plugin && call.command === command)
      .map(({ stdin }) => stdin['runtimeConfig']);
  const ports = {
    portMappings: [
      { hostPort: 8080, containerPort: 80, protocol: 'tcp', hostIP: '127.0.0.1' },
      { hostPort: 5353, containerPort: 53, protocol: 'udp' },
    ],
  };
  const all = {
    ipRanges: [[{ subnet: '10.9.0.0/24' }]],
    bandwidth: { ingressRate: 1_000_000, ingressBurst: 2 ** 31 - 1 },
    dns: { servers: ['10.0.0.10'], searches: ['svc'], options: ['ndots:5'] },
  };
  t.deepEqual(received('ports', 'ADD'), [ports, undefined]);
  t.deepEqual(received('all', 'ADD'), [all, { ipRanges: [[{ subnet: '10.9.1.0/24' }]] }], 'sandboxes from now on');
  t.deepEqual([received('ports', 'DEL'), received('all', 'DEL')], [[ports], [all]], 'DEL has the arguments of ADD');
  t.deepEqual(received('none', 'ADD'), [undefined, undefined]);
  t.true(calls.every(({ stdin }) => !('capabilities' in stdin)));
});

test('addresses of interfaces on the host are not addresses of the sandbox', async (t) => {
  const bench = await scriptedPlugins(t);
  const answer = {
    cniVersion: '1.0.0',
    interfaces: [{ name: 'br0' }, { name: 'eth0', sandbox: netnsPath }],
    ips: [
      { address: '10.9.0.1/24', interface: 0 },
      { address: '10.9.0.9/24', interface: 1 },
      { address: 'fd00::9/64', interface: 1 },
    ],
  };
  await bench.plugin('one', `if [ $CNI_COMMAND = ADD ]; then echo '${JSON.stringify(answer)}'; fi`);
  await bench.network('a.conflist', list('1.0.0', { type: 'one' }));
  t.deepEqual(await bench.open().add(request), { ips: ['10.9.0.9', 'fd00::9'] });
});
