import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { FakeClock } from '@keelson/core/runtime';
import type { Pod } from '@keelson/kinds';
import { listeningLogger, manifest, temporaryDirectory } from '@keelson/test-support';
import test from 'ava';
import { noEvents } from '../../src/base/events/event-recorder.ts';
import { Checkpoints, checkpointAnnotation } from '../../src/sources/checkpoints.ts';
import { ManifestError } from '../../src/sources/parse-manifest.ts';
import { SubmitSource } from '../../src/sources/submit-source.ts';
import { submittedManifestsIn } from '../../src/sources/submitted-manifests.ts';
import { namesOf } from '../support/bench.ts';

async function open(directory: string) {
  const sets: (readonly Pod[])[] = [];
  const source = new SubmitSource({
    store: submittedManifestsIn(directory),
    nodeName: 'n1',
    sink: (pods) => sets.push(pods),
    clock: new FakeClock(),
    logger: listeningLogger(),
    events: noEvents,
  });
  await source.start();
  return { source, sets, names: () => namesOf(sets.at(-1) ?? []) };
}

test('submitted manifests are added, replaced by name, deleted, and replaced as a whole', async (t) => {
  const { source, sets, names } = await open(await temporaryDirectory(t));
  t.deepEqual(sets, [[]]);
  t.deepEqual(namesOf(await source.put(Buffer.from(manifest('a')))), ['a-n1']);
  await source.put(Buffer.from(manifest('b')));
  t.deepEqual(names(), ['a-n1', 'b-n1']);
  const uid = sets.at(-1)?.[0]?.metadata?.uid;
  await source.put(Buffer.from(manifest('a', 'other')));
  t.deepEqual(names(), ['a-n1', 'b-n1']);
  t.not(sets.at(-1)?.[0]?.metadata?.uid, uid);
  t.is(sets.at(-1)?.[0]?.metadata?.annotations?.['kubernetes.io/config.source'], 'http');
  t.is((await source.remove('default', 'a'))?.metadata?.name, 'a-n1');
  t.is(await source.remove('default', 'a'), undefined);
  t.is((await source.remove('default', 'b-n1'))?.metadata?.name, 'b-n1', 'the name it runs under will do');
  const pod = (name: string) => ({ metadata: { name }, spec: { containers: [{ name: 'c', image: 'host' }] } });
  await source.replace(Buffer.from(JSON.stringify({ apiVersion: 'v1', kind: 'PodList', items: [pod('x'), pod('y')] })));
  t.deepEqual(names(), ['x-n1', 'y-n1']);
  await source.replace(Buffer.from(''));
  t.deepEqual(names(), []);
});

test('documents of one submission are accepted together, or none of them', async (t) => {
  const { source } = await open(await temporaryDirectory(t));
  const refused = source.put(Buffer.from(`${manifest('a')}---\nkind: Service\napiVersion: v1\n`));
  await t.throwsAsync(refused, { message: 'has document 2, which has kind "Service"; it must be Pod or PodList' });
  t.deepEqual(source.pods(), []);
  await source.put(Buffer.from(`${manifest('a')}---\n${manifest('b')}`));
  t.deepEqual(namesOf(source.pods()), ['a-n1', 'b-n1']);
});

test('a list with an invalid pod changes nothing', async (t) => {
  const { source, sets } = await open(await temporaryDirectory(t));
  const pod = (name: string) => ({ metadata: { name }, spec: { containers: [{ name: 'c', image: 'host' }] } });
  for (const items of [[pod('a'), pod('BAD')], [pod('a'), pod('a')], [null]]) {
    await t.throwsAsync(source.put(Buffer.from(JSON.stringify({ apiVersion: 'v1', kind: 'PodList', items }))), {
      instanceOf: ManifestError,
    });
  }
  t.is(sets.length, 1);
});

test('submitted manifests persist across restarts of the agent, with the same UIDs', async (t) => {
  const directory = await temporaryDirectory(t);
  const first = await open(directory);
  await Promise.all(['a', 'b', 'c'].map((name) => first.source.put(Buffer.from(manifest(name)))));
  await first.source.stop();
  const second = await open(directory);
  t.deepEqual(second.names(), ['a-n1', 'b-n1', 'c-n1']);
  t.deepEqual(
    second.sets[0]?.map(({ metadata }) => metadata?.uid),
    first.sets.at(-1)?.map(({ metadata }) => metadata?.uid),
  );
  t.is((await stat(join(directory, 'submitted-manifests.json'))).mode & 0o777, 0o600);
});

test('a damaged store is an error and is not treated as empty, which would end its pods', async (t) => {
  const directory = await temporaryDirectory(t);
  await writeFile(join(directory, 'submitted-manifests.json'), '[{');
  await t.throwsAsync(open(directory));
  await writeFile(join(directory, 'submitted-manifests.json'), '{}');
  await t.throwsAsync(open(directory), { message: /does not contain a list/ });
});

test('--bootstrap-checkpoint-path: annotated pods are stored, updated, removed, and restored', async (t) => {
  const directory = join(await temporaryDirectory(t), 'deep', 'down');
  const logger = listeningLogger();
  const pod = (uid: string, annotations: Record<string, string>, image = 'host'): Pod => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: uid, namespace: 'default', uid, annotations },
    spec: { containers: [{ name: 'c', image }] } as Pod['spec'],
    status: { phase: 'Running' },
  });
  const marked = { [checkpointAnnotation]: 'true' };
  const checkpoints = new Checkpoints(directory, logger);
  t.deepEqual(await checkpoints.load(), []);
  await checkpoints.save([pod('u1', marked), pod('u2', {}), pod('../u3', marked)]);
  const fresh = () => new Checkpoints(directory, logger).load();
  t.deepEqual(namesOf(await fresh()), ['u1']);
  await checkpoints.save([pod('u1', marked, 'new')]);
  t.is((await fresh())[0]?.spec.containers[0]?.image, 'new');
  t.regex(await readFile(join(directory, 'Pod_u1.yaml'), 'utf8'), /^apiVersion: v1\nkind: Pod\n/);
  await writeFile(join(directory, 'Pod_u9.yaml'), 'garbage: [');
  await writeFile(join(directory, 'Pod_u8.yaml'), await readFile(join(directory, 'Pod_u1.yaml')));
  t.deepEqual(namesOf(await fresh()), ['u1'], 'files that are not what their names say are passed over');
  await new Checkpoints(directory, logger).save([]);
  t.deepEqual(namesOf(await fresh()), [], 'forgotten after a restart too');
});
