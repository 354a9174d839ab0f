import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FakeClock } from '@keelson/core/runtime';
import test, { type ExecutionContext } from 'ava';
import { kubeconfigAccess } from '../../src/kubeconfig/client-options.ts';
import { inClusterAccess } from '../../src/kubeconfig/in-cluster.ts';
import { parseKubeconfig } from '../../src/kubeconfig/kubeconfig.ts';
import { KubeconfigError } from '../../src/kubeconfig/kubeconfig-error.ts';
import { loadKubeconfig } from '../../src/kubeconfig/load-kubeconfig.ts';
import { tokenFromFile } from '../../src/kubeconfig/token-file.ts';

async function folder(t: ExecutionContext, files: Record<string, string>): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'keelson-kubeconfig-'));
  t.teardown(() => rm(path, { recursive: true }));
  for (const [name, content] of Object.entries(files)) {
    await mkdir(join(path, name, '..'), { recursive: true });
    await writeFile(join(path, name), content);
  }
  return path;
}

const base64 = (text: string) => Buffer.from(text).toString('base64');

const main = `
apiVersion: v1
kind: Config
current-context: dev
preferences: {}
clusters:
- name: one
  cluster:
    server: https://one.example.com:6443
    certificate-authority: pki/ca.crt
    tls-server-name: kubernetes
- name: two
  cluster: { server: 'https://two.example.com', certificate-authority-data: ${base64('TWO')}, disable-compression: true }
- name: open
  cluster: { server: 'https://open.example.com', insecure-skip-tls-verify: true }
users:
- name: cert
  user: { client-certificate: pki/me.crt, client-key-data: ${base64('KEY')} }
- name: token
  user: { token: abc, as: jane, as-groups: [g], as-user-extra: { scopes: [a, b] } }
- name: file
  user: { token: old, tokenFile: token }
contexts:
- name: dev
  context: { cluster: one, user: cert, namespace: shop }
- name: prod
  context: { cluster: two, user: token }
- name: filed
  context: { cluster: open, user: file }
- name: nobody
  context: { cluster: open }
`;

test('contexts: files by path and as data, tokens, impersonation', async (t) => {
  const path = await folder(t, { config: main, 'pki/ca.crt': 'CA', 'pki/me.crt': 'CERT', token: 'fresh\n' });
  const config = await loadKubeconfig({ path: join(path, 'config') });
  t.deepEqual(await kubeconfigAccess(config), {
    context: 'dev',
    namespace: 'shop',
    options: {
      server: 'https://one.example.com:6443',
      ca: Buffer.from('CA'),
      tlsServerName: 'kubernetes',
      clientCertificate: Buffer.from('CERT'),
      clientKey: Buffer.from('KEY'),
    },
  });
  t.deepEqual(await kubeconfigAccess(config, { context: 'prod' }), {
    context: 'prod',
    options: {
      server: 'https://two.example.com',
      ca: Buffer.from('TWO'),
      compression: false,
      token: 'abc',
      impersonate: { user: 'jane', groups: ['g'], extra: { scopes: ['a', 'b'] } },
    },
  });
  const { options } = await kubeconfigAccess(config, { context: 'filed' });
  t.like(options, { insecureSkipTlsVerify: true, token: 'old' });
  t.is(await options.tokenProvider?.(), 'fresh', 'the file wins over the text');
  t.deepEqual((await kubeconfigAccess(config, { context: 'nobody' })).options, {
    server: 'https://open.example.com',
    insecureSkipTlsVerify: true,
  });
});

const small = (name: string, server: string, current = '') =>
  JSON.stringify({
    'current-context': current,
    clusters: [{ name, cluster: { server } }],
    contexts: [{ name, context: { cluster: name } }],
  });

test('locations: a path, the list in KUBECONFIG whose first file takes precedence, the home folder only when given', async (t) => {
  const path = await folder(t, {
    a: small('x', 'https://a'),
    b: small('x', 'https://b', 'x'),
    c: small('y', 'https://c', 'y'),
    empty: '',
    '.kube/config': small('h', 'https://h', 'h'),
  });
  const env = {
    KUBECONFIG: [
      '',
      join(path, 'missing'),
      join(path, 'a'),
      join(path, 'b'),
      join(path, 'empty'),
      join(path, 'c'),
    ].join(':'),
  };
  const merged = await loadKubeconfig({ env, home: path });
  t.is(merged.currentContext, 'x');
  t.is((await kubeconfigAccess(merged)).options.server, 'https://a');
  t.is((await kubeconfigAccess(merged, { context: 'y' })).options.server, 'https://c');
  t.is((await loadKubeconfig({ path: join(path, 'c'), env, home: path })).currentContext, 'y');
  t.is((await loadKubeconfig({ env: {}, home: path })).currentContext, 'h');
  await t.throwsAsync(loadKubeconfig({}), { instanceOf: KubeconfigError, message: /no client config/ });
  await t.throwsAsync(loadKubeconfig({ env: { KUBECONFIG: join(path, 'missing') } }), { message: /found/ });
  await t.throwsAsync(loadKubeconfig({ path: join(path, 'missing') }), { message: /cannot read/ });
});

