import { UsageError } from '@keelson/core/internal';
import test from 'ava';
import { parseOptions } from '../../../src/startup/options/parse-options.ts';
import { resolveConfig } from '../../../src/startup/options/resolve-config.ts';

const resolve = (...words: string[]) =>
  resolveConfig(parseOptions(words), { hostname: () => 'n', fileExists: () => false });
/** Without the threshold that the enforcement of what pods can have brings. */
const thresholds = (...words: string[]) => resolve('--enforce-node-allocatable=', ...words).config.eviction.thresholds;

test('--eviction-hard: the default has four thresholds, a given value replaces them all, and an empty one leaves none', (t) => {
  t.deepEqual(
    thresholds().map(({ signal, kind, value }) => [signal, kind, value]),
    [
      ['imagefs.available', 'hard', { share: 0.15 }],
      ['memory.available', 'hard', { count: 100 * 2 ** 20 }],
      ['nodefs.available', 'hard', { share: 0.1 }],
      ['nodefs.inodesFree', 'hard', { share: 0.05 }],
    ],
  );
  t.deepEqual(
    thresholds('--eviction-hard=imagefs.inodesFree<1k').map(({ signal, value }) => [signal, value]),
    [['imagefs.inodesFree', { count: 1000 }]],
  );
  t.deepEqual(thresholds('--eviction-hard='), []);
});

test('--enforce-node-allocatable=pods adds a threshold for the allocatable memory of all pods', (t) => {
  t.deepEqual(resolve('--eviction-hard=', '--enforce-node-allocatable=pods').config.eviction.thresholds, [
    { signal: 'allocatableMemory.available', kind: 'hard', value: { count: 0 }, graceMs: 0, minReclaim: { count: 0 } },
  ]);
});

test('--eviction-soft, --eviction-soft-grace-period and --eviction-minimum-reclaim are combined by signal', (t) => {
  t.deepEqual(
    thresholds(
      '--eviction-hard=memory.available<5%',
      '--eviction-soft=memory.available<1.5Gi,nodefs.available<12.5%',
      '--eviction-soft-grace-period=memory.available=1m30s,nodefs.available=2h',
      '--eviction-minimum-reclaim=memory.available=0,nodefs.available=1%',
    ),
    [
      { signal: 'memory.available', kind: 'hard', value: { share: 0.05 }, graceMs: 0, minReclaim: { count: 0 } },
      {
        signal: 'memory.available',
        kind: 'soft',
        value: { count: 1.5 * 2 ** 30 },
        graceMs: 90_000,
        minReclaim: { count: 0 },
      },
      {
        signal: 'nodefs.available',
        kind: 'soft',
        value: { share: 0.125 },
        graceMs: 7_200_000,
        minReclaim: { share: 0.01 },
      },
    ],
  );
});

test('a grace period or a minimum reclaim of a signal without a threshold causes a warning', (t) => {
  t.deepEqual(
    resolve(
      '--eviction-soft-grace-period=memory.available=1m',
      '--eviction-minimum-reclaim=imagefs.inodesFree=1,memory.available=1',
    ).warnings,
    [
      '--eviction-soft-grace-period: memory.available has no effect because --eviction-soft has no such threshold',
      '--eviction-minimum-reclaim: imagefs.inodesFree has no effect because neither --eviction-hard nor --eviction-soft has such a threshold',
    ],
  );
});

test('options without effect, because there is no such threshold, cause a warning', (t) => {
  t.deepEqual(
    resolve('--eviction-hard=', '--eviction-max-pod-grace-period=-1', '--experimental-kernel-memcg-notification')
      .warnings,
    [
      '--eviction-max-pod-grace-period has no effect without --eviction-soft',
      '--experimental-kernel-memcg-notification has no effect without a threshold of memory.available',
    ],
  );
  t.deepEqual(resolve('--experimental-kernel-memcg-notification').warnings, []);
});

const known =
  'memory.available, allocatableMemory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree';
const refused: readonly (readonly [words: readonly string[], message: string])[] = [
  [['--eviction-hard=disk.free<1Gi'], `--eviction-hard: unknown eviction signal "disk.free"; use one of ${known}`],
  [['--eviction-hard=toString<1Gi'], `--eviction-hard: unknown eviction signal "toString"; use one of ${known}`],
  [
    ['--eviction-hard=memory.available<lots'],
    '--eviction-hard: memory.available must be a quantity or a percentage, not "lots"',
  ],
  [['--eviction-hard=memory.available<-1Gi'], '--eviction-hard: memory.available must not be negative, not "-1Gi"'],
  [['--eviction-hard=memory.available<0'], '--eviction-hard: memory.available must be above 0, not "0"'],
  [['--eviction-hard=memory.available<0%'], '--eviction-hard: memory.available must be above 0%, not "0%"'],
  [
    ['--eviction-hard=memory.available<101%'],
    '--eviction-hard: memory.available must be between 0% and 100%, not "101%"',
  ],
  [
    ['--eviction-hard=nodefs.available<-5%'],
    '--eviction-hard: nodefs.available must be between 0% and 100%, not "-5%"',
  ],
  [
    ['--eviction-soft=memory.available<1Gi'],
    '--eviction-soft: memory.available needs a period in --eviction-soft-grace-period',
  ],
  [
    ['--eviction-soft=memory.available<1Gi', '--eviction-soft-grace-period=memory.available=soon'],
    '--eviction-soft-grace-period: memory.available must be a duration above 0, not "soon"',
  ],
  [
    ['--eviction-soft=memory.available<1Gi', '--eviction-soft-grace-period=memory.available=-1m'],
    '--eviction-soft-grace-period: memory.available must be a duration above 0, not "-1m"',
  ],
  [
    ['--eviction-soft-grace-period=cpu=1m'],
    `--eviction-soft-grace-period: unknown eviction signal "cpu"; use one of ${known}`,
  ],
  [
    ['--eviction-minimum-reclaim=cpu=1'],
    `--eviction-minimum-reclaim: unknown eviction signal "cpu"; use one of ${known}`,
  ],
  [
    ['--eviction-minimum-reclaim=memory.available=-1'],
    '--eviction-minimum-reclaim: memory.available must not be negative, not "-1"',
  ],
  [['--eviction-pressure-transition-period=-1s'], '--eviction-pressure-transition-period must not be negative'],
];
for (const [words, message] of refused) {
  test(`invalid options are rejected: ${words.join(' ')}`, (t) => {
    t.throws(() => resolve(...words), { instanceOf: UsageError, message });
  });
}
