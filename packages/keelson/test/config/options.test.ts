import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { UsageError } from '@keelson/core/internal';
import test from 'ava';
import { loadOptions } from '../../src/config/load-options.ts';

async function folder(t: { teardown: (fn: () => Promise<void>) => void }): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'keelson-options-'));
  t.teardown(() => rm(path, { recursive: true }));
  return path;
}

test('without any source every option has its documented default', async (t) => {
  const options = await loadOptions([], {});
  t.deepEqual(options.listen, { host: '127.0.0.1', port: 6443 });
  t.is(options.data, resolve('.keelson'));
  t.is(options.storage, `lmdb:${join(resolve('.keelson'), 'store')}`);
  t.false(options.insecure);
  t.deepEqual(options.brand, { vendor: 'kubernetes', metaGroup: 'meta.k8s.io' });
});

test('a flag takes precedence over a variable, a variable over the config file, the config file over the default', async (t) => {
  const file = join(await folder(t), 'config.yaml');
  await writeFile(file, 'listen: 127.0.0.1:1111\nstorage: "memory:"\nlogLevel: warn\n');
  const env = { KEELSON_LISTEN: '127.0.0.1:2222', KEELSON_LOG_LEVEL: 'error' };
  const options = await loadOptions(['--config', file, '--listen=127.0.0.1:3333'], env);
  t.is(options.listen.port, 3333);
  t.is(options.logLevel, 'error');
  t.is(options.storage, 'memory:');
  t.is((await loadOptions([], { ...env, KEELSON_CONFIG: file })).listen.port, 2222);
});

test('paths in a config file are relative to the file', async (t) => {
  const path = await folder(t);
  const content = { data: 'state', kinds: ['./kinds.js', '@team/kinds'], agentCertificateAuthority: 'agents.crt' };
  await writeFile(join(path, 'config.json'), JSON.stringify(content));
  const options = await loadOptions(['--config', join(path, 'config.json')], {});
  t.is(options.data, join(path, 'state'));
  t.deepEqual(options.kinds, [join(path, 'kinds.js'), '@team/kinds']);
  t.is(options.agentCertificateAuthority, join(path, 'agents.crt'));
});

test('--kinds may be repeated, and the variable contains a list separated by commas', async (t) => {
  t.deepEqual((await loadOptions(['--kinds', 'a', '--kinds=b'], {})).kinds, ['a', 'b']);
  t.deepEqual((await loadOptions([], { KEELSON_KINDS: 'a,b' })).kinds, ['a', 'b']);
});

test('the server reads the variable of the authority of node agents and ignores the other variables of agents', async (t) => {
  const env = { KEELSON_AGENT_CERTIFICATE_AUTHORITY: 'agents.crt', KEELSON_AGENT_RUNTIME: 'process' };
  t.is((await loadOptions([], env)).agentCertificateAuthority, resolve('agents.crt'));
  t.is((await loadOptions(['--agent-certificate-authority', '/x.crt'], {})).agentCertificateAuthority, '/x.crt');
  t.is((await loadOptions([], {})).agentCertificateAuthority, undefined);
});

test('a config file selects a storage adapter by the name of its package, with options', async (t) => {
  const file = join(await folder(t), 'config.yaml');
  await writeFile(file, 'storage:\n  adapter: "@team/storage-x"\n  shards: 3\n');
  t.deepEqual((await loadOptions(['--config', file], {})).storage, { adapter: '@team/storage-x', shards: 3 });
});

