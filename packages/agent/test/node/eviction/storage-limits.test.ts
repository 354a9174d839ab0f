import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Pod } from '@keelson/kinds';
import test from 'ava';
import { exceededLimit } from '../../../src/node/eviction/storage-limits.ts';
import { startBench, testPod } from '../../support/bench.ts';

const limited = (name: string, limit?: string) => ({
  ...{ name, image: 'app:1', imagePullPolicy: 'IfNotPresent' },
  ...(limit !== undefined && { resources: { limits: { 'ephemeral-storage': limit } } }),
});
const usageOf = (
  pod: Pod,
  written: Readonly<Record<string, number>>,
  volumes: Readonly<Record<string, number>> = {},
) => ({
  ...{ namespace: 'default', name: 'p', uid: pod.metadata?.uid ?? '', startTimeMs: 0 },
  containers: Object.entries(written).map(([name, usedBytes]) => ({
    ...{ name, startTimeMs: 0, timeMs: 0, cpuNanoSeconds: 0, memoryWorkingSetBytes: 0 },
    writableLayer: { usedBytes },
  })),
  volumes: Object.entries(volumes).map(([name, usedBytes]) => ({
    ...{ name, usedBytes, timeMs: 0, inodesUsed: 0, capacityBytes: 0, availableBytes: 0, inodes: 0, inodesFree: 0 },
  })),
});

test('disk limits apply to an emptyDir, to all containers with volumes and logs, and to one container', (t) => {
  const volumes = [
    { name: 'small', emptyDir: { sizeLimit: '1k' } },
    { name: 'shm', emptyDir: { medium: 'Memory', sizeLimit: '1k' } },
  ];
  const pod = testPod('p', { volumes, containers: [limited('a', '2k'), limited('b', '3k')] });
  const volumeAbove = (name: string) => `Usage of EmptyDir volume "${name}" exceeds the limit "1k".`;
  const exceeded = (written: Record<string, number>, used: Record<string, number> = {}, logs = 0) =>
    exceededLimit(pod, usageOf(pod, written, used), { bytes: logs, inodes: 0 })?.message;
  t.is(exceeded({ a: 2000, b: 2000 }, { small: 1000, shm: 9000 }), volumeAbove('shm'), 'of a node that cannot mount');
  t.is(exceeded({ a: 2000, b: 2000 }, { small: 1000, shm: 1000 }), undefined, 'memory is not disk of the containers');
  t.is(exceeded({ a: 0 }, { small: 1001 }), volumeAbove('small'));
  t.is(
    exceeded({ a: 2000, b: 2000 }, { small: 500 }, 501),
    'Pod ephemeral local storage usage exceeds the total limit of containers 2k + 3k.',
  );
  t.is(exceeded({ a: 2001 }), 'Container a exceeded its local ephemeral storage limit "2k".');
  const free = testPod('free', { containers: [limited('a', '2k'), limited('b')] });
  t.is(
    exceededLimit(free, usageOf(free, { a: 1, b: 1e9 }), { bytes: 1e9, inodes: 0 }),
    undefined,
    'one without a limit leaves all without',
  );
});

test('the gate LocalStorageCapacityIsolation: a pod above its limit is evicted, however much space is free', async (t) => {
  for (const gate of [false, true]) {
    const bench = await startBench(t, {
      words: [
        '--volume-stats-agg-period=20s',
        '--eviction-hard=',
        `--feature-gates=LocalStorageCapacityIsolation=${gate}`,
      ],
    });
    const volumes = [{ name: 'data', emptyDir: { sizeLimit: '64Ki' } }];
    const pod = testPod('writer', { volumes });
    bench.pods.put(pod, testPod('other', { volumes }));
    await bench.until(() => bench.status(pod).phase === 'Running');
    const directory = join(
      bench.rootDir,
      'agent/pods',
      pod.metadata?.uid ?? '',
      'volumes/kubernetes.io~empty-dir/data',
    );
    await mkdir(directory, { recursive: true });
    await writeFile(join(directory, 'file'), Buffer.alloc(100_000));
    await bench.pass(60_000, 1000);
    t.deepEqual(
      bench.events.filter(({ reason }) => reason === 'Evicted').map((event) => [event.pod, event.message]),
      gate ? [['writer', 'Usage of EmptyDir volume "data" exceeds the limit "64Ki".']] : [],
    );
    t.is(bench.status(pod).phase, gate ? 'Failed' : 'Running');
    if (gate) await t.throwsAsync(writeFile(join(directory, 'file'), ''), { code: 'ENOENT' }, 'what it wrote is gone');
  }
});
