import { FaultProxy } from '@keelson/conformance';
import type { ExecutionContext } from 'ava';
import type { FaultDatabase } from './databases.ts';
import { directoryFor, progress, sleep, startRun } from './fault-run.ts';
import { FaultServer } from './fault-server.ts';

/** Old enough for every witness to resume after a fault, young enough for watches at old revisions to be told that they are gone. */
const retention = { minChanges: 200, minAgeMs: 8000 };

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
    // Sometimes what was under way comes through in the end, sometimes it never does.
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

/**
 * Two servers on one database, clients that move between them, and one fault after another. History is let go of all the time; one
 * server's parameters may differ from the other's.
 */
export async function twoServers(
  t: ExecutionContext,
  database: FaultDatabase,
  count: number,
  secondParameters: Readonly<Record<string, string>> = {},
): Promise<void> {
  const parameters = { minChanges: String(retention.minChanges), minAgeMs: String(retention.minAgeMs) };
  const proxy = await FaultProxy.open({ target: { host: '127.0.0.1', port: database.port } });
  t.teardown(() => proxy.close());
  const storages = [database.storage(parameters), database.storage({ ...parameters, ...secondParameters }, proxy.port)];
  const servers: FaultServer[] = [];
  for (const storage of storages) {
    const server = await FaultServer.start({ data: await directoryFor(t), storage });
    t.teardown(() => server.stop());
    servers.push(server);
  }
  const run = await startRun(t, { servers: servers.map(({ url }) => url), callTimeoutMs: 3000 });
  const { workload, random } = run;
  const names = Object.keys(injections).filter(
    (name) => database.terminateConnections !== undefined || !name.startsWith('all connections'),
  );
  let slowest = 0;
  for (let done = 1; done <= count; done++) {
    const name = names[done % names.length] ?? '';
    workload.recorder.mark(name);
    await injections[name]?.({ database, servers, proxy, random });
    workload.recorder.mark('over');
    const over = performance.now();
    await run.traffic(1);
    slowest = Math.max(slowest, performance.now() - over);
    await run.traffic(20 + random.below(40));
    progress(t, done, count, () => `${name}, revision ${workload.latest}, ${workload.acknowledged} writes acknowledged`);
  }
  const verdict = await run.judge({ retention, minWrites: count * 20, minEvents: count * 40 });
  t.log(`${count} faults; writes went on after ${Math.round(slowest)} ms at most; ${verdict.counts.gone} watches were told 410`);
}
