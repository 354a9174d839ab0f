import { chmod, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import { answers, request, scriptedPlugins } from './support/scripted-plugins.ts';

const list = (name: string, type = 'one', cniVersion = '1.0.0') => ({ cniVersion, name, plugins: [{ type }] });
const notReady = (message: string) => ({ ready: false, reason: 'NetworkPluginNotReady', message });

test('the first valid file by name is the network; invalid files are skipped', async (t) => {
  const bench = await scriptedPlugins(t);
  await bench.plugin('one', answers('1.0.0'));
  await bench.network('00-readme.txt', 'not a configuration');
  await bench.network('10-broken.conf', '{"name":');
  await bench.network('20-missing.conflist', list('x', 'no-such-plugin'));
  await bench.network('40-other.conflist', list('other'));
  await bench.network('30-good.json', { cniVersion: '1.0.0', name: 'good', type: 'one' });
  const network = bench.open();
  t.deepEqual(await network.status(), { ready: true });
  await network.add(request);
  t.is((await bench.calls()).at(-1)?.stdin['name'], 'good');
});

test('a missing network is not ready, and the status states what is missing', async (t) => {
  const bench = await scriptedPlugins(t);
  const network = bench.open();
  t.deepEqual(await network.status(), notReady(`no network config found in ${bench.confDir}`));
  await t.throwsAsync(network.add(request), { code: 'Unavailable' });
  await bench.network('a.conflist', list('pods', 'bridge'));
  t.deepEqual(
    await network.status(),
    notReady(
      `no valid network config found in ${bench.confDir}: a.conflist: failed to find plugin "bridge" in path [${bench.binDir}]`,
    ),
  );
  await bench.plugin('bridge', answers('1.0.0'), ['0.3.1', '0.4.0']);
  t.deepEqual(
    await network.status(),
    notReady(
      `no valid network config found in ${bench.confDir}: a.conflist: plugin bridge does not support CNI 1.0.0, only 0.3.1, 0.4.0`,
    ),
  );
  await bench.network('a.conflist', list('pods', 'bridge', '0.4.0'));
  t.deepEqual(await network.status(), { ready: true });
  await chmod(join(bench.binDir, 'bridge'), 0o644);
  t.deepEqual(
    (await network.status()).ready,
    true,
    'the network is still the same; plugins are located when they are called',
  );
  await t.throwsAsync(network.add(request), {
    code: 'Unavailable',
    message: `failed to find plugin "bridge" in path [${bench.binDir}]`,
  });
  await chmod(join(bench.binDir, 'bridge'), 0o755);
  await rm(join(bench.binDir, 'loopback'));
  t.deepEqual(await network.status(), notReady(`failed to find plugin "loopback" in path [${bench.binDir}]`));
  await rm(bench.confDir, { recursive: true });
  const { message = '' } = { ...(await network.status()) } as { message?: string };
  t.regex(message, /^network configurations in .* cannot be read: ENOENT/);
});

for (const [what, content, problem] of [
  ['no JSON', 'name: pods', /invalid JSON: /],
  ['a list', '[]', /no JSON object/],
  ['no name', '{"plugins":[{"type":"one"}]}', /the network has no valid "name"/],
  ['a name with a path', '{"name":"../x","plugins":[{"type":"one"}]}', /no valid "name"/],
  ['no plugins', '{"name":"x","plugins":[]}', /"plugins" is no list of plugins/],
  ['a plugin without type', '{"name":"x","plugins":[{"type":"one"},{}]}', /plugin 2 has no valid "type"/],
  ['a type with a path', '{"name":"x","type":"../../bin/sh"}', /plugin 1 has no valid "type"/],
  [
    'an unknown version',
    '{"cniVersion":"9.9.9","name":"x","type":"one"}',
    /"cniVersion" "9.9.9" is not one of 0.1.0, /,
  ],
] as const) {
  test(`a file with ${what} is rejected as a network`, async (t) => {
    const bench = await scriptedPlugins(t);
    await bench.plugin('one');
    await bench.network('a.json', content);
    const status = await bench.open().status();
    t.false(status.ready);
    if (!status.ready) t.regex(status.message, problem);
  });
}

test('a changed configuration is read again without a restart', async (t) => {
  const bench = await scriptedPlugins(t);
  await bench.plugin('one', answers('1.0.0'));
  await bench.network('b.conflist', list('second'));
  const network = bench.open();
  const nameOfNext = async (sandboxId: string) => {
    await network.add({ ...request, sandboxId });
    return (await bench.calls()).at(-1)?.stdin['name'];
  };
  t.is(await nameOfNext('s1'), 'second');
  await bench.network('a.conflist', list('first'));
  t.is(await nameOfNext('s2'), 'first');
  const next = join(bench.confDir, 'next');
  await writeFile(next, JSON.stringify(list('third')));
  await rename(next, join(bench.confDir, 'a.conflist'));
  t.is(await nameOfNext('s3'), 'third');
  await rm(join(bench.confDir, 'a.conflist'));
  t.is(await nameOfNext('s4'), 'second');
});

test('plugins are searched in several folders, and the first match is used', async (t) => {
  const bench = await scriptedPlugins(t);
  const other = await scriptedPlugins(t);
  await bench.plugin('one', answers('1.0.0', '10.0.0.1/8'));
  await other.plugin('one', answers('1.0.0', '10.0.0.2/8'));
  await other.plugin('two', answers('1.0.0', '10.0.0.2/8'));
  await bench.network('a.conflist', list('pods'));
  const network = bench.open({ binDirs: [bench.binDir, other.binDir] });
  t.deepEqual(await network.add(request), { ips: ['10.0.0.1'] });
  await bench.network('a.conflist', list('pods', 'two'));
  t.deepEqual(await network.add({ ...request, sandboxId: 's2' }), { ips: ['10.0.0.2'] });
});
