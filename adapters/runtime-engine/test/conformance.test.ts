import { registerRuntimeConformance } from '@keelson/conformance';
import { LoopbackRegistry, lackingForPodman, Podman } from '@keelson/test-support';
import test from 'ava';
import { engineHarness, openEngine } from './support/engine-harness.ts';

const lacking = lackingForPodman();
if (lacking.length > 0) {
  test.skip(`the runtime suite on Podman [not run, there is no ${lacking.join(', ')}]`, () => {});
} else {
  const pool = await Promise.all([Podman.open(), Podman.open(), Podman.open()]);
  const registry = await LoopbackRegistry.open();
  registry.add('suite/app:1', { layers: [pool[0].layer], config: { Env: ['PATH=/bin'] } });
  await Promise.all(pool.map((podman) => podman.relay(Number(registry.host.split(':')[1]))));
  const probe = await openEngine(pool[0]);
  const { capabilities } = probe.engine.runtime;
  await probe.dispose();
  const harness = engineHarness(pool, capabilities, {
    pullableImage: `${registry.host}/suite/app:1`,
    missingImage: `${registry.host}/suite/missing:1`,
  });
  test.after.always(async () => {
    await harness[Symbol.asyncDispose]();
    await Promise.all(pool.map((podman) => podman[Symbol.asyncDispose]()));
    await registry[Symbol.asyncDispose]();
  });
  registerRuntimeConformance(test, harness);
}
