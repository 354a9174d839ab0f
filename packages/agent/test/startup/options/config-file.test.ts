import { UsageError } from '@keelson/core/internal';
import test from 'ava';
import { configFileVersion, parseConfigFile } from '../../../src/startup/options/config-file.ts';
import { type OptionName, optionTable } from '../../../src/startup/options/option-table.ts';
import { parseOptions } from '../../../src/startup/options/parse-options.ts';
import { resolveConfig } from '../../../src/startup/options/resolve-config.ts';

const head = 'apiVersion: agentconfig/v1alpha1\nkind: AgentConfiguration\n';
const gate = '--feature-gates=AgentConfigFile=true';

/** An agent with a configuration file whose text, below the version, is `text`. */
const resolve = (text: string, words: readonly string[] = []) =>
  resolveConfig(parseOptions(['--config=/c.yaml', gate, ...words]), {
    hostname: () => 'n1',
    fileExists: () => false,
    readFile: () => Buffer.from(head + text),
  });

test('--config: the command line overrides the file, and the file overrides the default', (t) => {
  const { config, values } = resolve('syncFrequency: 5s\nmaxPods: 7\nallowPrivileged: true\n', ['--max-pods=9']);
  t.is(config.syncMs, 5_000);
  t.deepEqual(config.limits, { maxPods: 9, podsPerCore: 0, allowPrivileged: true });
  t.is(values['sync-frequency'], 5_000);
  t.is(values['max-pods'], 9);
  t.is(config.sources.fileCheckMs, 20_000);
});

test('--config: every kind of value, in YAML and in JSON', (t) => {
  const { config, warnings } = resolve(`clusterDns: [10.0.0.1, 10.0.0.2]
nodeLabels: {zone: a, bare: ""}
registerWithTaints: ["only=me:NoSchedule"]
systemReserved: {cpu: 1, memory: 1Gi}
chaosChance: 0.5
clusterconfig: /k
manifestUrl: http://localhost/pods
manifestUrlHeader: ["X-A: 1", "X-A: 2"]
featureGates: {MountPropagation: true}
`);
  t.deepEqual(warnings, []);
  t.deepEqual(config.dns.servers, ['10.0.0.1', '10.0.0.2']);
  t.deepEqual(config.node.labels, { zone: 'a', bare: '' });
  t.deepEqual(config.node.taints, [{ key: 'only', value: 'me', effect: 'NoSchedule' }]);
  t.deepEqual(config.systemReserved, { cpu: '1', memory: '1Gi' });
  t.like(config.api, { clusterconfig: '/k', chaosChance: 0.5 });
  t.deepEqual(config.sources.manifestUrlHeaders, [
    ['X-A', '1'],
    ['X-A', '2'],
  ]);
  t.like(config.gates, { MountPropagation: true, AgentConfigFile: true });
  const json = Buffer.from(JSON.stringify({ ...configFileVersion, port: 1, hostNetworkSources: [] }));
  t.deepEqual(
    [...parseConfigFile(json, 'x')],
    [
      ['port', 1],
      ['host-network-sources', []],
    ],
  );
});

test('--config: feature gates of the command line override those of the file', (t) => {
  const { config } = resolve('featureGates: {MountPropagation: true, PodPriority: true}\n', [
    '--feature-gates=MountPropagation=false,AgentConfigFile=true',
  ]);
  t.like(config.gates, { MountPropagation: false, PodPriority: true });
});

test('the default of every option can be written in a file with the same result', (t) => {
  const written = (value: unknown, name: OptionName) => {
    const row = optionTable.find((one) => one.name === name);
    if (value instanceof Map) return Object.fromEntries(value);
    if (row?.type.name === '[]api.Taint' || name === 'manifest-url-header') return [];
    return row?.type.name === 'duration' ? row.type.format(value) : value;
  };
  const rows = optionTable.filter(({ field }) => field !== undefined);
  const document = Object.fromEntries(rows.map((row) => [row.field, written(row.default, row.name as OptionName)]));
  const values = parseConfigFile(Buffer.from(JSON.stringify({ ...configFileVersion, ...document })), 'x');
  const byName: Readonly<Record<string, unknown>> = parseOptions([]).values;
  t.is(values.size, rows.length);
  for (const [name, value] of values) t.deepEqual(value, byName[name], name);
});

