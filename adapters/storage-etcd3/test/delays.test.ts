import { describeDelays, rounds } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { Etcd3Store } from '../src/index.ts';
import { etcdForThisFile, newPrefix, theServer } from './support/etcd-harness.ts';
import { Follower, put } from './support/following.ts';
import { TcpProxy } from './support/tcp-proxy.ts';

interface Scene {
  readonly t: ExecutionContext;
  readonly what: string;
  readonly count: number;
  /** The delay must not be longer. */
  readonly boundMs: number;
  before(proxy: TcpProxy): void;
  after?(proxy: TcpProxy): void;
}

/**
 * One server writes, another watches through a proxy, and before each write a fault is injected into that connection.
 */
async function measure({ t, what, count, boundMs, before, after }: Scene): Promise<void> {
  t.timeout(60_000 + count * boundMs);
  const proxy = await TcpProxy.start(theServer().port);
  t.teardown(() => proxy.close());
  const prefix = newPrefix();
  const open = async (endpoint: string) => {
    const store = new Etcd3Store({ endpoints: [endpoint], prefix, compaction: 'never' });
    t.teardown(() => store.close());
    await store.ready();
    return store;
  };
  const writer = await open(theServer().url);
  const reader = await open(proxy.url);
  const follower = await Follower.open(reader, await reader.currentRevision());
  const delays: number[] = [];
  const revisions: number[] = [];
  for (let round = 0; round < count; round++) {
    before(proxy);
    const written = performance.now();
    const revision = await put(writer, `/${round}`, 'x');
    await follower.reach(revision);
    delays.push(performance.now() - written);
    revisions.push(revision);
    after?.(proxy);
  }
  t.log(describeDelays(what, delays));
  t.deepEqual(follower.revisions, revisions, 'no change is lost or repeated');
  t.deepEqual(follower.faults, []);
  t.true(Math.max(...delays) < boundMs, `${Math.max(...delays)}`);
}

if (etcdForThisFile()) {
  test.serial('after a broken watch stream a change is delivered once, as soon as a new stream is open', (t) =>
    measure({ t, what: 'watch stream cut', count: rounds(20, 200), boundMs: 5000, before: (proxy) => proxy.cut() }),
  );

  // Detecting the silence takes long, so this does not run in every test run.
  const half = process.env['KEELSON_FAULT_SCALE'] === undefined ? test.serial.skip : test.serial;
  half('after a half-open watch stream a change is delivered once, as soon as the silence is detected', (t) =>
    measure({
      t,
      what: 'watch stream half-open',
      count: rounds(1, 5),
      boundMs: 60_000,
      before: (proxy) => {
        // Open connections transmit nothing from now on, without being closed; new ones work.
        proxy.freezeOpen();
      },
    }),
  );
}
