import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type AnyController, ownerReference } from '@keelson/controller-kit';
import { UsageError } from '@keelson/core/internal';
import { silentLogger } from '@keelson/core/runtime';
import { ConfigMap, Lease, Namespace, Pod, PodDisruptionBudget, ResourceQuota, Secret } from '@keelson/kinds';
import { MemoryStore } from '@keelson/storage-memory';
import { temporaryDirectory, until } from '@keelson/test-support';
import test from 'ava';
import { startServer } from '../../src/cli/serve.ts';
import { loadControllers } from '../../src/config/load-modules.ts';
import { loadOptions } from '../../src/config/load-options.ts';
import { chooseControllers } from '../../src/control-plane/controller-choice.ts';
import { createControlPlane, createPlane } from '../../src/control-plane/create-control-plane.ts';
import { createPromMetrics } from '../../src/observe/prom-metrics.ts';

/** Keeps a ConfigMap for each Secret. */
const copier: AnyController = {
  name: 'copy-controller',
  kind: Secret,
  owns: [ConfigMap],
  reconcile: async (secret: Secret, { client, read }) => {
    if (read(ConfigMap).controlledBy(secret).length > 0) return undefined;
    const { name = '', namespace = '' } = secret.metadata ?? {};
    const metadata = { name, ownerReferences: [ownerReference(Secret, secret)] };
    await client.resource(ConfigMap).namespace(namespace).create({ metadata });
    return undefined;
  },
};

