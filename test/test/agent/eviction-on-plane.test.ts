import { mkdir, writeFile } from 'node:fs/promises';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import type { EventRecorder } from '@keelson/agent';
import { Node, Pod } from '@keelson/kinds';
import { createFakeRuntime, FakeWorld } from '@keelson/runtime-fake';
import { eventually, startTestPlane } from '@keelson/testing';
import test from 'ava';
import { scratchDirectory, startAgentNode } from '../../src/agent-node.ts';

const gibibyte = 2 ** 30;

test('a node with memory pressure reports it, evicts pods of the API and static pods, and recovers', async (t) => {
  t.timeout(60_000);
  const plane = await startTestPlane();
  t.teardown(() => plane.close());
  const { dir, remove } = await scratchDirectory();
  t.teardown(remove);
  const manifests = join(dir, 'manifests');
  await mkdir(manifests);
  const spec = { terminationGracePeriodSeconds: 1, containers: [{ name: 'main', image: 'app:1' }] };
  await writeFile(
    join(manifests, 'own.json'),
    JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'own' }, spec }),
  );
  let available = 4 * gibibyte;
  const disk = { device: '1', capacityBytes: 1e11, availableBytes: 9e10, inodes: 1e6, inodesFree: 9e5 };
  const events: string[] = [];
  const recorder: EventRecorder = {
    record: ({ kind, name }, type, reason) => events.push(`${kind} ${name} ${type} ${reason}`),
  };
  const node = await startAgentNode({
    name: 'short',
    engine: createFakeRuntime(new FakeWorld({ images: ['app:1'] })),
    api: plane.api,
    words: [
      `--pod-manifest-path=${manifests}`,
      '--eviction-hard=memory.available<1Gi',
      '--eviction-pressure-transition-period=1s',
    ],
    dir,
    events: recorder,
    nodeUsage: { workingSetBytes: async () => totalmem() - available, disk: async () => disk },
  });
  t.teardown(() => node.stop());
  const pods = plane.client(Pod).namespace('default');
  const status = async (name: string) => (await pods.get(name)).status;
  const condition = async () =>
    (await plane.client(Node).get('short')).status?.conditions?.find(({ type }) => type === 'MemoryPressure');
  const put = (name: string) =>
    pods.create({ metadata: { name, namespace: 'default' }, spec: { ...spec, nodeName: 'short' } });

  await put('bound');
  for (const name of ['bound', 'own-short']) await eventually(async () => (await status(name))?.phase === 'Running');
  t.like(await condition(), { status: 'False', reason: 'KubeletHasSufficientMemory' });

  available = gibibyte / 2;
  await eventually(async () => (await condition())?.status === 'True');
  const pressed = await condition();
  t.is(pressed?.reason, 'KubeletHasInsufficientMemory');
  for (const name of ['bound', 'own-short']) {
    await eventually(async () => (await status(name))?.phase === 'Failed');
    t.like(await status(name), { reason: 'Evicted' });
    t.regex(
      (await status(name))?.message ?? '',
      /^The node was low on resource: memory\. Threshold quantity: 1Gi, available: 512Mi\./,
    );
  }
  await put('refused');
  await eventually(async () => (await status('refused'))?.phase === 'Failed');
  t.like(await status('refused'), { reason: 'Evicted', message: 'The node had condition: [MemoryPressure].' });

  available = 4 * gibibyte;
  await eventually(async () => (await condition())?.status === 'False');
  t.true(Date.parse((await condition())?.lastTransitionTime ?? '') >= Date.parse(pressed?.lastTransitionTime ?? ''));
  await put('taken');
  await eventually(async () => (await status('taken'))?.phase === 'Running');
  for (const name of ['bound', 'refused']) {
    await pods.delete(name);
    await eventually(async () => (await pods.list()).items.every(({ metadata }) => metadata?.name !== name));
  }
  t.true(events.includes('Node short Warning EvictionThresholdMet'));
  t.true(events.includes('Pod bound Warning Evicted'));
  t.true(events.includes('Node short Normal NodeHasInsufficientMemory'));
  t.true(events.includes('Node short Normal NodeHasSufficientMemory'));
});