for (const [text, message] of [
  ['syncFrequncy: 5s', /^--config \/c\.yaml: unknown key syncFrequncy; did you mean syncFrequency\?$/],
  ['sync-frequency: 5s', /^--config \/c\.yaml: unknown key sync-frequency; did you mean syncFrequency\?$/],
  ['config: /other', /: unknown key config/],
  ['version: raw', /: unknown key version/],
  ['syncFrequency: 5', /: syncFrequency must be a duration such as 10s, not 5$/],
  ['syncFrequency: soon', /: syncFrequency must be a duration such as 10s or 1h30m: /],
  ['port: "1"', /: port must be a number, not "1"$/],
  ['port: 1.5', /: port must be a whole number, not "1\.5"$/],
  ['port: 99999999999', /: port must be between /],
  ['port:', /: port must be a number, not null$/],
  ['enableServer: "yes"', /: enableServer must be true or false, not "yes"$/],
  ['rootDir: [a]', /: rootDir must be a text, not a list$/],
  ['clusterDns: 10.0.0.1', /: clusterDns must be a list of texts, not "10\.0\.0\.1"$/],
  ['clusterDns: [1]', /: clusterDns must be a list of texts, not 1$/],
  ['nodeLabels: [a]', /: nodeLabels must be an object, not a list$/],
  ['nodeLabels: {a: true}', /: nodeLabels must be texts by name, not true$/],
  ['nodeLabels: {a: "b,c"}', /^--node-labels: "a": /],
  ['featureGates: {PodPriority: "true"}', /: featureGates must be true or false by name, not "true"$/],
  ['featureGates: {PodPriorty: true}', /unrecognized key: PodPriorty; did you mean PodPriority\?/],
  ['registerWithTaints: ["a=b:No"]', /: registerWithTaints has an unknown effect "No"/],
  [
    'registerWithTaints: ["a=b:NoExecute,c=d:NoExecute"]',
    /: registerWithTaints must be key=value:effect, not "a=b:NoExecute,c=d:NoExecute"$/,
  ],
  ['port: 1\nport: 2', /contains port twice$/],
  ['port: [', /is not valid YAML or JSON: /],
  ['syncFrequency: 0s', /^--sync-frequency must be longer than 0$/],
] as const) {
  test(`--config rejects ${JSON.stringify(text)}`, (t) => {
    t.throws(() => resolve(text), { instanceOf: UsageError, message });
  });
}

test('--config rejects a file without its type, a file that cannot be read, and any file without the gate', (t) => {
  const refused = (text: string, message: RegExp) =>
    t.throws(() => parseConfigFile(Buffer.from(text), 'x'), { instanceOf: UsageError, message });
  refused('port: 1', /^x: apiVersion must be agentconfig\/v1alpha1, it is missing$/);
  refused(
    'apiVersion: agentconfig/v2\nkind: AgentConfiguration',
    /^x: apiVersion must be agentconfig\/v1alpha1, not "agentconfig\/v2"$/,
  );
  refused('apiVersion: agentconfig/v1alpha1\nkind: Pod', /^x: kind must be AgentConfiguration, not "Pod"$/);
  refused('', /^x is not valid YAML or JSON: the document is empty$/);
  refused('- a', /^x must contain an object$/);
  const facts = { hostname: () => 'n1', fileExists: () => false };
  const missing = {
    ...facts,
    readFile: () => {
      throw new Error('ENOENT');
    },
  };
  t.throws(() => resolveConfig(parseOptions(['--config=/c', gate]), missing), {
    message: '--config /c cannot be read: ENOENT',
  });
  t.throws(() => resolveConfig(parseOptions(['--config=/c', gate]), facts), { message: /is not supported here/ });
  t.throws(() => resolveConfig(parseOptions(['--config=/c']), missing), {
    message: /needs --feature-gates=AgentConfigFile=true/,
  });
});

test('options of a file count as given: contradictions are rejected, and deprecated options cause a warning', (t) => {
  t.throws(() => resolve('runonce: true\npodManifestPath: /x\nenableServer: true\n'), {
    message: /exclude each other/,
  });
  t.deepEqual(resolve('authorizationWebhookCacheAuthorizedTtl: 1m\n').warnings, [
    '--authorization-webhook-cache-authorized-ttl has no effect without --authorization-mode=Webhook',
  ]);
  t.regex(
    resolve('experimentalBootstrapClusterconfig: ""\n').warnings.join('\n'),
    /^--experimental-bootstrap-clusterconfig is deprecated/,
  );
});
