import { registerRuntimeConformance, type TestFunction } from '@keelson/conformance';
import { Containerd, LoopbackRegistry, lackingForContainerd } from '@keelson/test-support';
import test from 'ava';
import { createCriRuntime } from '../src/index.ts';
import { CriPool, criHarness } from './support/cri-harness.ts';

const daemons = 2;
/** Cases whose outcome the daemon determines, and differs from the contract. */
const excluded = new Map([
  ['log.any-bytes', 'containerd drops a carriage return before a line end'],
  ['log.partial-text-does-not-wait-for-ever', 'containerd writes a line when it is complete'],
  ['attach.output-and-input', 'containerd passes input on before it forwards output, and may lose the answer'],
  ['exec.leftovers-do-not-hold-the-call', 'containerd waits until every process has closed the output of the command'],
]);
const lacking = lackingForContainerd();

if (lacking.length > 0) {
  test.skip(`the runtime suite on containerd [not run, there is no ${lacking.join(', ')}]`, () => {});
} else {
  const pool = new CriPool(await Promise.all(Array.from({ length: daemons }, () => Containerd.start())));
  const registry = await LoopbackRegistry.open();
  const [first] = pool.all;
  registry.add('suite:1', {
    layers: [first?.layer ?? ''],
    config: { Env: ['PATH=/bin'], Labels: { for: 'the suite' } },
  });
  const { runtime } = await createCriRuntime({ endpoint: first?.endpoint ?? '' });
  const { capabilities } = runtime;
  await runtime[Symbol.asyncDispose]();
  test.after.always(async () => {
    await pool[Symbol.asyncDispose]();
    await registry[Symbol.asyncDispose]();
  });
  const images = { pullableImage: `${registry.host}/suite:1`, missingImage: `${registry.host}/missing:1` };
  const run: TestFunction = Object.assign(
    (...[title, body]: Parameters<TestFunction>) => {
      const reason = excluded.get(title.split(': ')[1] ?? '');
      if (reason === undefined) test(title, body);
      else test.skip(`${title} [not run, ${reason}]`, body);
    },
    { skip: test.skip },
  );
  registerRuntimeConformance(run, criHarness(pool, capabilities, images));
}
