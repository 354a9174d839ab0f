import test from 'ava';
import { NodeResources } from '../../../src/node/node-resources.ts';
import { nodeConditions } from '../../../src/node/node-status.ts';
import { machine, wordsConfig } from '../../support/bench.ts';

/** What pods can have on a machine of 8 GiB with a disk of 100 GiB. */
async function allocatable(...words: string[]): Promise<Readonly<Record<string, string>>> {
  const resources = new NodeResources({
    config: wordsConfig('/x', words),
    machine,
    maxPods: 110,
    diskBytes: async () => 100 * 2 ** 30,
  });
  await resources.start();
  return resources.allocatable;
}

const rest = { cpu: '4', pods: '110' };
const withDisk = '--feature-gates=LocalStorageCapacityIsolation=true';
const cases: readonly (readonly [words: readonly string[], amounts: Readonly<Record<string, string>>])[] = [
  [[], { memory: '8092Mi' }],
  [['--eviction-hard='], { memory: '8388608Ki' }],
  [['--eviction-hard=memory.available<25%'], { memory: '6Gi' }],
  [
    ['--eviction-hard=memory.available<1Gi', '--system-reserved=memory=1Gi', '--cluster-reserved=memory=2Gi'],
    { memory: '4Gi' },
  ],
  [['--eviction-hard=memory.available<9Gi'], { memory: '0' }],
  [
    ['--eviction-hard=', '--eviction-soft=memory.available<1Gi', '--eviction-soft-grace-period=memory.available=1m'],
    { memory: '8388608Ki' },
  ],
  [['--experimental-allocatable-ignore-eviction'], { memory: '8388608Ki' }],
  [[withDisk], { memory: '8092Mi', 'ephemeral-storage': '90Gi' }],
  [
    [withDisk, '--eviction-hard=nodefs.available<1Gi', '--system-reserved=ephemeral-storage=9Gi'],
    { memory: '8388608Ki', 'ephemeral-storage': '90Gi' },
  ],
  [
    [withDisk, '--experimental-allocatable-ignore-eviction'],
    { memory: '8388608Ki', 'ephemeral-storage': '104857600Ki' },
  ],
];
for (const [words, amounts] of cases) {
  test(`allocatable resources exclude those of hard eviction thresholds: ${words.join(' ') || 'by default'}`, async (t) => {
    t.deepEqual(await allocatable(...words), { ...rest, ...amounts });
  });
}

test('pressure conditions have their own reasons and transition times', (t) => {
  const conditions = (
    pressure: readonly ('MemoryPressure' | 'DiskPressure')[],
    before: ReturnType<typeof nodeConditions>,
    nowMs: number,
  ) => nodeConditions({ problems: [], pressure: new Set(pressure), before, nowMs });
  const calm = conditions([], [], 0);
  const disk = conditions(['DiskPressure'], calm, 60_000);
  const both = conditions(['DiskPressure', 'MemoryPressure'], disk, 120_000);
  t.deepEqual(
    both.map(({ type, status, reason, lastTransitionTime }) => [type, status, reason, lastTransitionTime]),
    [
      ['OutOfDisk', 'False', 'KubeletHasSufficientDisk', '1970-01-01T00:00:00Z'],
      ['MemoryPressure', 'True', 'KubeletHasInsufficientMemory', '1970-01-01T00:02:00Z'],
      ['DiskPressure', 'True', 'KubeletHasDiskPressure', '1970-01-01T00:01:00Z'],
      ['PIDPressure', 'False', 'KubeletHasSufficientPID', '1970-01-01T00:00:00Z'],
      ['Ready', 'True', 'KubeletReady', '1970-01-01T00:00:00Z'],
    ],
  );
  t.deepEqual(
    calm.slice(1, 3).map(({ reason }) => reason),
    ['KubeletHasSufficientMemory', 'KubeletHasNoDiskPressure'],
  );
});
