import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { UsageError } from '@keelson/core/internal';
import type { Container, Pod } from '@keelson/kinds';
import test, { type ExecutionContext } from 'ava';
import { MachineError } from '../../../src/base/machine-error.ts';
import { exclusiveCpus } from '../../../src/machine/cpus/cpu-manager.ts';
import { parseOptions } from '../../../src/startup/options/parse-options.ts';
import { resolveConfig } from '../../../src/startup/options/resolve-config.ts';
import { type Bench, startBench, testPod } from '../../support/bench.ts';

const topology = [0, 1, 2, 3].map((id) => ({ id, core: `0-${id}`, socket: 0 }));
const words = ['--cpu-manager-policy=static', '--cluster-reserved=cpu=500m', '--cpu-manager-reconcile-period=7s'];
const start = (t: ExecutionContext, more: readonly string[] = []) =>
  startBench(t, { words: [...words, ...more], images: ['app:1'], topology });

function container(name: string, cpu: string | undefined): Container {
  const amounts = cpu === undefined ? {} : { cpu, memory: '1Mi' };
  return { name, image: 'app:1', imagePullPolicy: 'IfNotPresent', resources: { requests: amounts, limits: amounts } };
}

const podOf = (name: string, ...cpus: (string | undefined)[]): Pod =>
  testPod(name, {
    containers: cpus.map((cpu, index) => container(`${name}${index}`, cpu)),
    terminationGracePeriodSeconds: 1,
  });

/** CPUs of what runs, by the names of containers. */
const cpusets = ({ world }: Bench) =>
  Object.fromEntries(
    [...world.containers.values()]
      .filter(({ state }) => state === 'running')
      .map((one) => [one.snapshot.metadata.name, one.status().resources?.cpusetCpus]),
  );

const stateOf = ({ rootDir }: Bench) => JSON.parse(readFileSync(join(rootDir, 'agent/cpu_manager_state'), 'utf8'));

test('--cpu-manager-policy=static: guaranteed pods have exclusive whole CPUs, and all others share the rest', async (t) => {
  const bench = await start(t);
  const [shared, single, half] = [podOf('shared', undefined), podOf('single', '1'), podOf('half', '1500m', '2')];
  bench.pods.put(shared);
  await bench.until(() => cpusets(bench)['shared0'] === '0-3');
  bench.pods.put(single);
  await bench.until(() => cpusets(bench)['single0'] !== undefined);
  t.deepEqual(cpusets(bench), { shared0: '0,2-3', single0: '1' }, 'who was there has left');
  bench.pods.put(half);
  await bench.until(() => cpusets(bench)['half1'] !== undefined);
  t.deepEqual({ ...cpusets(bench), half0: '0' }, { shared0: '0', single0: '1', half0: '0', half1: '2-3' });
  t.like(stateOf(bench), {
    policyName: 'static',
    defaultCpuSet: '0',
    entries: { [single.metadata?.uid ?? '']: { single0: '1' }, [half.metadata?.uid ?? '']: { half1: '2-3' } },
  });
  bench.pods.remove(half);
  await bench.until(() => cpusets(bench)['shared0'] === '0,2-3');
});

test('a container waits while too few CPUs are free, and its status gives the reason', async (t) => {
  const bench = await start(t);
  const [first, second] = [podOf('first', '2'), podOf('second', '2')];
  bench.pods.put(first);
  await bench.until(() => cpusets(bench)['first0'] === '1-2');
  bench.pods.put(second);
  const waiting = () => bench.status(second).containerStatuses?.[0]?.state?.waiting;
  await bench.until(() => waiting()?.reason === 'CreateContainerConfigError');
  t.regex(waiting()?.message ?? '', /not enough cpus available to satisfy request: requested=2, available=1/);
  bench.pods.remove(first);
  await bench.until(() => cpusets(bench)['second0'] === '1-2');
});

test('--cpu-manager-reconcile-period: CPU sets that another program changed are restored', async (t) => {
  const bench = await start(t);
  bench.pods.put(podOf('single', '1'));
  await bench.until(() => cpusets(bench)['single0'] === '1');
  const [one] = bench.containers('single0');
  await bench.engine.runtime.updateContainerResources?.(one?.id ?? '', { cpusetCpus: '0-3' });
  await bench.pass(3_000);
  t.is(cpusets(bench)['single0'], '0-3');
  await bench.pass(7_000);
  t.is(cpusets(bench)['single0'], '1');
});

