import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Secret } from '@keelson/kinds';
import { listeningLogger, temporaryDirectory } from '@keelson/test-support';
import test from 'ava';
import { CloudCredentials, pullCredentials, registryMatch } from '../../../src/machine/images/pull-credentials.ts';
import { wordsConfig } from '../../support/bench.ts';

const base64 = (text: string) => Buffer.from(text).toString('base64');
const secretOf = (key: string, value: unknown) =>
  ({ data: { [key]: base64(typeof value === 'string' ? value : JSON.stringify(value)) } }) as Secret;
const modern = (auths: Record<string, unknown>) => secretOf('.dockerconfigjson', { auths });

const matching: [pattern: string, reference: string, matches: boolean][] = [
  ['reg.example', 'reg.example/app:1', true],
  ['https://reg.example/v1/', 'reg.example/app', true],
  ['http://reg.example/v2', 'reg.example/app', true],
  ['reg.example', 'other.example/app', false],
  ['reg.example', 'reg.example.evil/app', false],
  ['reg.example:5000', 'reg.example:5000/app:1', true],
  ['reg.example', 'reg.example:5000/app', false],
  ['reg.example:5000', 'reg.example/app', false],
  ['*.example', 'reg.example/app', true],
  ['*.example', 'a.reg.example/app', false],
  ['r*g.example', 'reg.example/app', true],
  ['*', 'localhost/app', true],
  ['reg.example/team', 'reg.example/team/app@sha256:x', true],
  ['reg.example/team/app', 'reg.example/team/app:1', true],
  ['reg.example/team', 'reg.example/teammate/app', false],
  ['https://index.docker.io/v1/', 'app:1', true],
  ['docker.io', 'team/app', true],
  ['docker.io/library', 'app', true],
  ['docker.io', 'reg.example/app', false],
  ['registry-1.docker.io', 'docker.io/team/app', true],
];

for (const [pattern, reference, matches] of matching) {
  test(`credentials for "${pattern}" ${matches ? 'are' : 'are not'} for "${reference}"`, (t) => {
    t.is(registryMatch(pattern, reference) !== undefined, matches);
  });
}

test('pull secrets of both formats are read, with auth, user name and password, or tokens', (t) => {
  const secrets = [
    modern({ 'reg.example': { auth: base64('user:pass:word') } }),
    secretOf('.dockercfg', { 'https://reg.example': { username: 'old', password: 'form' } }),
    modern({ 'reg.example': { identitytoken: 'identity' }, 'other.example': { username: 'not', password: 'this' } }),
  ];
  t.deepEqual(pullCredentials('reg.example/app:1', secrets), [
    { serverAddress: 'reg.example', username: 'user', password: 'pass:word' },
    { serverAddress: 'https://reg.example', username: 'old', password: 'form' },
    { serverAddress: 'reg.example', identityToken: 'identity' },
  ]);
});

test('within a secret, the credentials that match the repository most closely come first', (t) => {
  const auth = (username: string) => ({ username, password: 'p' });
  const secret = modern({
    'reg.example': auth('all'),
    'reg.example/team/app': auth('app'),
    'reg.example/team': auth('team'),
  });
  const names = (reference: string) => pullCredentials(reference, [secret]).map(({ username }) => username);
  t.deepEqual(names('reg.example/team/app:1'), ['app', 'team', 'all']);
  t.deepEqual(names('reg.example/else'), ['all']);
});

test('secrets that are not pull secrets are skipped', (t) => {
  const broken = ['{', '[]', '"x"', '{"auths":[]}', '{"auths":{"reg.example":"x"}}', '{"auths":{"reg.example":{}}}'];
  const secrets = broken.map((text) => secretOf('.dockerconfigjson', text));
  t.deepEqual(pullCredentials('reg.example/app', [...secrets, {} as Secret, secretOf('other', 'x')]), []);
});

/** Credentials as the options make them. */
async function cloudOf(words: readonly string[]) {
  const logger = listeningLogger();
  const cloud = new CloudCredentials(wordsConfig('/nowhere', words).images, logger);
  await cloud.check();
  return { cloud, logger };
}

test('--cloud-a-container-registry-config: the client ID and secret of the file authenticate at registries of the cloud', async (t) => {
  const path = join(await temporaryDirectory(t), 'config');
  const word = `--cloud-a-container-registry-config=${path}`;
  await writeFile(path, JSON.stringify({ tenantId: 't', aadClientId: 'id', aadClientSecret: 'secret' }));
  const { cloud, logger } = await cloudOf([word]);
  t.deepEqual(await cloud.find('team.azurecr.io/app:1'), [{ username: 'id', password: 'secret' }]);
  t.deepEqual(await cloud.find('azurecr.io.example/app:1'), []);
  t.deepEqual(await cloud.find('app:1'), []);
  await writeFile(path, 'aadClientId: new\naadClientSecret: other\nregistries: ["reg.example:5000"]\n');
  t.deepEqual(await cloud.find('reg.example:5000/app'), [{ username: 'new', password: 'other' }]);
  t.deepEqual(await cloud.find('team.azurecr.io/app:1'), []);
  t.deepEqual(logger.lines, []);
});

test('--cloud-b-json-key: the key is the password at the registries of the cloud', async (t) => {
  const path = join(await temporaryDirectory(t), 'key.json');
  const key = { type: 'service_account', client_email: 'a@b', private_key: 'p' };
  await writeFile(path, JSON.stringify(key));
  const { cloud } = await cloudOf([`--cloud-b-json-key=${path}`]);
  for (const registry of ['gcr.io', 'eu.gcr.io', 'europe-docker.pkg.dev']) {
    t.deepEqual(await cloud.find(`${registry}/project/app`), [
      { username: '_json_key', password: JSON.stringify(key) },
    ]);
  }
  t.deepEqual(await cloud.find('other.example/app'), []);
  await writeFile(path, JSON.stringify({ ...key, registries: ['*.example'] }));
  t.deepEqual(await cloud.find('reg.example/app'), [{ username: '_json_key', password: JSON.stringify(key) }]);
});

test('an invalid cloud file causes one warning without its contents, and pulls continue without credentials', async (t) => {
  const folder = await temporaryDirectory(t);
  const [a, b] = [join(folder, 'a'), join(folder, 'b')];
  const { cloud, logger } = await cloudOf([`--cloud-a-container-registry-config=${a}`, `--cloud-b-json-key=${b}`]);
  const problems = () => logger.lines.map(({ fields }) => `${String(fields['option'])}: ${String(fields['problem'])}`);
  t.deepEqual(problems(), [
    '--cloud-a-container-registry-config: it cannot be read: ENOENT',
    '--cloud-b-json-key: it cannot be read: ENOENT',
  ]);
  t.deepEqual(await cloud.find('gcr.io/app'), []);
  t.is(logger.lines.length, 2, 'the same warning is not repeated');
  await writeFile(a, 'secret-a: [');
  await writeFile(b, '{"secret-b');
  await cloud.find('gcr.io/app');
  await writeFile(a, 'useManagedIdentityExtension: true');
  await writeFile(b, '{"type":"user"}');
  await cloud.find('gcr.io/app');
  t.deepEqual(problems().slice(2), [
    '--cloud-a-container-registry-config: it cannot be parsed',
    '--cloud-b-json-key: it cannot be parsed',
    '--cloud-a-container-registry-config: identities managed by the cloud are not supported',
    '--cloud-b-json-key: it is not a key of a service account',
  ]);
  t.notRegex(JSON.stringify(logger.lines), /secret-[ab]/);
});
