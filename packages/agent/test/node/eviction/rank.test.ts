import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryDirectory } from '@keelson/test-support';
import test from 'ava';
import fc from 'fast-check';
import { AgentPaths } from '../../../src/base/agent-paths.ts';
import { uidOf } from '../../../src/base/pod/pod-spec.ts';
import { localFiles } from '../../../src/machine/host/local-files.ts';
import { diskSpace } from '../../../src/node/eviction/disk-space.ts';
import { candidateOf } from '../../../src/node/eviction/pod-consumption.ts';
import { podRequest } from '../../../src/node/eviction/pod-requests.ts';
import { byEviction, type Candidate } from '../../../src/node/eviction/rank.ts';
import { testPod } from '../../support/bench.ts';

const amount = fc.integer({ min: 0, max: 20 });
const candidate: fc.Arbitrary<Candidate> = fc.record({
  usage: amount,
  request: amount,
  priority: fc.integer({ min: -2, max: 2 }),
});

/** The rule in words, for two neighbours; fast-check prints the seed when it is broken. */
function isRight(first: Candidate, next: Candidate): boolean {
  const [over, nextOver] = [first.usage > first.request, next.usage > next.request];
  if (over !== nextOver) return over;
  if (first.priority !== next.priority) return first.priority < next.priority;
  return first.usage - first.request >= next.usage - next.request;
}

test('pods above their requests come first, then those of lower priority, then those further above the request', (t) => {
  fc.assert(
    fc.property(fc.array(candidate, { maxLength: 12 }), (pods) => {
      const order = [...pods].sort(byEviction);
      return order.slice(1).every((next, index) => isRight(order[index] ?? next, next));
    }),
  );
  t.pass();
});

test('the eviction order is transitive and antisymmetric', (t) => {
  fc.assert(
    fc.property(candidate, candidate, candidate, (a, b, c) => {
      const transitive = byEviction(a, b) > 0 || byEviction(b, c) > 0 || byEviction(a, c) <= 0;
      return transitive && Math.sign(byEviction(a, b)) + Math.sign(byEviction(b, a)) === 0;
    }),
  );
  t.pass();
});

test('the request of a pod is the sum of its containers or its largest init container; a limit replaces a missing request', (t) => {
  const container = (name: string, requests?: string, limits?: string) => ({
    name,
    image: 'app:1',
    resources: { ...(requests && { requests: { memory: requests } }), ...(limits && { limits: { memory: limits } }) },
  });
  const pod = testPod('p', {
    initContainers: [container('big', '5Gi'), { ...container('side', '1Gi'), restartPolicy: 'Always' }],
    containers: [container('a', '1Gi', '9Gi'), container('b', undefined, '2Gi'), container('c')],
  });
  t.is(podRequest(pod, 'memory'), 6 * 2 ** 30);
  t.is(podRequest({ ...pod, spec: { ...pod.spec, initContainers: [] } }, 'memory'), 3 * 2 ** 30);
  t.is(podRequest(testPod('q'), 'memory'), 0);
});

test('the disk usage of a pod consists of writable layers, logs and emptyDirs, each on its own disk', (t) => {
  const pod = testPod('p');
  const uid = pod.metadata?.uid ?? '';
  const container = { name: 'main', startTimeMs: 0, timeMs: 0, cpuNanoSeconds: 0, memoryWorkingSetBytes: 7 };
  const containers = [{ ...container, writableLayer: { usedBytes: 1000, inodesUsed: 1 } }];
  const usage = new Map([[uid, { namespace: 'default', name: 'p', uid, startTimeMs: 0, containers }]]);
  const files = new Map([[uid, { bytes: 105, inodes: 12 }]]);
  const used = (ownImagefs: boolean) =>
    (['memory', 'nodefs', 'nodefsInodes', 'imagefs', 'imagefsInodes'] as const).map(
      (resource) => candidateOf(pod, resource, { usage, files, ownImagefs, priorities: false }).usage,
    );
  t.deepEqual(used(false), [7, 1105, 13, 1105, 13]);
  t.deepEqual(used(true), [7, 105, 12, 1000, 1]);
});

test('the files of a pod are its current logs and emptyDirs on disk', async (t) => {
  const directory = await temporaryDirectory(t);
  const paths = new AgentPaths(join(directory, 'agent'), join(directory, 'log'));
  const pod = testPod('p', {
    volumes: [
      { name: 'data', emptyDir: {} },
      { name: 'shm', emptyDir: { medium: 'Memory' } },
      { name: 'share', hostPath: { path: directory } },
    ],
  });
  const uid = uidOf(pod);
  const disk = diskSpace(paths, localFiles);
  const { signal } = new AbortController();
  t.deepEqual(await disk.files(pod, signal), { bytes: 0, inodes: 0 });
  for (const folder of [
    paths.podLogs(uid),
    paths.volume(uid, 'empty-dir', 'data'),
    paths.volume(uid, 'empty-dir', 'shm'),
  ]) {
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, 'file'), Buffer.alloc(100_000, 1));
  }
  const { bytes, inodes } = await disk.files(pod, signal);
  t.is(inodes, 4);
  t.true(bytes >= 200_000 && bytes < 300_000, String(bytes));
  t.is((await disk.logs(uid, signal)).inodes, 2);
});
