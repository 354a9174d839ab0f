import type { coreV1, Node, Pod } from '@keelson/kinds';
import test from 'ava';
import { evictionTaint, evictionTime, schedulingTaints, withTaints } from '../src/node-lifecycle/taints.ts';
import { Zones, zoneOf } from '../src/node-lifecycle/zones.ts';

/** Nodes of a zone: some ready, some not, some that have never reported. */
function nodes(zone: string, ready: number, others: number, silent = 0): Node[] {
  const labels = { 'topology.kubernetes.io/region': 'r', 'topology.kubernetes.io/zone': zone };
  const of = (count: number, status?: string): Node[] =>
    Array.from({ length: count }, () => ({
      metadata: { labels },
      ...(status === undefined ? {} : { status: { conditions: [{ type: 'Ready', status }] } }),
    }));
  return [...of(ready, 'True'), ...of(others - (others >> 1), 'False'), ...of(others >> 1, 'Unknown'), ...of(silent)];
}

/** The seconds between two evictions in zone `a`; undefined when nothing is evicted. */
function pauseIn(...all: Node[][]): number | undefined {
  const zones = new Zones();
  zones.update(all.flat());
  if (!zones.tryEvict('r/a', 0)) return undefined;
  for (let second = 1; second < 1000; second += 1) if (zones.tryEvict('r/a', second * 1000)) return second;
  return undefined;
}

for (const [title, all, pause] of [
  ['a single failed node', [nodes('a', 9, 1)], 10],
  ['two failed nodes of three', [nodes('a', 1, 2)], 10],
  ['three failed nodes of six', [nodes('a', 3, 3)], 10],
  ['three failed nodes of five', [nodes('a', 2, 3)], undefined],
  ['eleven failed nodes of twenty', [nodes('a', 9, 11)], undefined],
  ['most nodes of a zone of 50', [nodes('a', 10, 40)], undefined],
  ['most nodes of a zone of 51', [nodes('a', 10, 41)], 100],
  ['all nodes of one of two zones', [nodes('a', 0, 5), nodes('b', 1, 0)], 10],
  ['all nodes of all zones', [nodes('a', 0, 5), nodes('b', 0, 1)], undefined],
  ['nodes that have never reported', [nodes('a', 1, 1, 9)], 10],
  ['a zone without nodes', [nodes('b', 1, 0)], undefined],
] as [string, Node[][], number | undefined][]) {
  const rate = pause === undefined ? 'nothing is evicted' : `one node is drained every ${pause} s`;
  test(`${title}: ${rate}`, (t) => t.is(pauseIn(...all), pause));
}

test('a disruption of all zones ends with the first ready node, and earlier evictions do not delay the next', (t) => {
  const zones = new Zones();
  t.false(zones.update([]));
  t.false(zones.disrupted);
  t.false(zones.update(nodes('a', 1, 1)));
  t.true(zones.tryEvict('r/a', 0));
  t.false(zones.tryEvict('r/a', 9_999));
  t.false(zones.update(nodes('a', 0, 2)));
  t.true(zones.disrupted);
  t.false(zones.tryEvict('r/a', 20_000));
  t.true(zones.update(nodes('a', 1, 1)));
  t.false(zones.disrupted);
  t.true(zones.tryEvict('r/a', 5_000));
  t.false(zones.update(nodes('a', 1, 1)));
  t.is(zoneOf({ metadata: { name: 'n' } }), '/');
});

const prefix = 'node.kubernetes.io/';
const reporting = (conditions: Record<string, string>, spec: Node['spec'] = {}): Node => ({
  metadata: { name: 'n' },
  spec,
  status: { conditions: Object.entries(conditions).map(([type, status]) => ({ type, status })) },
});