test('unusable entries are rejected by name, and only when they are used', async (t) => {
  const refused = async (cluster: object, user: object, message: RegExp) => {
    const text = JSON.stringify({
      clusters: [{ name: 'c', cluster: { server: 'https://x', ...cluster } }],
      users: [{ name: 'u', user }],
      contexts: [
        { name: 'x', context: { cluster: 'c', user: 'u' } },
        { name: 'dangling', context: { cluster: 'zzz', user: 'u' } },
      ],
    });
    const config = parseKubeconfig(Buffer.from(text), 'test', (path) => path);
    const error = await t.throwsAsync(kubeconfigAccess(config, { context: 'x' }), {
      instanceOf: KubeconfigError,
      message,
    });
    t.false(error.message.includes('hunter2'));
    await t.throwsAsync(kubeconfigAccess(config, { context: 'dangling' }), { message: /no cluster "zzz"; known: "c"/ });
  };
  await refused(
    {},
    { exec: { command: 'aws', args: ['hunter2'] } },
    /user "u": credential plugins \(exec\) are not run/,
  );
  await refused({}, { 'auth-provider': { name: 'gcp' } }, /auth providers are not supported/);
  await refused({}, { username: 'joe', password: 'hunter2' }, /passwords are not supported/);
  await refused({ 'proxy-url': 'socks5://x' }, {}, /proxies are not supported/);
  await refused({ server: '' }, {}, /server is missing/);
  await refused({ 'insecure-skip-tls-verify': true, 'certificate-authority-data': 'QQ==' }, {}, /mutually exclusive/);
  await refused({}, { 'client-certificate-data': 'QQ==' }, /must be specified together/);
  await refused({ 'certificate-authority': '/nowhere/ca' }, {}, /cannot read \/nowhere\/ca/);
  const config = parseKubeconfig(Buffer.from(''), 'test', (path) => path);
  await t.throwsAsync(kubeconfigAccess(config), { message: /no context is selected/ });
  await t.throwsAsync(kubeconfigAccess(config, { context: 'a' }), { message: /no context "a"; known: none/ });
});

test('invalid client configs are rejected with the path of the error', (t) => {
  const parse = (text: string) => () => parseKubeconfig(Buffer.from(text), 'file', (path) => path);
  t.throws(parse('a: [b'), { instanceOf: KubeconfigError, message: /^file: neither YAML nor JSON/ });
  t.throws(parse('[]'), { message: 'file: document: expected a map' });
  t.throws(parse('clusters: {}'), { message: 'file: clusters: expected a list' });
  t.throws(parse('users: [{user: {}}]'), { message: 'file: users[0].name: expected a string' });
  t.throws(parse('users: [{name: u, user: {token: 5}}]'), { message: 'file: users[0].user.token: expected a string' });
  t.throws(parse('users: [{name: u, user: {as: x, as-groups: y}}]'), {
    message: /as-groups: expected a list of strings/,
  });
  t.throws(parse('clusters: [{name: c, cluster: {insecure-skip-tls-verify: "yes"}}]'), {
    message: /expected true or false/,
  });
  const hostile = parse(
    '{"clusters":[{"name":"__proto__","cluster":{"server":"https://x"}}],"__proto__":{"current-context":"x"}}',
  )();
  t.is(hostile.clusters.get('__proto__')?.server, 'https://x');
  t.is(hostile.currentContext, '');
});

test('a token file is read again after a minute, and the previous token is used while it is missing', async (t) => {
  const path = await folder(t, { token: 'one\n' });
  const clock = new FakeClock();
  const token = tokenFromFile(join(path, 'token'), clock);
  t.is(await token(), 'one');
  await writeFile(join(path, 'token'), 'two');
  clock.advance(59_999);
  t.is(await token(), 'one');
  clock.advance(1);
  t.is(await token(), 'two');
  await rm(join(path, 'token'));
  clock.advance(60_000);
  t.is(await token(), 'two');
  await t.throwsAsync(tokenFromFile(join(path, 'token'), clock)(), { code: 'ENOENT' });
  await writeFile(join(path, 'token'), ' \n');
  await t.throwsAsync(tokenFromFile(join(path, 'token'), clock)(), { message: /empty/ });
});

test('in a pod: the address comes from the environment, the rest from the service account', async (t) => {
  const directory = await folder(t, { token: 'sa\n', 'ca.crt': 'CA', namespace: 'shop\n' });
  const env = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' };
  const { options, namespace } = await inClusterAccess({ env, directory });
  t.is(namespace, 'shop');
  t.like(options, { server: 'https://[fd00::1]:443', ca: 'CA' });
  t.is(await options.tokenProvider?.(), 'sa');
  await t.throwsAsync(inClusterAccess({ env: {}, directory }), {
    instanceOf: KubeconfigError,
    message: /not in a pod/,
  });
  await t.throwsAsync(inClusterAccess({ env, directory: join(directory, 'none') }), {
    message: /cannot read the service account/,
  });
});
