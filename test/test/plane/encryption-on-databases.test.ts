import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '@keelson/core/runtime';
import { Secret } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import type { ExecutionContext } from 'ava';
import { type ControlPlane, createControlPlane } from 'keelson';
import { databaseTest, etcdDatabase, type FaultDatabase, postgresDatabase } from '../../src/faults/databases.ts';

const secretOf = (byte: number) => Buffer.alloc(32, byte).toString('base64');
const keys = { k1: `{name: k1, secret: ${secretOf(1)}}`, k2: `{name: k2, secret: ${secretOf(2)}}` };
const config = (...names: readonly (keyof typeof keys)[]) =>
  'apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets]\n' +
  `  providers:\n  - aesgcm: {keys: [${names.map((name) => keys[name]).join(', ')}]}\n`;
const data = { key: Buffer.from('canary-2718-value').toString('base64') };
/** Changed files are detected immediately. */
const clock = {
  ...systemClock,
  after: (ms: number, callback: () => void) => systemClock.after(ms === 10_000 ? 20 : ms, callback),
};

interface Server {
  readonly plane: ControlPlane;
  readonly url: string;
  configure(...names: readonly (keyof typeof keys)[]): Promise<void>;
}

interface EncryptionReport {
  readonly stores: readonly {
    readonly resources: readonly { readonly writesWith: string; readonly objects: Readonly<Record<string, number>> }[];
  }[];
}

async function startServer(t: ExecutionContext, storage: string, folder: string, name: string): Promise<Server> {
  const encryptionConfigFile = join(folder, `${name}.yaml`);
  const configure = (...names: readonly (keyof typeof keys)[]) =>
    writeFile(encryptionConfigFile, config(...names), { mode: 0o600 });
  await configure('k1');
  const plane = await createControlPlane({ storage, clock, controllers: false, encryptionConfigFile });
  t.teardown(() => plane.close());
  return { plane, url: (await plane.listen()).url, configure };
}

/** Two servers on one database rotate a key in the documented steps, with different orders of the keys, under load. */
async function rotates(t: ExecutionContext, database: FaultDatabase): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-encryption-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const storage = database.storage({});
  const a = await startServer(t, storage, folder, 'a');
  const b = await startServer(t, storage, folder, 'b');
  const secretsOf = ({ plane }: Server) => plane.client(Secret).namespace('default');
  const create = (server: Server, name: string) =>
    secretsOf(server).create({ apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: 'default' }, data });
  await Promise.all(Array.from({ length: 60 }, (_, i) => create(i % 2 === 0 ? a : b, `s${i}`)));

  const report = async ({ url }: Server): Promise<EncryptionReport> =>
    (await (await fetch(`${url}/keelson/encryption`)).json()) as EncryptionReport;
  const resourceOf = async (server: Server) => (await report(server)).stores[0]?.resources[0];
  const writesWith = (server: Server, name: string) =>
    until(async () => (await resourceOf(server))?.writesWith === name, `writes with ${name}`);

  let done = false;
  t.teardown(() => {
    done = true;
  });
  const errors: unknown[] = [];
  let operations = 0;
  const work = async (worker: number) => {
    const [one, other] = worker % 2 === 0 ? [a, b] : [b, a];
    for (let i = 0; !done && errors.length === 0; i++) {
      const name = `s${(i * 7 + worker * 15) % 60}`;
      try {
        await secretsOf(one).patch(name, 'merge', { metadata: { labels: { [`w${worker}`]: String(i) } } });
        const found = await secretsOf(other).get(name);
        if (found.data?.['key'] !== data.key) errors.push(`${name} has another value`);
        operations += 2;
      } catch (error) {
        errors.push(error);
      }
    }
  };
  const load = Promise.all([0, 1, 2, 3].map(work));
  await b.configure('k1', 'k2');
  await a.configure('k1', 'k2');
  await a.configure('k2', 'k1');
  await writesWith(a, 'k2');
  await create(a, 'by-a');
  await create(b, 'by-b');
  t.deepEqual((await secretsOf(b).get('by-a')).data, data, 'b, which writes with k1, reads values of k2');
  t.deepEqual((await secretsOf(a).get('by-b')).data, data);
  const both = (await resourceOf(a))?.objects ?? {};
  t.true((both['k1'] ?? 0) > 0 && (both['k2'] ?? 0) > 0, JSON.stringify(both));
  await b.configure('k2', 'k1');
  await writesWith(b, 'k2');
  t.is((await fetch(`${b.url}/keelson/encryption/rotation`, { method: 'POST' })).status, 202);
  await until(
    async () => Object.keys((await resourceOf(a))?.objects ?? {}).join() === 'k2',
    'all values are of k2',
    60_000,
  );
  await Promise.all([a.configure('k2'), b.configure('k2')]);
  done = true;
  await load;
  t.deepEqual(errors, []);
  t.true(operations > 0);
  for (const server of [a, b]) {
    const { items } = await secretsOf(server).list();
    t.is(items.length, 62);
    t.true(items.every((item) => item.data?.['key'] === data.key));
  }

  const path = `/api/v1/namespaces/default/secrets?limit=10`;
  const first = (await (await fetch(`${a.url}${path}`)).json()) as { metadata: { continue: string } };
  const rest = await fetch(`${b.url}${path}&continue=${encodeURIComponent(first.metadata.continue)}`);
  t.is(rest.status, 200, 'both decrypted one secret of continue tokens');
}

const etcdTest = await databaseTest('etcd');
const postgresTest = await databaseTest('postgres');

etcdTest(
  'two servers on one etcd rotate an encryption key under load, with different orders of the keys',
  async (t) => {
    t.timeout(180_000);
    await rotates(t, await etcdDatabase(t));
  },
);

postgresTest(
  'two servers on one PostgreSQL rotate an encryption key under load, with different orders of the keys',
  async (t) => {
    t.timeout(180_000);
    await rotates(t, await postgresDatabase(t));
  },
);
