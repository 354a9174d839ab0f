import { type Direction, FaultProxy } from '@keelson/conformance';
import test from 'ava';
import { directoryFor, faults, progress, sleep, startRun } from '../../src/faults/fault-run.ts';
import { FaultServer } from '../../src/faults/fault-server.ts';
import { compactedLmdb, shortHistory } from '../../src/faults/short-history.ts';

const rounds = faults(12, 200);

test(`${rounds} cuts, black holes, one-way cuts, delays, throttles and resets between clients and server`, async (t) => {
  t.timeout(120_000 + rounds * 5000);
  const data = await directoryFor(t);
  const server = await FaultServer.start({ data, adapter: compactedLmdb(data) });
  t.teardown(() => server.stop());
  const target = { host: '127.0.0.1', port: server.port };
  const proxies = [await FaultProxy.open({ target, seed: 1 }), await FaultProxy.open({ target, seed: 2 })];
  t.teardown(() => Promise.all(proxies.map((proxy) => proxy.close())));
  const servers = proxies.map(({ port }) => `http://127.0.0.1:${port}`);
  // Some clients have no faults: their observations must agree with those of the others.
  const run = await startRun(t, { servers: [...servers, server.url], callTimeoutMs: 1500 });
  const { random, workload } = run;
  const inject: Readonly<Record<string, (proxy: FaultProxy, direction: Direction) => void>> = {
    cut: (proxy) => proxy.cut(),
    refuse: (proxy) => {
      proxy.refuse(true);
      proxy.cut();
    },
    'black hole': (proxy, direction) => proxy.blackHole(direction),
    'half-open': (proxy, direction) => {
      proxy.blackHole(direction);
      // Bytes in transit are lost, and neither side is notified while the fault lasts.
      setTimeout(() => proxy.cut(), 300);
    },
    delay: (proxy, direction) => proxy.delay(200, 300, direction),
    throttle: (proxy, direction) => proxy.throttle(5000, direction),
    reset: (proxy, direction) => proxy.resetAfter(random.below(20_000), direction === 'up' ? 'up' : 'down'),
  };
  for (let round = 1; round <= rounds; round++) {
    const name = random.pick(Object.keys(inject));
    const direction = random.pick(['up', 'down', 'both'] as const);
    const proxy = random.pick(proxies);
    workload.recorder.mark(`${name} ${direction} of ${proxy.port}`);
    inject[name]?.(proxy, direction);
    await sleep(100 + random.below(700));
    proxy.heal();
    workload.recorder.mark('healed');
    await run.traffic(10 + random.below(20));
    progress(t, round, rounds, () => `${name} ${direction}, revision ${workload.latest}`);
  }
  const { counts } = await run.judge({
    faults: rounds,
    retention: shortHistory,
    minWrites: rounds * 10,
    minEvents: rounds * 20,
  });
  t.true(counts.resumed > 0 && counts.unknown > 0, 'faults interrupted running calls');
});