test('conditions and cordons become taints', (t) => {
  const keys = (conditions: Record<string, string>, spec?: Node['spec']) =>
    schedulingTaints(reporting(conditions, spec)).map((key) => key.replace(prefix, ''));
  t.deepEqual(keys({ Ready: 'True', MemoryPressure: 'False', DiskPressure: 'Unknown' }), []);
  const pressed = { MemoryPressure: 'True', DiskPressure: 'True', PIDPressure: 'True', NetworkUnavailable: 'True' };
  t.deepEqual(keys({ Ready: 'False', ...pressed, Other: 'True' }), [
    ...['not-ready', 'memory-pressure', 'disk-pressure', 'pid-pressure', 'network-unavailable'],
  ]);
  t.deepEqual(keys({ Ready: 'Unknown' }, { unschedulable: true }), ['unreachable', 'unschedulable']);
  t.deepEqual(
    ['True', 'False', 'Unknown'].map((Ready) => evictionTaint(reporting({ Ready }))),
    [...[undefined, `${prefix}not-ready`, `${prefix}unreachable`]],
  );
  t.is(evictionTaint({ metadata: { name: 'n' } }), undefined);
});

test('only the taints of the controller are replaced, and nothing is written without a change', (t) => {
  const taint = (key: string, effect: string): coreV1.Taint => ({ key, effect });
  const kept = [taint('own', 'NoExecute'), taint(`${prefix}not-ready`, 'PreferNoSchedule')];
  const present = [...kept, taint(`${prefix}not-ready`, 'NoExecute'), taint(`${prefix}memory-pressure`, 'NoSchedule')];
  const change = (noSchedule: string[], noExecute: string | undefined) =>
    withTaints(reporting({}, { taints: present }), noSchedule, noExecute, 0);
  t.is(change([`${prefix}memory-pressure`], `${prefix}not-ready`), undefined);
  t.deepEqual(change([], undefined), kept);
  const timeAdded = '1970-01-01T00:00:00Z';
  t.deepEqual(change([`${prefix}disk-pressure`], `${prefix}unreachable`), [
    ...kept,
    { key: `${prefix}disk-pressure`, effect: 'NoSchedule', timeAdded },
    { key: `${prefix}unreachable`, effect: 'NoExecute', timeAdded },
  ]);
  // The same key with another effect is another taint.
  t.deepEqual(change([`${prefix}not-ready`, `${prefix}memory-pressure`], `${prefix}not-ready`)?.length, 5);
  t.is(withTaints(reporting({}), [], undefined, 0), undefined);
});

test('a pod leaves at the earliest end of its tolerations', (t) => {
  const pod = (...tolerations: coreV1.Toleration[]) => ({ spec: { containers: [], tolerations } }) as Pod;
  const taint = (key: string, timeAdded?: string): coreV1.Taint => ({
    ...{ key, effect: 'NoExecute', ...(timeAdded === undefined ? {} : { timeAdded }) },
  });
  const tolerates = (key: string, tolerationSeconds?: number): coreV1.Toleration => ({
    ...{ key, operator: 'Exists', ...(tolerationSeconds === undefined ? {} : { tolerationSeconds }) },
  });
  t.is(evictionTime(pod(), [], 0), Number.POSITIVE_INFINITY);
  t.is(evictionTime(pod(tolerates('b', 9)), [taint('a')], 0), Number.NEGATIVE_INFINITY);
  t.is(evictionTime(pod(tolerates('a')), [taint('a')], 0), Number.POSITIVE_INFINITY);
  t.is(evictionTime(pod(tolerates('a', 30), tolerates('a', 20), tolerates('a')), [taint('a')], 1000), 21_000);
  const added = '1970-01-01T00:01:00Z';
  t.is(evictionTime(pod(tolerates('a', 30), tolerates('b', 500)), [taint('a', added), taint('b')], 1000), 90_000);
  t.is(evictionTime(pod(tolerates('a', -5)), [taint('a')], 1000), 1000);
  t.is(evictionTime({ spec: { containers: [] } } as Pod, [taint('a')], 0), Number.NEGATIVE_INFINITY);
});
