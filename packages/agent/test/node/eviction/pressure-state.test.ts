import test from 'ava';
import type { Signal } from '../../../src/base/config/eviction-signals.ts';
import type { Threshold } from '../../../src/base/config/eviction-threshold.ts';
import { PressureState } from '../../../src/node/eviction/pressure.ts';

const threshold = (changes: Partial<Threshold>): Threshold => ({
  signal: 'memory.available',
  kind: 'hard',
  value: { count: 100 },
  graceMs: 0,
  minReclaim: { count: 0 },
  ...changes,
});
const memory = (available: number, capacity = 1000) =>
  new Map<Signal, { available: number; capacity: number }>([['memory.available', { available, capacity }]]);

interface Scenario {
  readonly title: string;
  readonly threshold: Partial<Threshold>;
  readonly transitionMs?: number;
  /** Time, what is available, whether the threshold is due, whether the node has the condition. */
  readonly observations: readonly (readonly [
    ms: number,
    available: number | undefined,
    due: boolean,
    pressure: boolean,
  ])[];
}

const scenarios: readonly Scenario[] = [
  {
    title: 'a hard threshold is met below its value, not at it',
    threshold: {},
    observations: [
      [0, 101, false, false],
      [1, 100, false, false],
      [2, 99, true, true],
    ],
  },
  {
    title: 'a percentage refers to the capacity of the machine',
    threshold: { value: { share: 0.15 } },
    observations: [
      [0, 150, false, false],
      [1, 149, true, true],
    ],
  },
  {
    title: 'a soft threshold is due after its grace period, and its condition is set immediately',
    threshold: { kind: 'soft', graceMs: 60_000 },
    observations: [
      [0, 99, false, true],
      [59_999, 99, false, true],
      [60_000, 99, true, true],
    ],
  },
  {
    title: 'the grace period restarts when the threshold was not met in between',
    threshold: { kind: 'soft', graceMs: 60_000 },
    observations: [
      [0, 99, false, true],
      [50_000, 100, false, true],
      [55_000, 99, false, true],
      [114_999, 99, false, true],
      [115_000, 99, true, true],
    ],
  },
  {
    title: 'a due threshold stays due until its minimum reclaim is available too, and then starts again',
    threshold: { minReclaim: { count: 50 } },
    transitionMs: 1,
    observations: [
      [0, 120, false, false],
      [10, 99, true, true],
      [20, 149, true, true],
      [30, 150, false, false],
      [40, 120, false, false],
    ],
  },
  {
    title: 'during the grace period of a soft threshold its minimum reclaim does not apply',
    threshold: { kind: 'soft', graceMs: 60_000, minReclaim: { share: 0.5 } },
    transitionMs: 1,
    observations: [
      [0, 99, false, true],
      [10_000, 120, false, false],
    ],
  },
  {
    title: 'the condition remains for the transition period after the shortage was last observed',
    threshold: {},
    transitionMs: 300_000,
    observations: [
      [0, 99, true, true],
      [10_000, 99, true, true],
      [20_000, 500, false, true],
      [309_999, 500, false, true],
      [310_000, 500, false, false],
    ],
  },
  {
    title: 'without a transition period the condition ends with the shortage',
    threshold: {},
    transitionMs: 0,
    observations: [
      [0, 99, true, true],
      [10, 100, false, false],
    ],
  },
  {
    title: 'a signal that cannot be measured meets no threshold',
    threshold: {},
    transitionMs: 0,
    observations: [
      [0, 99, true, true],
      [10, undefined, false, false],
    ],
  },
];

for (const { title, threshold: changes, transitionMs = 300_000, observations } of scenarios) {
  test(title, (t) => {
    const state = new PressureState([threshold(changes)], transitionMs);
    for (const [ms, available, due, pressure] of observations) {
      const found = state.take(available === undefined ? new Map() : memory(available), ms);
      t.is(found.length > 0, due, `due at ${ms}`);
      t.is(state.conditions.has('MemoryPressure'), pressure, `condition at ${ms}`);
      t.false(state.conditions.has('DiskPressure'));
    }
  });
}

test('every signal of a disk causes the condition DiskPressure', (t) => {
  for (const signal of ['nodefs.available', 'nodefs.inodesFree', 'imagefs.available', 'imagefs.inodesFree'] as const) {
    const state = new PressureState([threshold({ signal })], 0);
    state.take(new Map([[signal, { available: 1, capacity: 1000 }]]), 0);
    t.deepEqual([...state.conditions], ['DiskPressure'], signal);
  }
});
