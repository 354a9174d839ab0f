import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { byLabel, createHttpClient, createLister, Informer, kubeconfigAccess, loadKubeconfig } from '@keelson/client';
import { silentLogger, systemClock } from '@keelson/core/runtime';
import { ConfigMap } from '@keelson/kinds';
import test from 'ava';
import { removeDirectory, startKeelson, temporaryDirectory } from '../../src/keelson-process.ts';

const readme = fileURLToPath(new URL('../../../../packages/client/README.md', import.meta.url));

test('the example of the README runs as described', async (t) => {
  const data = await temporaryDirectory();
  t.teardown(() => removeDirectory(data));
  const server = await startKeelson(data);
  t.teardown(async () => {
    await server.stop();
  });
  const [, code = ''] = /```ts\n([\s\S]*?)```/.exec(await readFile(readme, 'utf8')) ?? [];
  const body = code.replace(/^import .*$/gm, '').replace('./.keelson/kubeconfig', server.kubeconfig);
  const names = {
    byLabel,
    createHttpClient,
    createLister,
    Informer,
    kubeconfigAccess,
    loadKubeconfig,
    silentLogger,
    systemClock,
    ConfigMap,
  };
  const shown: unknown[] = [];
  const run = new Function(...Object.keys(names), 'console', `return (async () => {${body}})();`) as (
    ...args: unknown[]
  ) => Promise<void>;
  await run(...Object.values(names), { log: (value: unknown) => shown.push(value) });
  t.deepEqual(shown, [['greeting']]);
});
