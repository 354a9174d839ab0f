import { mkdirSync, writeFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryDirectory } from '@keelson/test-support';
import test from 'ava';
import fc from 'fast-check';
import { MachineError } from '../../../src/base/machine-error.ts';
import { CpuAssignments, CpuShortageError } from '../../../src/machine/cpus/cpu-assignments.ts';
import { readCpuState, writeCpuState } from '../../../src/machine/cpus/cpu-state.ts';
import {
  type CpuTopology,
  formatCpuSet,
  parseCpuSet,
  readTopology,
  takeCpus,
} from '../../../src/machine/cpus/cpu-topology.ts';

const seed = Number(process.env['KEELSON_SEED'] ?? Math.floor(Math.random() * 2 ** 31));

/** Two sockets of so many cores with two threads each, numbered as machines do: first threads first. */
function twoSockets(coresEach: number): CpuTopology {
  const cores = 2 * coresEach;
  return Array.from({ length: 2 * cores }, (_, id) => {
    const socket = Math.floor((id % cores) / coresEach);
    return { id, core: `${socket}-${id % coresEach}`, socket };
  });
}

test('lists of CPUs are parsed and formatted with ranges', (t) => {
  t.deepEqual([...parseCpuSet('0-2,7\n')], [0, 1, 2, 7]);
  t.deepEqual([...parseCpuSet('')], []);
  t.is(formatCpuSet([7, 1, 0, 2, 2, 5, 6]), '0-2,5-7');
  t.is(formatCpuSet([]), '');
  for (const text of ['a', '3-1', '1-', '1-2-3']) t.throws(() => parseCpuSet(text), { instanceOf: RangeError });
});

test('the topology is read from sysfs; without it each CPU is a core', async (t) => {
  const root = await temporaryDirectory(t);
  writeFileSync(join(root, 'online'), '0,2\n');
  mkdirSync(join(root, 'cpu0/topology'), { recursive: true });
  writeFileSync(join(root, 'cpu0/topology/core_id'), '4\n');
  writeFileSync(join(root, 'cpu0/topology/physical_package_id'), '1\n');
  t.deepEqual(await readTopology(root), [
    { id: 0, core: '1-4', socket: 1 },
    { id: 2, core: 'cpu-2', socket: 0 },
  ]);
});

test('assigned CPUs are close to each other, and the remaining ones stay together', (t) => {
  const topology = twoSockets(2);
  const all = new Set(topology.map(({ id }) => id));
  const without = (...taken: number[]) => new Set([...all].filter((id) => !taken.includes(id)));
  t.deepEqual(takeCpus(topology, all, 4), [0, 1, 4, 5], 'a socket');
  t.deepEqual(takeCpus(topology, all, 6), [0, 1, 2, 4, 5, 6], 'a socket and a core of the other');
  t.deepEqual(takeCpus(topology, all, 2), [0, 4], 'a core');
  t.deepEqual(takeCpus(topology, without(0), 2), [1, 5], 'a whole core of the socket that is begun');
  t.deepEqual(takeCpus(topology, without(0, 5), 1), [1], 'half a core');
  t.deepEqual(takeCpus(topology, without(0, 1), 2), [2, 6], 'a whole core before halves of two');
  t.deepEqual(takeCpus(topology, all, 0), []);
  t.is(takeCpus(topology, without(0), 8), undefined);
});

test('reserved CPUs are always shared, and CPUs of removed pods are shared again', (t) => {
  const assignments = new CpuAssignments(twoSockets(2), 1);
  const cpusOf = (uid: string, name: string) => formatCpuSet(assignments.cpusOf(uid, name));
  t.true(assignments.assign('a', 'main', 2));
  t.false(assignments.assign('a', 'main', 2), 'it keeps them');
  t.deepEqual([cpusOf('a', 'main'), cpusOf('b', 'main')], ['1,5', '0,2-4,6-7']);
  t.throws(() => assignments.assign('b', 'main', 6), {
    instanceOf: CpuShortageError,
    message: 'not enough cpus available to satisfy request: requested=6, available=5',
  });
  t.true(assignments.release('a'));
  t.false(assignments.release('a'));
  t.true(assignments.assign('b', 'main', 7));
  t.is(cpusOf('c', 'main'), '0');
  t.throws(() => new CpuAssignments(twoSockets(1), 5), {
    instanceOf: MachineError,
    message: /5 CPUs are reserved, but the machine has 4/,
  });
});