test('the next agent restores the assignments of CPUs, and releases those of removed pods', async (t) => {
  const bench = await start(t);
  const [stays, goes] = [podOf('stays', '1'), podOf('goes', '1')];
  bench.pods.put(stays);
  await bench.until(() => cpusets(bench)['stays0'] === '1');
  bench.pods.put(goes);
  await bench.until(() => cpusets(bench)['goes0'] === '2');
  await bench.agent.stop();
  bench.pods.remove(goes);
  for (const one of bench.world.containers.values()) {
    if (one.snapshot.metadata.name !== 'goes0') continue;
    bench.world.exit(one.id, 0);
    await bench.engine.runtime.removePodSandbox(one.sandbox.id);
  }
  await bench.again();
  await bench.until(() => stateOf(bench).defaultCpuSet === '0,2-3');
  t.deepEqual(Object.keys(stateOf(bench).entries), [stays.metadata?.uid]);
  t.deepEqual(cpusets(bench), { stays0: '1' });
});

test('the CPUs of an init container are released when it has ended', async (t) => {
  const bench = await start(t);
  const pod = podOf('main', '3');
  bench.world.script = ({ metadata }) => (metadata.name === 'init' ? { exitAfterMs: 1_000, exitCode: 0 } : {});
  bench.pods.put({ ...pod, spec: { ...pod.spec, initContainers: [container('init', '3')] } });
  await bench.until(() => cpusets(bench)['init'] === '1-3');
  await bench.until(() => cpusets(bench)['main0'] === '1-3');
  t.deepEqual(stateOf(bench).entries, { [pod.metadata?.uid ?? '']: { main0: '1-3' } });
});

test('a policy that differs from that of the state file is an error until the file is removed', async (t) => {
  const bench = await startBench(t, { images: ['app:1'] });
  t.like(stateOf(bench), { policyName: 'none', defaultCpuSet: '', entries: {} });
  await bench.agent.stop();
  const config = resolveConfig(
    parseOptions([...words, `--root-dir=${join(bench.rootDir, 'agent')}`, '--hostname-override=n']),
    {
      hostname: () => 'n',
      fileExists: () => false,
    },
  ).config;
  const begin = () => bench.again(config);
  await t.throwsAsync(begin(), { instanceOf: MachineError, message: /the policy is static, but that of .* is "none"/ });
  rmSync(join(bench.rootDir, 'agent/cpu_manager_state'));
  await begin();
  t.is(stateOf(bench).policyName, 'static');
});

test('a runtime that does not support CPU sets is rejected', async (t) => {
  const bench = startBench(t, { words, topology, runtime: { cpuLimits: false } });
  await t.throwsAsync(bench, {
    instanceOf: MachineError,
    message: /the runtime fake cannot bind containers to CPUs here/,
  });
});

test('only whole CPUs of guaranteed pods are exclusive', (t) => {
  const count = (pod: Pod) => (pod.spec.containers ?? []).map((one) => exclusiveCpus(pod, one));
  t.deepEqual(count(podOf('p', '2', '500m', '1000m')), [2, 0, 1]);
  t.deepEqual(count(podOf('p', '2', undefined)), [0, 0]);
});

test('--cpu-manager-policy=static requires its gate and reserved CPU; its period defaults to that of the node status', (t) => {
  const resolve = (...more: string[]) =>
    resolveConfig(parseOptions(more), { hostname: () => 'n', fileExists: () => false });
  const refused = (message: RegExp, ...more: string[]) =>
    t.throws(() => resolve(...more), { instanceOf: UsageError, message });
  refused(
    /--cpu-manager-policy=static needs CPU above 0 in --cluster-reserved or --system-reserved/,
    '--cpu-manager-policy=static',
  );
  refused(
    /needs CPU above 0/,
    '--cpu-manager-policy=static',
    '--cluster-reserved=memory=1Gi',
    '--system-reserved=cpu=0',
  );
  refused(/needs --feature-gates=CPUManager=true/, ...words, '--feature-gates=CPUManager=false');
  refused(/--cpu-manager-policy: unsupported value "dynamic"; use one of none, static/, '--cpu-manager-policy=dynamic');
  refused(/--cpu-manager-reconcile-period must be longer than 0/, '--cpu-manager-reconcile-period=0');
  const period = (...more: string[]) => resolve(...more).config.cpuManager.reconcileMs;
  t.is(period('--node-status-update-frequency=3s'), 3_000);
  t.is(period('--node-status-update-frequency=3s', '--cpu-manager-reconcile-period=10s'), 10_000);
});
