import { Connection } from '@keelson/bench/internal';
import { percentile } from '../measure/statistics.ts';
import { type LoadJob, type LoadResult, numbered } from './protocol.ts';
import { Watchers } from './watchers.ts';

/**
 * The load, in a process of its own so that the measured server's CPU time is the server's alone. Jobs come over the
 * IPC channel, one at a time; every job is answered.
 */

const watchers = new Watchers();

/** The TLS connections to ports. */
const open = new Map<number, Connection[]>();

function connectionsFor({ port, tls = false, connections }: Extract<LoadJob, { kind: 'requests' }>): Connection[] {
  const kept = (open.get(port) ?? []).filter(({ closed }) => !closed).slice(0, connections);
  const all = [
    ...kept,
    ...Array.from(
      { length: connections - kept.length },
      () => new Connection({ port, ...(tls ? { tls: { rejectUnauthorized: false } } : {}) }),
    ),
  ];
  if (tls) open.set(port, all);
  return all;
}

async function sendRequests(job: Extract<LoadJob, { kind: 'requests' }>): Promise<LoadResult> {
  const connections = connectionsFor(job);
  const until = job.durationMs === undefined ? Number.POSITIVE_INFINITY : performance.now() + job.durationMs;
  const count = job.count ?? Number.POSITIVE_INFINITY;
  const latencies: number[] = [];
  let number = job.firstNumber;
  let started = 0;
  let failures = 0;
  await Promise.all(
    connections.map(async (connection) => {
      while (started < count && performance.now() < until) {
        const request = numbered(job.requests[started % job.requests.length] ?? '', number++);
        started += 1;
        const at = performance.now();
        const status = await connection.send(request);
        latencies.push(performance.now() - at);
        if (status < 200 || status > 299) failures += 1;
        if (status === 0) return;
        if (job.pauseMs !== undefined) await new Promise((resolve) => setTimeout(resolve, job.pauseMs));
      }
    }),
  );
  if (!job.tls) for (const connection of connections) connection.close();
  return {
    requests: latencies.length,
    failures,
    nextNumber: number,
    p50Ms: percentile(latencies, 0.5),
    p99Ms: percentile(latencies, 0.99),
  };
}

async function run(job: LoadJob): Promise<LoadResult | undefined> {
  switch (job.kind) {
    case 'requests':
      return sendRequests(job);
    case 'fanOut':
      return watchers.fanOut(job);
    case 'watch':
      await watchers.open(job);
      return undefined;
    case 'unwatch':
      watchers.close();
      return undefined;
  }
}

process.on('message', (job: LoadJob) => {
  void run(job).then(
    (result) => process.send?.({ result }),
    (error: Error) => process.send?.({ error: error.message }),
  );
});
process.once('disconnect', () => process.exit(0));
