import { readFileSync, rmdirSync, rmSync, symlinkSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { runRuntimeCase, runtimeCases } from '@keelson/conformance';
import { Cgroups } from '@keelson/container-monitor';
import test from 'ava';
import { openProcess, processHarness } from './support/process-harness.ts';

/** Below the group of this process, so that its limits also apply to the containers. */
const ownMemoryGroup = /^\d+:memory:(.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8'))?.[1];
const parent = ownMemoryGroup === undefined ? undefined : join(ownMemoryGroup, `keelson-test-${process.pid}`);
const real = await Cgroups.find({});

(parent !== undefined && real.has('memory') ? test : test.skip)(
  'the kernel enforces the memory limit, and OOMKilled is distinguished from other kills',
  async (t) => {
    t.timeout(60_000);
    // Memory only: a folder with that hierarchy alone.
    const mountpoint = await mkdtemp('/tmp/keelson-cgroup-');
    symlinkSync('/sys/fs/cgroup/memory', join(mountpoint, 'memory'));
    t.teardown(() => rmSync(mountpoint, { recursive: true }));
    const options = { cgroups: { mountpoint, parent: parent! } };
    const probe = await openProcess(options);
    const { capabilities } = probe.engine.runtime;
    await probe.dispose();
    t.true(capabilities.memoryLimits);
    const oom = runtimeCases.find(({ id }) => id === 'stop.out-of-memory')!;
    const harness = processHarness('process', capabilities, options);
    for (const id of [
      oom.id,
      'stop.kills-after-the-grace-period',
      'stop.ends-descendants',
      'container.update-resources',
      'sandbox.remove-removes-its-containers',
    ]) {
      await runRuntimeCase(harness, runtimeCases.find((entry) => entry.id === id)!);
    }
    await harness[Symbol.asyncDispose]();
    // Fails unless every group below was removed.
    rmdirSync(join('/sys/fs/cgroup/memory', parent!));
  },
);
