import { mkdtemp, readdir, rm, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSources, noEvents, parseOptions, resolveConfig, type Sources } from '@keelson/agent';
import type { ApiClient } from '@keelson/core';
import { type Logger, silentLogger, systemClock } from '@keelson/core/runtime';
import { Node, Pod } from '@keelson/kinds';
import { eventually, startTestPlane, type TestPlane } from '@keelson/testing';
import test, { type ExecutionContext } from 'ava';

const mirrorAnnotation = 'kubernetes.io/config.mirror';

const manifest = (name: string, image = 'host') =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: { containers: [{ name: 'main', image }] },
  });

async function temporaryDirectory(t: ExecutionContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'keelson-agent-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

async function plane(t: ExecutionContext, node: string): Promise<TestPlane> {
  const opened = await startTestPlane();
  t.teardown(() => opened.close());
  await opened.client(Node).create({ metadata: { name: node } });
  return opened;
}

interface Opened {
  readonly sources: Sources;
  readonly notified: string[];
}

async function open(
  t: ExecutionContext,
  client: ApiClient | undefined,
  words: readonly string[] = [],
  logger: Logger = silentLogger,
): Promise<Opened> {
  const directory = await temporaryDirectory(t);
  const parsed = parseOptions([
    '--hostname-override=n1',
    `--root-dir=${directory}/root`,
    '--enable-server=false',
    ...words,
  ]);
  const { config } = resolveConfig(parsed, { hostname: () => 'n1', fileExists: () => false });
  const sources = createSources({ config, client, events: noEvents, clock: systemClock, logger });
  const notified: string[] = [];
  sources.config.subscribe((source, changes) => {
    for (const { op, pod } of changes) notified.push(`${source} ${op} ${pod.metadata?.name}`);
  });
  t.teardown(() => sources.stop());
  return { sources, notified };
}

const bound = (name: string, nodeName: string, extra: object = {}) => ({
  metadata: { name, ...extra },
  spec: { nodeName, containers: [{ name: 'main', image: 'host' }] },
});

test('the API source follows only the pods of its node', async (t) => {
  const api = await plane(t, 'n1');
  const pods = api.client(Pod).namespace('default');
  await pods.create(bound('before', 'n1') as never);
  await pods.create(bound('elsewhere', 'n2') as never);
  const { sources, notified } = await open(t, api.api);
  t.false(sources.config.seenAllSources());
  await sources.start();
  await eventually(() => sources.config.seenAllSources());
  t.deepEqual(notified, ['api add before']);
  await pods.create(bound('after', 'n1', { annotations: { 'kubernetes.io/config.source': 'file' } }) as never);
  await eventually(() => notified.includes('api add after'));
  const after = sources.config.pods().find(({ metadata }) => metadata?.name === 'after');
  t.is(
    after?.metadata?.annotations?.['kubernetes.io/config.source'],
    'api',
    'a pod of the API cannot declare another source',
  );
  await pods.patch('before', 'merge', { metadata: { labels: { a: 'b' } } });
  await eventually(() => notified.includes('api update before'));
  await pods.patchSubresource('before', 'status', 'merge', { status: { message: 'x' } });
  await eventually(() => notified.includes('api reconcile before'));
  await pods.delete('before', { gracePeriodSeconds: 20 });
  await eventually(() => notified.filter((line) => line === 'api update before').length === 2);
  t.truthy(sources.config.pods().find(({ metadata }) => metadata?.name === 'before')?.metadata?.deletionTimestamp);
  await pods.delete('before', { gracePeriodSeconds: 0 });
  await eventually(() => notified.includes('api remove before'));
  t.false(notified.some((line) => line.includes('elsewhere')));
});

test('a static pod has a mirror pod: created, recreated when deleted or changed, and removed with the pod', async (t) => {
  const api = await plane(t, 'n1');
  const pods = api.client(Pod).namespace('default');
  const directory = await temporaryDirectory(t);
  const { sources, notified } = await open(t, api.api, [`--pod-manifest-path=${directory}`]);
  const path = join(directory, 'web.json');
  await writeFile(path, manifest('web'));
  await sources.start();
  const mirror = () => pods.get('web-n1').catch(() => undefined);
  const first = await eventually(mirror);
  const uid = sources.config.pods().find(({ metadata }) => metadata?.annotations?.[mirrorAnnotation] === undefined)
    ?.metadata?.uid;
  t.is(first.metadata?.annotations?.[mirrorAnnotation], uid);
  t.is(first.metadata?.annotations?.['kubernetes.io/config.source'], 'file');
  t.not(first.metadata?.uid, uid, 'the mirror pod is an object of its own');
  const node = await api.client(Node).get('n1');
  t.deepEqual(first.metadata?.ownerReferences, [
    { apiVersion: 'v1', kind: 'Node', name: 'n1', uid: node.metadata?.uid ?? '', controller: true },
  ]);

  await pods.delete('web-n1', { gracePeriodSeconds: 0 });
  const second = await eventually(async () => {
    const found = await mirror();
    return found?.metadata?.uid !== first.metadata?.uid && found;
  });
  await pods.delete('web-n1', { gracePeriodSeconds: 30 });
  const third = await eventually(async () => {
    const found = await mirror();
    return found !== undefined && found.metadata?.uid !== second.metadata?.uid && found;
  });
  t.is(third.metadata?.deletionTimestamp, undefined, 'a graceful deletion of the mirror pod ends immediately');
  t.deepEqual(
    notified.filter((line) => line.startsWith('file')),
    ['file add web-n1'],
    'changes of the mirror pod do not affect the static pod',
  );

  await writeFile(path, manifest('web', 'other'));
  const fourth = await eventually(async () => {
    const found = await mirror();
    return found?.spec.containers[0]?.image === 'other' && found;
  });
  t.not(fourth.metadata?.annotations?.[mirrorAnnotation], uid);
  await unlink(path);
  await eventually(async () => (await mirror()) === undefined);
});

test('mirror pods of static pods that were removed while the agent was stopped are deleted once every source is ready', async (t) => {
  const api = await plane(t, 'n1');
  const pods = api.client(Pod).namespace('default');
  await pods.create(
    bound('old-n1', 'n1', {
      annotations: { [mirrorAnnotation]: 'gone', 'kubernetes.io/config.source': 'file' },
    }) as never,
  );
  await pods.create(bound('real', 'n1') as never);
  // No server listens there: the source of the URL is never ready.
  const waiting = await open(t, api.api, ['--manifest-url=http://127.0.0.1:9/']);
  await waiting.sources.start();
  await eventually(() => waiting.notified.includes('api add old-n1'));
  // Deletions would follow the notification of the mirror pod, and precede pods that are created after it.
  for (const name of ['later', 'latest']) {
    await pods.create(bound(name, 'n1') as never);
    await eventually(() => waiting.notified.includes(`api add ${name}`));
  }
  t.false(waiting.notified.includes('api remove old-n1'));
  t.truthy(await pods.get('old-n1'));
  await waiting.sources.stop();
  const whole = await open(t, api.api);
  await whole.sources.start();
  await eventually(() => whole.notified.includes('api remove old-n1'));
  t.truthy(await pods.get('real'));
});

test('a pod of the API with the name of a mirror pod is not treated as mirror pod, nor deleted', async (t) => {
  const api = await plane(t, 'n1');
  const pods = api.client(Pod).namespace('default');
  const before = await pods.create(bound('web-n1', 'n1') as never);
  const warned: unknown[] = [];
  const logger: Logger = { ...silentLogger, warn: (_, fields) => warned.push(fields), child: () => logger };
  const directory = await temporaryDirectory(t);
  await writeFile(join(directory, 'web.json'), manifest('web'));
  const { sources } = await open(t, api.api, [`--pod-manifest-path=${directory}`], logger);
  await sources.start();
  await eventually(() => warned.length > 0);
  t.is((await pods.get('web-n1')).metadata?.uid, before.metadata?.uid);
  t.is(sources.config.pods().length, 2, 'both run');
});

test('--bootstrap-checkpoint-path: pods run before the API responds, and the API takes precedence afterwards', async (t) => {
  const api = await plane(t, 'n1');
  const pods = api.client(Pod).namespace('default');
  const marked = { annotations: { 'node.kubernetes.io/bootstrap-checkpoint': 'true' } };
  await pods.create(bound('remembered', 'n1', marked) as never);
  await pods.create(bound('forgotten', 'n1') as never);
  const checkpoints = await temporaryDirectory(t);
  const words = [`--bootstrap-checkpoint-path=${checkpoints}`];
  const first = await open(t, api.api, words);
  await first.sources.start();
  await eventually(async () => (await readdir(checkpoints)).some((name) => name.endsWith('.yaml')));
  await first.sources.stop();
  const list = ({ signal }: { signal: AbortSignal }) =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))));
  const silent = { ...api.api, resource: () => ({ resourceName: { resource: 'pods' }, list }) } as unknown as ApiClient;
  const alone = await open(t, silent, words);
  await alone.sources.start();
  t.deepEqual(alone.notified, ['api add remembered']);
  t.false(alone.sources.config.seenAllSources());
  await pods.delete('remembered', { gracePeriodSeconds: 0 });
  const again = await open(t, api.api, words);
  await again.sources.start();
  await eventually(() => again.sources.config.seenAllSources());
  t.deepEqual(again.notified.toSorted(), ['api add forgotten', 'api add remembered', 'api remove remembered']);
});
