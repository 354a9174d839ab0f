import { createServer } from 'node:http';
import { createHttpClient, Informer } from '@keelson/client';
import { silentLogger, systemClock } from '@keelson/core/runtime';
import { Pod } from '@keelson/kinds';
import { percentile } from '../measure/statistics.ts';
import { type FakeFleet, startFakeFleet } from './fake-fleet.ts';

/**
 * Fake nodes in a process of their own: `fleet-server URL NODES PODS_PER_NODE FOLDER`. Answers on the port it names:
 * `GET /` counts the nodes, once they have all started, and the pods that run according to the API; `GET
 * /exits?count=N` ends containers one after the other and returns the milliseconds until the status at the API shows
 * each.
 */
const [url = '', nodes = '1', podsPerNode = '110', folder = ''] = process.argv.slice(2);
const client = createHttpClient({ server: url, maxConnections: 128 });
/** Another connection, as any observer has, so that what is measured waits for nothing of the agents. */
const observer = createHttpClient({ server: url });

/** What is kept of each pod. */
interface Seen {
  readonly uid: string;
  readonly runs: boolean;
}

const waiting = new Map<string, () => void>();
let running = 0;

function observe(before: Seen | undefined, now: Seen | undefined): void {
  running += Number(now?.runs === true) - Number(before?.runs === true);
  if (now?.runs === false) waiting.get(now.uid)?.();
}

const informer = new Informer<Pod, Seen>({
  client: observer.resource(Pod),
  keep: ({ metadata, status }) => ({
    uid: metadata?.uid ?? '',
    runs: status?.phase === 'Running' && status.containerStatuses?.[0]?.state?.running !== undefined,
  }),
  handlers: {
    added: (pod) => observe(undefined, pod),
    updated: (pod, before) => observe(before, pod),
    deleted: (pod) => observe(pod, undefined),
  },
  clock: systemClock,
  logger: silentLogger,
});

const seenLimitMs = 10_000;

async function exitOnce(fleet: FakeFleet, index: number): Promise<number> {
  const world = fleet.worlds[index % fleet.worlds.length];
  const container = [...(world?.containers.values() ?? [])].find(({ state }) => state === 'running');
  if (world === undefined || container === undefined) throw new Error('no container runs there');
  const { uid } = container.sandbox.config.metadata;
  const seen = new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no status within ${seenLimitMs} ms`)), seenLimitMs);
    waiting.set(uid, () => {
      clearTimeout(timer);
      resolve();
    });
  });
  const at = performance.now();
  world.exit(container.id, 1);
  await seen;
  waiting.delete(uid);
  return performance.now() - at;
}

async function exits(fleet: FakeFleet, count: number): Promise<{ p50: number; p99: number }> {
  const times: number[] = [];
  for (let i = 0; i < count; i += 1) times.push(await exitOnce(fleet, i));
  return { p50: percentile(times, 0.5), p99: percentile(times, 0.99) };
}

let fleet: FakeFleet | undefined;
let failure: string | undefined;

async function answerTo(path: string, count: number): Promise<unknown> {
  if (failure !== undefined) throw new Error(failure);
  if (path !== '/exits') return { nodes: fleet?.worlds.length ?? 0, running };
  if (fleet === undefined) throw new Error('the nodes have not all begun');
  return exits(fleet, count);
}

const server = createServer((request, answer) => {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://fleet');
  answerTo(pathname, Number(searchParams.get('count'))).then(
    (result) => answer.end(JSON.stringify(result)),
    (error: Error) => answer.writeHead(500).end(error.message),
  );
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.stdout.write(`ready ${typeof address === 'object' ? address?.port : 0}\n`);
});
process.once('SIGTERM', () => {
  server.close();
  server.closeAllConnections();
  void (async () => {
    await fleet?.stop();
    await informer.stop();
    client.close();
    observer.close();
  })();
});
try {
  await informer.start();
  fleet = await startFakeFleet(client, Number(nodes), Number(podsPerNode), folder);
} catch (error) {
  failure = (error as Error).message;
}