const refused: readonly (readonly [
  title: string,
  words: readonly string[],
  env: Record<string, string>,
  message: RegExp,
])[] = [
  [
    'an unknown option is named with a suggestion',
    ['--storge', 'memory:'],
    {},
    /unknown option --storge; did you mean --storage\?/,
  ],
  [
    'an unknown variable is named with a suggestion',
    [],
    { KEELSON_LISEN: 'x' },
    /KEELSON_LISEN; did you mean KEELSON_LISTEN\?/,
  ],
  ['an option without its value', ['--listen'], {}, /--listen requires a value: --listen HOST:PORT/],
  ['an option whose value looks like an option', ['--data', '--insecure'], {}, /--data requires a value/],
  ['an address without a port', ['--listen', 'localhost'], {}, /--listen must be HOST:PORT/],
  ['a port out of range', ['--listen', 'localhost:70000'], {}, /--listen must be HOST:PORT/],
  ['an argument that is no option', ['now'], {}, /unexpected argument "now"/],
  ['an unknown log level', ['--log-level', 'wran'], {}, /--log-level: unsupported value "wran"; did you mean warn\?/],
  [
    'a switch that is neither true nor false',
    [],
    { KEELSON_INSECURE: 'maybe' },
    /KEELSON_INSECURE must be true or false/,
  ],
  [
    '--insecure with an address other than loopback',
    ['--insecure', '--listen', '0.0.0.0:80'],
    {},
    /--insecure serves loopback addresses only/,
  ],
  [
    'a host with a port',
    ['--insecure', '--allowed-host', 'dev:80'],
    {},
    /--allowed-host must be a host name or an IP address without/,
  ],
  [
    'a URL as a host',
    ['--insecure'],
    { KEELSON_ALLOWED_HOSTS: 'http://dev' },
    /KEELSON_ALLOWED_HOSTS must be a host name/,
  ],
  [
    'hosts for a server with authentication',
    ['--allowed-host', 'dev.example'],
    {},
    /--allowed-host requires --insecure/,
  ],
  [
    'a config file that does not exist',
    ['--config', '/nonexistent.yaml'],
    {},
    /--config \/nonexistent\.yaml cannot be read/,
  ],
];

test('hosts of an insecure server come from repeated flags or a variable; by default there are none', async (t) => {
  const words = ['--insecure', '--allowed-host', 'dev.example', '--allowed-host', '192.0.2.7'];
  t.deepEqual((await loadOptions(words, {})).allowedHosts, ['dev.example', '192.0.2.7']);
  t.deepEqual((await loadOptions(['--insecure'], { KEELSON_ALLOWED_HOSTS: 'a.example,fd00::1' })).allowedHosts, [
    'a.example',
    'fd00::1',
  ]);
  t.deepEqual((await loadOptions(['--insecure'], {})).allowedHosts, []);
});

for (const [title, words, env, message] of refused) {
  test(`refused: ${title}`, async (t) => {
    const error = await t.throwsAsync(loadOptions(words, env), { instanceOf: UsageError });
    t.regex(error?.message ?? '', message);
  });
}

test('a config file with an unknown or repeated key, invalid YAML or no object is rejected', async (t) => {
  const path = await folder(t);
  const attempt = async (text: string) => {
    await writeFile(join(path, 'config.yaml'), text);
    return (
      (await t.throwsAsync(loadOptions(['--config', join(path, 'config.yaml')], {}), { instanceOf: UsageError }))
        ?.message ?? ''
    );
  };
  t.regex(await attempt('storge: "memory:"'), /unknown key storge; did you mean storage\?/);
  t.regex(await attempt('data: a\ndata: b'), /contains data twice/);
  t.regex(await attempt('data: [a'), /not valid YAML or JSON/);
  t.regex(await attempt('- a'), /must contain an object/);
  t.regex(await attempt('brand: {vendr: x}'), /brand has no key vendr; did you mean vendor\?/);
  t.regex(await attempt('continueTokenLifetimeMs: -1'), /continueTokenLifetimeMs must be at least 1, not -1/);
});

test('--token-auth-file is an absolute path, relative to the config file there, and not for --insecure', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-tokens-'));
  t.teardown(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, 'keelson.yaml'), 'tokenAuthFile: tokens.csv\n');
  t.is((await loadOptions(['--config', join(folder, 'keelson.yaml')], {})).tokenAuthFile, join(folder, 'tokens.csv'));
  t.is((await loadOptions([], { KEELSON_TOKEN_AUTH_FILE: '/t' })).tokenAuthFile, '/t');
  await t.throwsAsync(loadOptions(['--insecure', '--token-auth-file', '/t'], {}), { message: /exclude each other/ });
});
