import { lstat, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { ApiClient } from '@keelson/core';
import { FakeClock, type Logger, silentLogger } from '@keelson/core/runtime';
import type { ConfigMap, coreV1, Pod, Secret, TokenRequest } from '@keelson/kinds';
import { listeningLogger, temporaryDirectory } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { AgentPaths } from '../../../src/base/agent-paths.ts';
import { uidOf } from '../../../src/base/pod/pod-spec.ts';
import { PodTokens } from '../../../src/base/pod/pod-tokens.ts';
import { localHost } from '../../../src/machine/host/host-access.ts';
import { createVolumes, defaultMounter } from '../../../src/machine/volumes/create-volumes.ts';
import { type Mounter, noMounter } from '../../../src/machine/volumes/mounter.ts';
import { VolumeProblem } from '../../../src/machine/volumes/volume-problem.ts';
import { testPod, wordsConfig } from '../../support/bench.ts';

const base64 = (text: string) => Buffer.from(text).toString('base64');
const asRoot = process.getuid?.() === 0 || process.env['CI'] ? test : test.skip;

const noClaims = { claim: async () => undefined, volume: async () => undefined };

interface Bench {
  /** Objects by `namespace/name`. */
  readonly configMaps: Map<string, Partial<ConfigMap>>;
  readonly secrets: Map<string, Partial<Secret>>;
  readonly rootDir: string;
  provide(pod: Pod, tokens?: PodTokens): Promise<ReadonlyMap<string, string>>;
}

async function bench(t: ExecutionContext, mounter: Mounter = noMounter, logger: Logger = silentLogger): Promise<Bench> {
  const rootDir = await temporaryDirectory(t);
  const configMaps = new Map<string, Partial<ConfigMap>>([
    ['default/map', { data: { colour: 'blue', shape: 'round' }, binaryData: { raw: base64('\u0000\u0001') } }],
  ]);
  const secrets = new Map<string, Partial<Secret>>([
    ['default/key', { data: { user: base64('me'), word: base64('sesame') } }],
    ['other/key', { data: { user: base64('them') } }],
  ]);
  const { volumes } = createVolumes({
    config: wordsConfig(rootDir, []),
    paths: new AgentPaths(rootDir, join(rootDir, 'log')),
    dependencies: { mounter, logger },
    onInUse: () => {},
  });
  const facts = {
    place: { nodeName: 'node-1', hostIps: ['192.0.2.1'], podIps: ['10.0.0.9'] },
    objects: {
      configMap: async (namespace: string, name: string) =>
        configMaps.get(`${namespace}/${name}`) as ConfigMap | undefined,
      secret: async (namespace: string, name: string) => secrets.get(`${namespace}/${name}`) as Secret | undefined,
      services: async () => [],
      ...noClaims,
    },
    allocatable: { cpu: '4', memory: '8Gi' },
  };
  return {
    configMaps,
    secrets,
    rootDir,
    provide: (pod, tokens) => volumes.provide(pod, tokens ? { ...facts, tokens } : facts),
  };
}

const withVolume = (volume: Omit<coreV1.Volume, 'name'>, spec: Partial<Pod['spec']> = {}) =>
  testPod('p', { volumes: [{ name: 'v', ...volume }], ...spec });

/** Files as containers see them: `path mode content`. */
async function seen(directory: string, prefix = ''): Promise<string[]> {
  const found: string[] = [];
  for (const name of (await readdir(join(directory, prefix))).sort()) {
    if (name.startsWith('..')) continue;
    const path = prefix === '' ? name : `${prefix}/${name}`;
    const followed = await readFile(join(directory, path), 'utf8').catch(() => undefined);
    if (followed === undefined) found.push(...(await seen(directory, path)));
    else found.push(`${path} ${(await modeOf(join(directory, path))).toString(8)} ${followed}`);
  }
  return found;
}

async function modeOf(path: string): Promise<number> {
  const { stat } = await import('node:fs/promises');
  return (await stat(path)).mode & 0o7777;
}

const field = (path: string, fieldPath: string) => ({ path, fieldRef: { fieldPath } });
const resource = (path: string, name: string, divisor?: string) => ({
  path,
  resourceFieldRef: { containerName: 'main', resource: name, ...(divisor && { divisor }) },
});
const limited = {
  containers: [
    {
      name: 'main',
      image: 'app:1',
      resources: { limits: { cpu: '1250m', memory: '64Mi' }, requests: { cpu: '250m', memory: '32Mi' } },
    },
  ],
};

const cases: readonly (readonly [string, Omit<coreV1.Volume, 'name'>, readonly string[], Partial<Pod['spec']>?])[] = [
  [
    'a config map is one file per key, texts and bytes alike',
    { configMap: { name: 'map' } },
    ['colour 644 blue', 'raw 644 \u0000\u0001', 'shape 644 round'],
  ],
  [
    'a config map with a default mode',
    { configMap: { name: 'map', defaultMode: 0o400, items: [{ key: 'colour', path: 'c' }] } },
    ['c 400 blue'],
  ],
  [
    'keys of a config map at paths of their own, with a mode for one',
    {
      configMap: {
        name: 'map',
        items: [
          { key: 'colour', path: 'a/b/c' },
          { key: 'shape', path: 's', mode: 0o600 },
        ],
      },
    },
    ['a/b/c 644 blue', 's 600 round'],
  ],
  ['a projected volume with a source of no type', { projected: { sources: [{}] } }, []],
  ['a config map that is optional and not there', { configMap: { name: 'none', optional: true } }, []],
  [
    'an optional key that is not there',
    {
      configMap: {
        name: 'map',
        optional: true,
        items: [
          { key: 'none', path: 'n' },
          { key: 'colour', path: 'c' },
        ],
      },
    },
    ['c 644 blue'],
  ],
  ['a secret', { secret: { secretName: 'key' } }, ['user 644 me', 'word 644 sesame']],
  [
    'a secret with a default mode',
    { secret: { secretName: 'key', defaultMode: 0o400 } },
    ['user 400 me', 'word 400 sesame'],
  ],
  [
    'keys of a secret at paths of their own',
    { secret: { secretName: 'key', items: [{ key: 'word', path: 'deep/word', mode: 0o440 }] } },
    ['deep/word 440 sesame'],
  ],
  ['a secret that is optional and not there', { secret: { secretName: 'none', optional: true } }, []],
  [
    'facts about the pod',
    {
      downwardAPI: {
        defaultMode: 0o444,
        items: [
          field('name', 'metadata.name'),
          field('namespace', 'metadata.namespace'),
          { ...field('labels', 'metadata.labels'), mode: 0o400 },
          field('one', "metadata.labels['app']"),
          field('note', "metadata.annotations['note']"),
        ],
      },
    },
    [
      'labels 400 app="web"\ntier="front \\"end\\""',
      'name 444 p',
      'namespace 444 default',
      'note 444 n',
      'one 444 web',
    ],
  ],
  [
    'limits and requests of a container',
    {
      downwardAPI: {
        items: [
          resource('cpu', 'limits.cpu'),
          resource('cpu-milli', 'limits.cpu', '1m'),
          resource('memory', 'limits.memory'),
          resource('asked', 'requests.cpu', '1m'),
          resource('asked-mi', 'requests.memory', '1Mi'),
        ],
      },
    },
    ['asked 644 250', 'asked-mi 644 32', 'cpu 644 2', 'cpu-milli 644 1250', 'memory 644 67108864'],
    limited,
  ],
  [
    'limits of a container that has none are those of the node',
    { downwardAPI: { items: [resource('cpu', 'limits.cpu'), resource('memory', 'limits.memory', '1Gi')] } },
    ['cpu 644 4', 'memory 644 8'],
  ],
  [
    'everything together in one directory',
    {
      projected: {
        defaultMode: 0o640,
        sources: [
          { configMap: { name: 'map', items: [{ key: 'colour', path: 'all/colour' }] } },
          { secret: { name: 'key', items: [{ key: 'word', path: 'all/word', mode: 0o400 }] } },
          { downwardAPI: { items: [field('all/name', 'metadata.name')] } },
          { configMap: { name: 'none', optional: true } },
          { secret: { name: 'none', optional: true } },
        ],
      },
    },
    ['all/colour 640 blue', 'all/name 640 p', 'all/word 400 sesame'],
  ],
  [
    'of two sources with the same path the later counts',
    {
      projected: {
        sources: [
          { configMap: { name: 'map', items: [{ key: 'colour', path: 'x' }] } },
          { secret: { name: 'key', items: [{ key: 'user', path: 'x' }] } },
        ],
      },
    },
    ['x 644 me'],
  ],
];

for (const [title, volume, expected, spec] of cases) {
  test(`volume: ${title}`, async (t) => {
    const { provide } = await bench(t);
    const pod = withVolume(volume, spec);
    pod.metadata = { ...pod.metadata, labels: { app: 'web', tier: 'front "end"' }, annotations: { note: 'n' } };
    const places = await provide(pod);
    t.deepEqual(await seen(places.get('v') ?? ''), [...expected]);
  });
}

const failures: readonly (readonly [string, Omit<coreV1.Volume, 'name'>, RegExp])[] = [
  ['a config map that is not there', { configMap: { name: 'none' } }, /^volume "v": configmap "none" not found$/],
  ['a secret that is not there', { secret: { secretName: 'none' } }, /secret "none" not found/],
  [
    'a key that is not there',
    { configMap: { name: 'map', items: [{ key: 'no', path: 'x' }] } },
    /configmap "map" has no key no/,
  ],
  [
    'a path that leads out',
    { configMap: { name: 'map', items: [{ key: 'colour', path: '../x' }] } },
    /is outside of the volume/,
  ],
  [
    'an absolute path',
    { secret: { secretName: 'key', items: [{ key: 'user', path: '/x' }] } },
    /is outside of the volume/,
  ],
  [
    'a path that hides the links',
    { secret: { secretName: 'key', items: [{ key: 'user', path: '..data/x' }] } },
    /is outside of the volume/,
  ],
  [
    'an unknown field',
    { downwardAPI: { items: [field('x', 'metadata.generation')] } },
    /refers to an unknown field or container/,
  ],
  [
    'a token of the service account without an API server',
    { projected: { sources: [{ serviceAccountToken: { path: 'token', expirationSeconds: 3600 } }] } },
    /there is no API server that issues tokens/,
  ],
  [
    'trusted certificates',
    { projected: { sources: [{ clusterTrustBundle: { path: 'ca' } }] } },
    /clusterTrustBundle is not supported in projected volumes/,
  ],
  ['a claim', { persistentVolumeClaim: { claimName: 'c' } }, /persistentvolumeclaim "c" not found/],
  ['an unknown medium', { emptyDir: { medium: 'Tape' } }, /medium Tape is not supported/],
];

for (const [title, volume, message] of failures) {
  test(`volume: ${title} is rejected with a message`, async (t) => {
    const { provide } = await bench(t);
    await t.throwsAsync(provide(withVolume(volume)), { instanceOf: VolumeProblem, message });
  });
}

test('changes of objects and of the pod update the files; optional objects may be created and deleted', async (t) => {
  const { provide, configMaps, secrets } = await bench(t);
  const pod = withVolume({
    projected: {
      sources: [
        { configMap: { name: 'map' } },
        { configMap: { name: 'late', optional: true } },
        { secret: { name: 'gone', optional: true } },
        { downwardAPI: { items: [field('labels', 'metadata.labels'), field('notes', 'metadata.annotations')] } },
      ],
    },
  });
  pod.metadata = { ...pod.metadata, labels: { v: '1' }, annotations: {} };
  secrets.set('default/gone', { data: { old: base64('x') } });
  const place = (await provide(pod)).get('v') ?? '';
  t.deepEqual(
    (await seen(place)).filter((line) => /^(colour|labels|old)/.test(line)),
    ['colour 644 blue', 'labels 644 v="1"', 'old 644 x'],
  );
  configMaps.set('default/map', { data: { colour: 'red' } });
  configMaps.set('default/late', { data: { new: 'here' } });
  secrets.delete('default/gone');
  const changed = { ...pod, metadata: { ...pod.metadata, labels: { v: '2' }, annotations: { a: 'b' } } };
  t.is((await provide(changed)).get('v'), place);
  t.deepEqual(await seen(place), ['colour 644 red', 'labels 644 v="2"', 'new 644 here', 'notes 644 a="b"']);
});

test('a volume that cannot be provided does not delay the others, and the message names each that failed', async (t) => {
  const { provide, rootDir } = await bench(t);
  const pod = testPod('p', {
    volumes: [
      { name: 'first', configMap: { name: 'none' } },
      { name: 'labels', downwardAPI: { items: [field('labels', 'metadata.labels')] } },
      { name: 'last', secret: { secretName: 'none' } },
    ],
  });
  const place = join(rootDir, 'pods', uidOf(pod), 'volumes/kubernetes.io~downward-api/labels');
  for (const v of ['1', '2']) {
    pod.metadata = { ...pod.metadata, labels: { v } };
    await t.throwsAsync(provide(pod), {
      instanceOf: VolumeProblem,
      message: 'volume "first": configmap "none" not found; volume "last": secret "none" not found',
    });
    t.deepEqual(await seen(place), [`labels 644 v="${v}"`]);
  }
});

test('volumes of one object in a pod, and of secrets with the same name in two namespaces, are separate', async (t) => {
  const { provide } = await bench(t);
  const secret = { secretName: 'key', items: [{ key: 'user', path: 'user' }] };
  const places = await provide(
    testPod('p', {
      volumes: [
        { name: 'a', secret },
        { name: 'b', secret: { ...secret, defaultMode: 0o400 } },
      ],
    }),
  );
  t.deepEqual(await seen(places.get('a') ?? ''), ['user 644 me']);
  t.deepEqual(await seen(places.get('b') ?? ''), ['user 400 me']);
  const other = withVolume({ secret });
  other.metadata = { ...other.metadata, namespace: 'other' };
  t.deepEqual(await seen((await provide(other)).get('v') ?? ''), ['user 644 them']);
});

asRoot(
  'fsGroup: files belong to the group and are readable for it, and new files of an emptyDir inherit it',
  async (t) => {
    const { provide } = await bench(t);
    const securityContext = { fsGroup: 4321 };
    const secret =
      (await provide(withVolume({ secret: { secretName: 'key', defaultMode: 0o400 } }, { securityContext }))).get(
        'v',
      ) ?? '';
    t.deepEqual(await seen(secret), ['user 440 me', 'word 440 sesame']);
    const facts = withVolume({ downwardAPI: { items: [field('name', 'metadata.name')] } }, { securityContext });
    const file = join((await provide(facts)).get('v') ?? '', '..data/name');
    t.is((await lstat(file)).gid, 4321);
    const empty = (await provide(withVolume({ emptyDir: {} }, { securityContext }))).get('v') ?? '';
    t.is((await lstat(empty)).gid, 4321);
    t.is((await lstat(empty)).mode & 0o7777, 0o2777);
    await writeFile(join(empty, 'f'), 'x');
    t.is((await lstat(join(empty, 'f'))).gid, 4321, 'new files inherit the group');
  },
);

const secretVolumes: readonly Omit<coreV1.Volume, 'name'>[] = [
  { secret: { secretName: 'key' } },
  { projected: { sources: [{ secret: { name: 'key' } }] } },
];

test('a secret is not written when its in-memory file system cannot be mounted', async (t) => {
  const refusing: Mounter = {
    mount: () => Promise.reject(new Error('mount: permission denied')),
    bind: async () => {},
    isMounted: async () => false,
    unmountBelow: async () => {},
  };
  const { provide, rootDir } = await bench(t, refusing);
  for (const volume of secretVolumes) {
    await t.throwsAsync(provide(withVolume(volume)), {
      instanceOf: VolumeProblem,
      message: 'volume "v": mount: permission denied',
    });
  }
  const written = await readdir(rootDir, { recursive: true, withFileTypes: true });
  t.deepEqual(
    written.filter((entry) => !entry.isDirectory()),
    [],
  );
  t.truthy(await provide(withVolume({ configMap: { name: 'map' } })), 'other objects need no mount');
});

test('an agent that cannot mount stores secrets and in-memory volumes on disk, and logs that once', async (t) => {
  const logger = listeningLogger();
  const { provide, rootDir } = await bench(t, noMounter, logger);
  await provide(withVolume({ configMap: { name: 'map' } }));
  t.deepEqual(logger.lines, []);
  for (const volume of secretVolumes) {
    const place = (await provide(withVolume(volume))).get('v') ?? '';
    t.deepEqual(await seen(place), ['user 644 me', 'word 644 sesame']);
  }
  const memory = (await provide(withVolume({ emptyDir: { medium: 'Memory' } }))).get('v') ?? '';
  t.is((await stat(memory)).mode & 0o777, 0o777);
  t.deepEqual(logger.lines, [
    {
      message:
        'secrets and volumes in memory are written to disk because this node cannot mount file systems in memory',
      fields: { component: 'volumes', directory: join(rootDir, 'pods') },
    },
  ]);
});

test('an agent that does not run as root mounts nothing, unless a mounter is configured', (t) => {
  const config = { mounterPath: undefined, containerized: false };
  t.true(defaultMounter(config, localHost, 1000).disabled);
  t.falsy(defaultMounter(config, localHost, 0).disabled);
  t.falsy(defaultMounter({ ...config, mounterPath: '/m' }, localHost, 1000).disabled);
});

test('an emptyDir is writable for all users and keeps its files as long as the pod exists', async (t) => {
  const { provide, rootDir } = await bench(t);
  const pod = withVolume({ emptyDir: { sizeLimit: '1Gi' } });
  const place = (await provide(pod)).get('v') ?? '';
  t.is(place, join(rootDir, 'pods', uidOf(pod), 'volumes/kubernetes.io~empty-dir/v'));
  t.is(await modeOf(place), 0o777);
  await writeFile(join(place, 'f'), 'kept');
  await provide(pod);
  t.deepEqual(await seen(place), ['f 644 kept']);
});

test('network volumes are mounted with the options of their file system', async (t) => {
  const rootDir = await temporaryDirectory(t);
  const mounts = new Map<string, readonly string[]>();
  const { volumes } = createVolumes({
    config: wordsConfig(rootDir, []),
    paths: new AgentPaths(rootDir, join(rootDir, 'log')),
    dependencies: {
      logger: silentLogger,
      mounter: {
        mount: async ({ type, source, target, options }) =>
          void mounts.set(basename(target), [type, source, ...options]),
        bind: async () => {},
        isMounted: async () => false,
        unmountBelow: async () => {},
      },
    },
    onInUse: () => {},
  });
  const monitors = ['10.0.0.1:6789', '10.0.0.2'];
  const pod = testPod('p', {
    volumes: [
      { name: 'a', nfs: { server: 'files.test', path: '/x' } },
      { name: 'b', nfs: { server: '2001:db8::1', path: '/x', readOnly: true } },
      { name: 'c', cephfs: { monitors, user: 'joe', secretFile: '/k' } },
      { name: 'd', cephfs: { monitors: ['m'], path: '/sub', secretRef: { name: 'ceph' }, readOnly: true } },
    ],
  });
  const secret = async () => ({ data: { key: base64('AQ==\n') } }) as Partial<Secret> as Secret;
  await volumes.provide(pod, {
    place: { nodeName: 'n', hostIps: [], podIps: [] },
    objects: { configMap: async () => undefined, secret, services: async () => [], ...noClaims },
    allocatable: {},
  });
  t.deepEqual(Object.fromEntries(mounts), {
    a: ['nfs', 'files.test:/x'],
    b: ['nfs', '[2001:db8::1]:/x', 'ro'],
    c: ['ceph', '10.0.0.1:6789,10.0.0.2:/', 'name=joe', 'secretfile=/k'],
    d: ['ceph', 'm:/sub', 'ro', 'name=admin', 'secret=AQ=='],
  });
});

test('a token is requested for the pod, renewed after 80 % of its validity, and used until it expires', async (t) => {
  const { provide } = await bench(t);
  const clock = new FakeClock();
  const requests: TokenRequest[] = [];
  let available = true;
  const createSubresource = async (_name: string, _subresource: string, body: TokenRequest) => {
    if (!available) throw new Error('no answer');
    requests.push(body);
    return { ...body, status: { token: `token-${requests.length}`, expirationTimestamp: '' } };
  };
  const api = { resource: () => ({ namespace: () => ({ createSubresource }) }) } as unknown as ApiClient;
  const tokens = new PodTokens({ api, clock, logger: silentLogger });
  const pod = withVolume({
    projected: { sources: [{ serviceAccountToken: { path: 'token', expirationSeconds: 1000, audience: 'vault' } }] },
  });
  const shown = async () => {
    const places = await provide(pod, tokens);
    return readFile(join(places.get('v') ?? '', 'token'), 'utf8');
  };
  t.is(await shown(), 'token-1');
  t.deepEqual(requests[0]?.spec, {
    audiences: ['vault'],
    expirationSeconds: 1000,
    boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: uidOf(pod) },
  });
  clock.advance(799_000);
  t.is(await shown(), 'token-1');
  clock.advance(1_000);
  t.is(await shown(), 'token-2');
  available = false;
  clock.advance(999_000);
  t.is(await shown(), 'token-2', 'the server does not answer, and the token is still valid');
  clock.advance(1_000);
  await t.throwsAsync(provide(pod, tokens), { instanceOf: VolumeProblem, message: /failed to fetch token: no answer/ });
  available = true;
  t.is(await shown(), 'token-3');
  tokens.forget(uidOf(pod));
  t.is(await shown(), 'token-4', 'a pod that is gone leaves no token behind');
});