/** A controller that runs has acted by then. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 200; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

const names = (option: Parameters<typeof chooseControllers>[0]): string[] => {
  const { api, workloads } = chooseControllers(option);
  return [...api, ...workloads.map(({ name }) => name)];
};

test('the first entry that names a controller decides, otherwise its sets do', (t) => {
  const api = names(['api']);
  const all = names(['*', copier]);
  t.true(api.includes('namespace-controller') && api.includes('garbage-collector-controller'));
  t.deepEqual(names(true), api);
  t.deepEqual(names(false), []);
  t.deepEqual(names([]), []);
  t.deepEqual(all.slice(0, api.length), api);
  t.true(all.includes('copy-controller'));
  t.deepEqual(names(['namespace-controller']), ['namespace-controller']);
  t.deepEqual(
    names(['*', '-namespace-controller', copier]),
    all.filter((name) => name !== 'namespace-controller'),
  );
  t.deepEqual(
    names(['*', '-api', 'namespace-controller', copier]),
    all.filter((name) => name === 'namespace-controller' || !api.includes(name)),
  );
  t.deepEqual(names(['-copy-controller', 'api', copier]), api);
  t.deepEqual(names(['namespace-controller', '-namespace-controller']), ['namespace-controller']);
});

test('unknown controllers and lists that select nothing are rejected', async (t) => {
  const refused = (option: string[]) => t.throws(() => chooseControllers(option), { instanceOf: UsageError }).message;
  t.is(
    refused(['*', '-namespce-controller']),
    'controllers: unknown controller "namespce-controller"; did you mean namespace-controller?',
  );
  t.regex(
    refused(['quite-another-thing']),
    /^controllers: unknown controller "quite-another-thing"; known are \*, api,/,
  );
  t.is(
    refused(['-namespace-controller']),
    'controllers "-namespace-controller" selects no controller; use "*,-namespace-controller"',
  );
  await t.throwsAsync(createControlPlane({ controllers: ['x'] }), { instanceOf: UsageError });
});

test('--controllers is a list of names; true and false are the set api and no controller', async (t) => {
  const given = async (...words: string[]) => (await loadOptions(words, {})).controllers;
  t.is(await given(), undefined);
  t.deepEqual(await given('--controllers=*,-namespace-controller'), ['*', '-namespace-controller']);
  t.deepEqual(await given('--controllers', '*', '--controllers', 'api'), ['*', 'api']);
  t.deepEqual(await given('--controllers=false'), []);
  t.deepEqual(await given('--controllers=true'), ['api']);
  t.deepEqual((await loadOptions([], { KEELSON_CONTROLLERS: 'api' })).controllers, ['api']);
});

test('a controller of the program runs beside those of the API', async (t) => {
  await using plane = await createControlPlane({ controllers: ['api', copier] });
  await plane
    .client(Secret)
    .namespace('default')
    .create({ metadata: { name: 'a' } });
  await until(async () => (await plane.client(ConfigMap).namespace('default').list()).items.length === 1);
  await plane.client(Namespace).create({ metadata: { name: 'short' } });
  await plane.client(Namespace).delete('short');
  await until(
    async () => !(await plane.client(Namespace).list()).items.some(({ metadata }) => metadata?.name === 'short'),
  );
  t.pass();
});

test('the controllers of the API keep the status of quotas and disruption budgets, so that servers enforce them', async (t) => {
  await using plane = await createControlPlane();
  const quotas = plane.client(ResourceQuota).namespace('default');
  await quotas.create({ metadata: { name: 'q' }, spec: { hard: { secrets: '1' } } });
  await until(async () => (await quotas.get('q')).status?.hard?.['secrets'] === '1');
  const secrets = plane.client(Secret).namespace('default');
  await secrets.create({ metadata: { name: 'a' } });
  await t.throwsAsync(secrets.create({ metadata: { name: 'b' } }), { message: /exceeded quota: q/ });
  const budgets = plane.client(PodDisruptionBudget).namespace('default');
  await budgets.create({ metadata: { name: 'b' }, spec: { minAvailable: 1, selector: {} } });
  await until(async () => (await budgets.get('b')).status?.observedGeneration === 1);
  t.like((await budgets.get('b')).status, { desiredHealthy: 1, disruptionsAllowed: 0 });
});

test('fields that controllers, the scheduler and the program set have owners with the names of Kubernetes', async (t) => {
  await using plane = await createControlPlane({ controllers: ['*'] });
  const apply = { fieldManager: 'deployer' };
  const quotas = plane.client(ResourceQuota).namespace('default');
  await quotas.apply({ metadata: { name: 'q' }, spec: { hard: { secrets: '1' } } }, apply);
  const pods = plane.client(Pod).namespace('default');
  await pods.apply({ metadata: { name: 'p' }, spec: { containers: [{ name: 'c', image: 'i' }] } }, apply);
  await quotas.patch('q', 'merge', { metadata: { labels: { a: 'b' } } });
  const managers = ({ metadata }: ResourceQuota | Pod) =>
    (metadata?.managedFields ?? []).map(({ manager, subresource }) => `${manager} ${subresource ?? ''}`).sort();
  const owners = async () => [managers(await quotas.get('q')), managers(await pods.get('p'))];
  await until(async () => (await owners()).every((found) => found.some((name) => name.endsWith('status'))));
  t.deepEqual(await owners(), [
    ['deployer ', 'keelson-client ', 'kube-controller-manager status'],
    ['deployer ', 'kube-scheduler status'],
  ]);
});

test('on a store with several writers each set of controllers has a leader of its own', async (t) => {
  const store = new MemoryStore();
  const capabilities = { ...store.capabilities, multiWriter: true };
  const shared = new Proxy(store, {
    get(target, name) {
      if (name === 'capabilities') return capabilities;
      const value = Reflect.get(target, name, target) as unknown;
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
  await using plane = await createControlPlane({ storage: shared, controllers: ['api', copier] });
  const leases = plane.client(Lease).namespace('kube-system');
  const holders = async () =>
    (await leases.list()).items.filter(({ spec }) => spec?.holderIdentity).map(({ metadata }) => metadata?.name);
  await until(async () => (await holders()).length === 2);
  t.deepEqual(await holders(), ['keelson-controllers', 'keelson-workload-controllers']);
  await plane
    .client(Secret)
    .namespace('default')
    .create({ metadata: { name: 'a' } });
  await until(async () => (await plane.client(ConfigMap).namespace('default').list()).items.length === 1);
});

test('--controllers: an entry with a slash is a module, whose exported controllers run', async (t) => {
  const directory = await temporaryDirectory(t);
  const write = async (name: string, text: string) => {
    await writeFile(join(directory, name), text);
    return join(directory, name);
  };
  const kind = "{ kind: 'ConfigMap', apiVersion: 'v1', schema: {}, names: {} }";
  const definition = (name: string) => `{ name: '${name}', kind: ${kind}, reconcile: async () => {} }`;
  const two = await write('two.mjs', `export const a = ${definition('a')}; export default [a, ${definition('b')}];`);
  const loaded = await loadControllers(['api', two]);
  t.deepEqual(
    loaded.map((entry) => (typeof entry === 'string' ? entry : entry.name)),
    ['api', 'a', 'b'],
  );
  const none = await write('none.mjs', `export const a = { name: 'a', reconcile: async () => {} };`);
  await t.throwsAsync(loadControllers([none]), {
    instanceOf: UsageError,
    message: `--controllers ${none} exports no controller; export values of the type ControllerDefinition`,
  });
  await t.throwsAsync(loadControllers(['./missing.mjs']), {
    instanceOf: UsageError,
    message: /^--controllers \.\/missing\.mjs cannot be loaded: /,
  });
  const config = await write('config.yaml', 'controllers: [api, ./two.mjs]\n');
  t.deepEqual((await loadOptions(['--config', config], {})).controllers, ['api', two]);
});

test('all controllers and the scheduler share one watch of pods; the garbage collector has another one', async (t) => {
  const metrics = createPromMetrics();
  await using plane = await createControlPlane({ controllers: ['*'], metrics });
  await plane.client(Namespace).create({ metadata: { name: 'n' } });
  const watchers = async () => /keelson_watch_cache_watchers\{[^}]*"pods"[^}]*\} (\d+)/.exec(await metrics.text())?.[1];
  await until(async () => (await watchers()) === '2');
  // Once a pod was considered by the scheduler, all parts follow pods.
  const pod = { metadata: { name: 'p' }, spec: { containers: [{ name: 'c', image: 'i' }] } } as Pod;
  await plane.client(Pod).namespace('n').create(pod);
  await until(
    async () => (await plane.client(Pod).namespace('n').get('p')).status?.conditions?.[0]?.type === 'PodScheduled',
  );
  t.is(await watchers(), '2');
});

test('keelson serve starts its controllers when it listens', async (t) => {
  const folder = await temporaryDirectory(t);
  const module = join(folder, 'recorder.mjs');
  await writeFile(
    module,
    `import { Namespace } from ${JSON.stringify(import.meta.resolve('@keelson/kinds'))};
    const reconcile = async ({ metadata }) => { recorder.reconciled.push(metadata.name); };
    export const recorder = { name: 'recorder', kind: Namespace, reconciled: [], reconcile };`,
  );
  // The server loads the same module.
  const [recorder] = (await loadControllers([module])) as unknown as [{ readonly reconciled: readonly string[] }];
  const words = ['--data', join(folder, 'data'), '--storage=memory:', '--listen=127.0.0.1:0', '--log-level=silent'];
  const server = await startServer(await loadOptions([...words, '--controllers', module], {}), false);
  t.teardown(() => server.stop());
  t.deepEqual(recorder.reconciled, []);
  await until(() => recorder.reconciled.includes('default'));
});

test('a plane in a program is ready, and answers its first requests, before its controllers start', async (t) => {
  const reconciled: string[] = [];
  const recorder: AnyController = {
    name: 'recorder',
    kind: Namespace,
    reconcile: async ({ metadata }) => void reconciled.push(metadata?.name ?? ''),
  };
  await using plane = await createControlPlane({ controllers: [recorder] });
  await plane.client(Namespace).get('default');
  t.deepEqual(reconciled, []);
  await until(() => reconciled.includes('default'));
});

test('a server that is closed before it listens starts no controller', async (t) => {
  let listen = () => {};
  const listening = new Promise<void>((resolve) => {
    listen = resolve;
  });
  const lines: string[] = [];
  const add = (message: string) => lines.push(message);
  const logger = { ...silentLogger, child: () => logger, debug: add, info: add, warn: add, error: add };
  const plane = await createPlane({ storage: new MemoryStore(), controllers: true, logger }, { listening });
  await plane.close();
  lines.length = 0;
  listen();
  await settled();
  t.deepEqual(lines, []);
});