test('the state file is validated: its checksum, its policy, its CPUs and the reserved CPUs', async (t) => {
  const path = join(await temporaryDirectory(t), 'cpu_manager_state');
  const topology = twoSockets(2);
  t.is(await readCpuState(path, 'static'), undefined);
  const before = new CpuAssignments(topology, 1);
  before.assign('uid', 'main', 2);
  await writeCpuState(path, { policyName: 'static', ...before.state() });
  const state = await readCpuState(path, 'static');
  t.like(JSON.parse(await readFile(path, 'utf8')), {
    policyName: 'static',
    defaultCpuSet: '0,2-4,6-7',
    entries: { uid: { main: '1,5' } },
  });
  if (state === undefined) return t.fail();
  const after = new CpuAssignments(topology, 1);
  after.restore(state, path);
  t.deepEqual(after.state(), before.state());
  const restore = (cpus: CpuTopology, reserved: number) => () =>
    new CpuAssignments(cpus, reserved).restore(state, path);
  t.throws(restore(twoSockets(4), 1), {
    instanceOf: MachineError,
    message: /CPUs differ from those of this machine; drain the node, remove/,
  });
  t.throws(restore(topology, 4), {
    instanceOf: MachineError,
    message: /CPUs that are now reserved are assigned to containers/,
  });
  await t.throwsAsync(readCpuState(path, 'none'), {
    instanceOf: MachineError,
    message:
      /the policy is none, but that of .*cpu_manager_state is "static"; drain the node, remove the file and restart the agent/,
  });
  const text = await readFile(path, 'utf8');
  for (const damaged of [text.replace('1,5', '1,6'), text.slice(0, 20), '[]', '{}']) {
    await writeFile(path, damaged);
    await t.throwsAsync(readCpuState(path, 'static'), {
      instanceOf: MachineError,
      message: /cpu_manager_state is damaged; drain/,
    });
  }
});

test(`no CPU is assigned twice or lost, in any order of assignments and releases (seed ${seed})`, (t) => {
  const step = fc.record({
    uid: fc.constantFrom('a', 'b', 'c', 'd'),
    name: fc.constantFrom('x', 'y'),
    count: fc.integer({ min: 0, max: 9 }),
  });
  const property = fc.property(
    fc.integer({ min: 1, max: 6 }),
    fc.integer({ min: 1, max: 3 }),
    fc.array(step),
    (cores, reserved, steps) => {
      const topology = twoSockets(cores);
      const kept = takeCpus(topology, new Set(topology.map(({ id }) => id)), reserved) ?? [];
      let assignments = new CpuAssignments(topology, reserved);
      for (const { uid, name, count } of steps) {
        if (count === 0) assignments.release(uid);
        else {
          const had = assignments.names(uid).includes(name) ? [...assignments.cpusOf(uid, name)] : undefined;
          const shared = parseCpuSet(assignments.state().defaultCpuSet).size;
          try {
            assignments.assign(uid, name, count);
            if ([...assignments.cpusOf(uid, name)].length !== (had?.length ?? count)) return false;
          } catch (error) {
            // Only for want of CPUs.
            if (!(error instanceof CpuShortageError) || count <= shared - reserved) return false;
          }
        }
        const { defaultCpuSet, entries } = assignments.state();
        const given = Object.values(entries).flatMap((containers) =>
          Object.values(containers).flatMap((cpus) => [...parseCpuSet(cpus)]),
        );
        const all = [...parseCpuSet(defaultCpuSet), ...given].sort((a, b) => a - b);
        if (all.join() !== topology.map(({ id }) => id).join() || kept.some((cpu) => given.includes(cpu))) return false;
        // An agent may restart at any time.
        const next = new CpuAssignments(topology, reserved);
        next.restore({ policyName: 'static', ...assignments.state() }, 'state');
        assignments = next;
      }
      return true;
    },
  );
  t.notThrows(() => fc.assert(property, { seed, numRuns: 300 }));
});
