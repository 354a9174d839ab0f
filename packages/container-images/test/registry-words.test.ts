import test from 'ava';
import { parseChallenge } from '../src/distribution/challenge.ts';
import { repositoryOf } from '../src/distribution/endpoints.ts';
import { choosePlatform } from '../src/images/platform.ts';

const places: Record<string, [path: string, version: string, base: string]> = {
  app: ['library/app', 'latest', 'https://registry-1.docker.io'],
  'team/app:2': ['team/app', '2', 'https://registry-1.docker.io'],
  'docker.io/app:2': ['library/app', '2', 'https://registry-1.docker.io'],
  'index.docker.io/team/app': ['team/app', 'latest', 'https://registry-1.docker.io'],
  'quay.example/app': ['app', 'latest', 'https://quay.example'],
  'host:5000/a/b/c:1': ['a/b/c', '1', 'https://host:5000'],
  'localhost/app': ['app', 'latest', 'http://localhost'],
  'localhost:5000/app': ['app', 'latest', 'http://localhost:5000'],
  '127.0.0.1:5000/app': ['app', 'latest', 'http://127.0.0.1:5000'],
  '127.0.0.1.example/app': ['app', 'latest', 'https://127.0.0.1.example'],
  '[::1]:5000/app': ['app', 'latest', 'http://[::1]:5000'],
  'plain.example/app': ['app', 'latest', 'http://plain.example'],
  [`a.example/app:1@sha256:${'0'.repeat(64)}`]: ['app', `sha256:${'0'.repeat(64)}`, 'https://a.example'],
};

for (const [reference, [path, version, base]] of Object.entries(places)) {
  test(`"${reference}" is requested from ${base}`, (t) => {
    const found = repositoryOf(reference, { insecureHosts: ['plain.example'] });
    t.deepEqual([found.path, found.version, found.endpoints], [path, version, [{ base, trusted: true }]]);
  });
}

test('challenges are parsed with and without quotes, in any order, and Bearer is preferred', (t) => {
  t.deepEqual(parseChallenge('Bearer realm="https://a/t?x=1,2",service=s,scope="repository:a:pull,push"'), {
    ...{ scheme: 'bearer', realm: 'https://a/t?x=1,2', service: 's', scope: 'repository:a:pull,push' },
  });
  t.deepEqual(parseChallenge('Basic realm="x", Bearer realm="https://a"'), { scheme: 'bearer', realm: 'https://a' });
  t.deepEqual(parseChallenge('basic'), { scheme: 'basic' });
  for (const none of ['', 'Negotiate', 'Bearer service="s"', 'Digest realm="basic"'])
    t.is(parseChallenge(none), undefined, none);
});

test('of several platform variants the one without a variant is chosen, and never another operating system', (t) => {
  const architecture = process.arch === 'x64' ? 'amd64' : process.arch;
  const entry = (os: string, variant?: string) => ({ platform: { os, architecture, ...(variant && { variant }) } });
  const entries = [{}, entry('windows'), entry('linux', 'v3'), entry('linux')];
  t.deepEqual(choosePlatform(entries), architecture.startsWith('arm') ? entry('linux', 'v3') : entry('linux'));
  t.throws(() => choosePlatform(entries.slice(0, 2)), { code: 'ImageNotFound' } as object);
});
