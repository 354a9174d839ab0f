import { randomBytes } from 'node:crypto';
import type { OpenedStore, StoreHarness } from '@keelson/conformance';
import type { Store } from '@keelson/core/storage-adapter';
import test from 'ava';
import { Etcd3Store, type Etcd3StoreOptions } from '../../src/index.ts';
import { EtcdServer, findEtcd } from './etcd-server.ts';

export interface OpenedEtcd extends OpenedStore {
  readonly etcd: Etcd3Store;
  readonly prefix: string;
}

let server: EtcdServer | undefined;

/**
 * Registers the start and the end of one server for this test file; false (and a visible skip) when there is no etcd.
 */
export function etcdForThisFile(): boolean {
  const binary = findEtcd();
  if (binary === undefined) {
    test.skip('etcd [not run: no etcd on PATH, none in KEELSON_TEST_ETCD, and none could be installed]', () => {});
    return false;
  }
  test.before('an etcd server starts', async () => {
    server = await EtcdServer.start(binary);
  });
  test.after.always('the etcd server is removed', () => server?.remove());
  return true;
}

export function theServer(): EtcdServer {
  if (server === undefined) throw new Error('no server is running');
  return server;
}

export function newPrefix(): string {
  return `/test-${randomBytes(6).toString('hex')}/`;
}

/** Stores on the file's server that are closed when `dispose` is called. */
export async function openEtcd(options: Partial<Etcd3StoreOptions> = {}): Promise<OpenedEtcd> {
  const prefix = options.prefix ?? newPrefix();
  const etcd = new Etcd3Store({ endpoints: [theServer().url], compaction: 'never', ...options, prefix });
  await etcd.ready();
  return { store: etcd, etcd, prefix, dispose: () => etcd.close() };
}

type Wrap = (store: Store) => { readonly store: Store; readonly check?: () => void };

/** Each store has a prefix of its own. The clock of etcd cannot be controlled. */
export function etcdHarness(name: string, wrap: Wrap = (store) => ({ store })): StoreHarness<OpenedEtcd> {
  const open = async (prefix?: string): Promise<OpenedEtcd> => {
    const opened = await openEtcd(prefix === undefined ? {} : { prefix });
    const { store, check } = wrap(opened.store);
    const dispose = async () => {
      await opened.dispose();
      check?.();
    };
    return { ...opened, store, dispose };
  };
  return {
    name,
    capabilities: new Etcd3Store({ endpoints: ['http://127.0.0.1:1'] }).capabilities,
    open: () => open(),
    async reopen({ etcd, prefix }) {
      await etcd.close();
      return open(prefix);
    },
    async killAndReopen({ etcd, prefix }) {
      // The database is killed, and all state of this process is discarded.
      await theServer().kill();
      await theServer().run();
      const again = await open(prefix);
      await etcd.close();
      return again;
    },
  };
}
