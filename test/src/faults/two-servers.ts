import { FaultProxy } from '@keelson/conformance';
import type { ExecutionContext } from 'ava';
import { compactAllTheTime } from './compaction.ts';
import type { FaultDatabase } from './databases.ts';
import { directoryFor, progress, sleep, startRun, until } from './fault-run.ts';
import { FaultServer } from './fault-server.ts';

interface Scene {
  readonly database: FaultDatabase;
  readonly servers: readonly FaultServer[];
  /** Between the second server and the database. */
  readonly proxy: FaultProxy;
  readonly random: { below(n: number): number };
}

const injections: Readonly<Record<string, (scene: Scene) => Promise<void>>> = {
  'kill -9 of a server': async ({ servers, random }) => {
    const server = servers[random.below(servers.length)];
    await server?.kill();
    await server?.restart();
  },
  'kill -9 of the database': async ({ database, random }) => {
    await database.kill();
    await sleep(random.below(300));
    await database.start();
  },
  'SIGSTOP of the database': async ({ database, random }) => {
    process.kill(database.pid, 'SIGSTOP');
    await sleep(200 + random.below(800));
    process.kill(database.pid, 'SIGCONT');
  },
  'SIGSTOP of a server': async ({ servers, random }) => {
    const server = servers[random.below(servers.length)];
    server?.pause();
    await sleep(200 + random.below(800));
    server?.resume();
  },
  'cut between a server and the database': async ({ proxy }) => proxy.cut(),
  'black hole between a server and the database': async ({ proxy, random }) => {
    proxy.blackHole((['up', 'down', 'both'] as const)[random.below(3)]);
    await sleep(300 + random.below(1200));
    // Bytes in transit are sometimes delivered in the end, and sometimes lost.
    if (random.below(2) === 0) proxy.cut();
    proxy.heal();
  },
  'delay between a server and the database': async ({ proxy, random }) => {
    proxy.delay(random.below(200), 200);
    await sleep(600);
    proxy.heal();
  },
  'all connections terminated by the database': async ({ database }) => database.terminateConnections?.(),
};

/** How often each fault occurs in a round; each occurs once before any is repeated. */
const weights: Readonly<Record<string, number>> = {
  'kill -9 of a server': 4,
  'kill -9 of the database': 4,
  'SIGSTOP of the database': 2,
  'SIGSTOP of a server': 2,
  'cut between a server and the database': 3,
  'black hole between a server and the database': 3,
  'delay between a server and the database': 2,
  'all connections terminated by the database': 4,
};

/**
 * Faults of the full run: 100 kills of a server and of the database each, 50 stops of each, 200 of the network, 100
 * terminations.
 */
export function fullCount(terminations: boolean): number {
  return terminations ? 600 : 500;
}

function planOf({ terminateConnections }: FaultDatabase): string[] {
  const possible = Object.keys(injections).filter(
    (name) => terminateConnections !== undefined || !name.startsWith('all connections'),
  );
  const rounds = Math.max(...Object.values(weights));
  return Array.from({ length: rounds }, (_, round) => possible.filter((name) => (weights[name] ?? 0) > round)).flat();
}

/**
 * Two servers on one database, clients that move between them, and one fault after another, while a third party
 * compacts the database every 200 ms: a 410 is correct only for compacted revisions. One
 * server's parameters may differ from the other's.
 */
export async function twoServers(
  t: ExecutionContext,
  database: FaultDatabase,
  count: number,
  secondParameters: Readonly<Record<string, string>> = {},
): Promise<void> {
  const proxy = await FaultProxy.open({ target: { host: '127.0.0.1', port: database.port } });
  t.teardown(() => proxy.close());
  const storages = [database.storage({}), database.storage(secondParameters, proxy.port)];
  const servers: FaultServer[] = [];
  for (const storage of storages) {
    const server = await FaultServer.start({ data: await directoryFor(t), storage });
    t.teardown(() => server.stop());
    servers.push(server);
  }
  const run = await startRun(t, { servers: servers.map(({ url }) => url), callTimeoutMs: 3000 });
  const { workload, random } = run;
  const compaction = compactAllTheTime(t, await database.open(), workload);
  const plan = planOf(database);
  let slowest = 0;
  for (let done = 1; done <= count; done++) {
    const name = plan[(done - 1) % plan.length] ?? '';
    workload.recorder.mark(name);
    await injections[name]?.({ database, servers, proxy, random });
    workload.recorder.mark('over');
    const over = performance.now();
    await run.traffic(1);
    slowest = Math.max(slowest, performance.now() - over);
    await run.traffic(20 + random.below(40));
    progress(
      t,
      done,
      count,
      () => `${name}, revision ${workload.latest}, ${workload.acknowledged} writes acknowledged`,
    );
  }
  // A server that has just started has no history in memory: eventually a watch begins at a revision that the
  // database has compacted.
  await injections['kill -9 of a server']?.({ database, servers, proxy, random });
  t.true(await until(() => workload.gone > 0, 60_000), 'a watch requested expired history');
  await compaction.stop();
  const { counts } = await run.judge({ faults: count, minWrites: count * 20, minEvents: count * 40 });
  t.log(
    `${count} faults; writes continued after ${Math.round(slowest)} ms at most; ` +
      `${compaction.taken} compactions, ${counts.gone} watches ended with 410`,
  );
  t.true(compaction.taken > count, 'the database was compacted continuously');
}
