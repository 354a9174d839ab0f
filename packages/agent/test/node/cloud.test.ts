import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { UsageError } from '@keelson/core/internal';
import { silentLogger } from '@keelson/core/runtime';
import { temporaryDirectory } from '@keelson/test-support';
import test from 'ava';
import { askCloud, type CloudProviders } from '../../src/node/cloud-provider.ts';
import { newNode, nodeAddresses, reconcilePatch } from '../../src/node/node-object.ts';
import { wordsConfig } from '../support/bench.ts';

/** The result of the provider that these options select. */
const ask = (words: readonly string[], providers: CloudProviders = {}) => {
  const { node, nodeName } = wordsConfig('/x', words);
  return askCloud({ cloud: node.cloud, nodeName, providers, logger: silentLogger });
};

test('--cloud-provider: empty and external use no provider, and an unknown provider is rejected', async (t) => {
  t.is(await ask([]), undefined);
  t.is(await ask(['--cloud-provider=external']), undefined);
  for (const name of ['aws', 'constructor']) {
    await t.throwsAsync(ask([`--cloud-provider=${name}`]), {
      instanceOf: UsageError,
      message: `--cloud-provider: unknown provider "${name}"; use one of external, file`,
    });
  }
});

test('a program may register a provider, which receives the contents of --cloud-config', async (t) => {
  const path = join(await temporaryDirectory(t), 'cloud.conf');
  await writeFile(path, '[global]\nproject = x\n');
  const providers: CloudProviders = { own: async ({ nodeName, config }) => ({ providerId: `${nodeName} ${config}` }) };
  t.deepEqual(await ask(['--cloud-provider=own', `--cloud-config=${path}`], providers), {
    providerId: 'node-1 [global]\nproject = x\n',
  });
  await t.throwsAsync(ask(['--cloud-provider=own', '--cloud-config=/no/such/file'], providers), {
    instanceOf: UsageError,
    message: /^--cloud-config cannot be read: ENOENT/,
  });
});

test('--cloud-provider=file: the file describes the machine', async (t) => {
  const path = join(await temporaryDirectory(t), 'machine.yaml');
  const words = ['--cloud-provider=file', `--cloud-config=${path}`];
  await writeFile(
    path,
    'providerID: lab://rack-1/7\ninstanceType: big\nzone: z1\nregion: r1\naddresses:\n- {type: InternalIP, address: 192.0.2.7}\n- {type: ExternalDNS, address: n7.example}\n',
  );
  t.deepEqual(await ask(words), {
    providerId: 'lab://rack-1/7',
    instanceType: 'big',
    zone: 'z1',
    region: 'r1',
    addresses: [
      { type: 'InternalIP', address: '192.0.2.7' },
      { type: 'ExternalDNS', address: 'n7.example' },
    ],
  });
  await writeFile(path, '{"zone":"z2"}');
  t.deepEqual(await ask(words), { zone: 'z2' });
  for (const [text, message] of [
    ['zone: [', /--cloud-config is not valid YAML or JSON: /],
    ['- a', /--cloud-config must contain an object/],
    ['zon: a', /--cloud-config has no key zon; did you mean zone\?/],
    ['zone: 7', /zone must be a string/],
    ['addresses: x', /addresses must be a list/],
    ['addresses: [{type: IP, address: 1.2.3.4}]', /type of an address must be one of InternalIP, /],
    ['addresses: [{type: InternalIP, address: here}]', /"here" is not a valid IP address/],
    ['addresses: [{type: Hostname}]', /an address must be a string/],
  ] as const) {
    await writeFile(path, text);
    await t.throwsAsync(ask(words), { instanceOf: UsageError, message }, text);
  }
  await t.throwsAsync(ask(['--cloud-provider=file']), { message: '--cloud-provider=file needs --cloud-config' });
});

test('the node has the values of the cloud provider; --provider-id and --node-labels take precedence', (t) => {
  const instance = { providerId: 'lab://7', instanceType: 'big', zone: 'z1', region: 'r1' };
  const { node } = wordsConfig('/x', ['--node-labels=topology.kubernetes.io/zone=mine']);
  const made = newNode('n', 'amd64', { ...node, instance }, {});
  t.is(made.spec?.providerID, 'lab://7');
  t.like(made.metadata?.labels, {
    'node.kubernetes.io/instance-type': 'big',
    'topology.kubernetes.io/region': 'r1',
    'failure-domain.beta.kubernetes.io/zone': 'z1',
    'topology.kubernetes.io/zone': 'mine',
  });
  const chosen = wordsConfig('/x', ['--provider-id=own://1']).node;
  t.is(newNode('n', 'amd64', { ...chosen, instance }, {}).spec?.providerID, 'own://1');
  t.is(newNode('n', 'amd64', chosen, {}).metadata?.labels?.['topology.kubernetes.io/zone'], undefined);
});

test('an external cloud: the node is tainted until it is initialized, states its chosen address, and keeps assigned ones', (t) => {
  const { node } = wordsConfig('/x', [
    '--cloud-provider=external',
    '--node-ip=192.0.2.1',
    '--register-with-taints=a=b:NoExecute',
  ]);
  const made = newNode('n', 'amd64', node, {});
  t.deepEqual(made.spec?.taints, [
    { key: 'a', value: 'b', effect: 'NoExecute' },
    { key: 'node.cloudprovider.kubernetes.io/uninitialized', value: 'true', effect: 'NoSchedule' },
  ]);
  t.is(made.metadata?.annotations?.['alpha.kubernetes.io/provided-node-ip'], '192.0.2.1');
  const without = { ...made, spec: {}, metadata: { ...made.metadata, annotations: {} } };
  const patch = reconcilePatch(without, 'n', 'amd64', node) as { metadata: { annotations: Record<string, string> } };
  t.is(patch.metadata.annotations['alpha.kubernetes.io/provided-node-ip'], '192.0.2.1');
  t.false('spec' in patch, 'the taint is for registration only');
  const own = [{ type: 'InternalIP', address: '192.0.2.1' }];
  const given = [{ type: 'ExternalIP', address: '203.0.113.9' }];
  t.deepEqual(nodeAddresses(own, [], node), own);
  t.deepEqual(nodeAddresses(own, given, node), given);
  const plain = wordsConfig('/x', []).node;
  t.deepEqual(nodeAddresses(own, given, plain), own);
  t.deepEqual(nodeAddresses(own, own, { ...plain, instance: { addresses: given } }), given);
  t.is(newNode('n', 'amd64', plain, {}).metadata?.annotations?.['alpha.kubernetes.io/provided-node-ip'], undefined);
});
