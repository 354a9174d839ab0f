import test, { type ExecutionContext } from 'ava';
import { EtcdServer, findEtcd } from './etcd-server.ts';

/** Servers whose versions differ in what the tests of versions check; the values of `KEELSON_TEST_ETCD`. */
export const etcdKinds = ['installed', 'newest'] as const;

/** Declares tests that each have an etcd of this kind to themselves; they are skipped visibly where there is none. */
export function etcdTest(kind: (typeof etcdKinds)[number]) {
  const binary = findEtcd(kind);
  return (title: string, run: (t: ExecutionContext, server: EtcdServer) => Promise<void>) => {
    const full = `${kind} etcd: ${title}`;
    if (binary === undefined) return test.skip(`${full} [not run, there is none]`, () => {});
    return test.serial(full, async (t) => {
      t.timeout(110_000);
      const server = await EtcdServer.start(binary);
      t.teardown(() => server.remove());
      t.log(await server.version());
      await run(t, server);
    });
  };
}
