import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import test from 'ava';

const bundled = [
  'keelson',
  '@keelson/agent',
  '@keelson/client',
  '@keelson/container-images',
  '@keelson/container-monitor',
  '@keelson/controllers',
  '@keelson/core',
  '@keelson/http-koa',
  '@keelson/kinds',
  '@keelson/runtime-cri',
  '@keelson/runtime-engine',
  '@keelson/runtime-oci',
  '@keelson/runtime-process',
  '@keelson/storage-etcd3',
  '@keelson/storage-lmdb',
  '@keelson/storage-memory',
  '@keelson/storage-postgres',
  '@keelson/testing',
];

/** Runs a module beside this one under the given conditions, and returns its JSON output. */
async function printed(source: string, conditions: readonly string[]): Promise<unknown> {
  const words = [...conditions.map((each) => `--conditions=${each}`), '--input-type=module', '-e', source];
  const cwd = fileURLToPath(new URL('../../..', import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, words, { cwd });
  return JSON.parse(stdout);
}

test('an imported package is its bundle, which exports the same names as its modules', async (t) => {
  const source = `
    const all = [];
    for (const name of ${JSON.stringify(bundled)})
      all.push([name, /dist\\/[a-z]+/.exec(import.meta.resolve(name))[0], Object.keys(await import(name)).sort()]);
    console.log(JSON.stringify(all));`;
  const bundles = (await printed(source, [])) as [string, string, string[]][];
  const modules = (await printed(source, ['keelson-modules'])) as [string, string, string[]][];
  t.deepEqual([...new Set(bundles.map(([, place]) => place))], ['dist/bundle']);
  t.deepEqual([...new Set(modules.map(([, place]) => place))], ['dist/src']);
  const names = (all: typeof bundles) => all.map(([name, , exported]) => [name, exported]);
  t.deepEqual(names(bundles), names(modules));
});

test('the classes of core are identical for a plane, an adapter and an embedding program', async (t) => {
  const source = `
    const { StatusError, StorageError } = await import('@keelson/core');
    const { createControlPlane } = await import('keelson');
    const { ConfigMap } = await import('@keelson/kinds');
    const { MemoryStore } = await import('@keelson/storage-memory');
    const failure = (promise) => promise.then(() => undefined, (error) => error);
    const plane = await createControlPlane();
    const missing = await failure(plane.client(ConfigMap).namespace('default').get('none'));
    await plane.close();
    const store = new MemoryStore();
    const ahead = await failure(store.get('/x', { revision: 5 }));
    await store.close();
    console.log(JSON.stringify([missing instanceof StatusError, ahead instanceof StorageError]));`;
  t.deepEqual(await printed(source, []), [true, true]);
});

test('keelson exports the names in packages/keelson/test/entry-points/index.txt', (t) => {
  const folder = new URL('../../../../packages/keelson/', import.meta.url);
  const source = readFileSync(new URL('src/index.ts', folder), 'utf8');
  const named = [...source.matchAll(/^export (?:type )?\{([^}]*)\}/gm)].flatMap(([, list = '']) => list.split(','));
  const names = named.map((item) => item.trim().replace(/^type /, '')).filter((name) => name !== '');
  const whole = [...source.matchAll(/^export \* from '([^']+)'/gm)].map(([, from]) => `* of ${from}`);
  const pinned = readFileSync(new URL('test/entry-points/index.txt', folder), 'utf8');
  t.deepEqual([...names.sort(), ...whole], pinned.trim().split('\n'));
});

test('Koa is loaded only when a plane has middleware or routes and a request arrives', async (t) => {
  const source = `
    const { createRequire } = await import('node:module');
    const { createControlPlane } = await import('keelson');
    const loaded = () => Object.keys(createRequire(import.meta.url).cache).some((path) => path.includes('/node_modules/koa/'));
    const plane = await createControlPlane();
    const seen = [];
    for (const middleware of [[], [(ctx, next) => next()]]) {
      const { url } = await plane.listen({ middleware });
      for (const path of ['/readyz', '/apis', '/no-path', '/api/v1/namespaces/default'])
        seen.push([(await fetch(url + path)).status, loaded()]);
    }
    await plane.close();
    console.log(JSON.stringify(seen));`;
  const statuses = [200, 200, 404, 200];
  const expected = [false, true].flatMap((isLoaded) => statuses.map((status) => [status, isLoaded]));
  t.deepEqual(await printed(source, []), expected);
});
