import { percentile } from '../measure/statistics.ts';
import { type LoadJob, type LoadResult, numbered } from './protocol.ts';
import { openSenders, type Sender } from './senders.ts';
import { Watchers } from './watchers.ts';

/**
 * The load, in a process of its own so that the measured server's CPU time is the server's alone. Jobs come over the
 * IPC channel, one at a time; every job is answered.
 */

const watchers = new Watchers();

/** The connections to ports that stay open: those with TLS. */
const open = new Map<string, Sender[]>();

function connectionsFor(job: Extract<LoadJob, { kind: 'requests' }>): Sender[] {
  const { port, tls = false, streams, connections } = job;
  const key = `${port} ${streams}`;
  const all = (open.get(key) ?? []).filter(({ closed }) => !closed).slice(0, connections);
  if (all.length < connections) all.push(...openSenders(job, connections - all.length));
  if (tls) open.set(key, all);
  return all;
}

async function sendRequests(job: Extract<LoadJob, { kind: 'requests' }>): Promise<LoadResult> {
  const connections = connectionsFor(job);
  const began = performance.now();
  const dueAt = (index: number): number => (job.perSecond === undefined ? 0 : began + (index * 1000) / job.perSecond);
  const until = job.durationMs === undefined ? Number.POSITIVE_INFINITY : performance.now() + job.durationMs;
  const count = job.count ?? Number.POSITIVE_INFINITY;
  const latencies: number[] = [];
  let number = job.firstNumber;
  let started = 0;
  const failures: Record<number, number> = {};
  await Promise.all(
    connections.map(async (connection) => {
      while (started < count && performance.now() < until) {
        const request = numbered(job.requests[started % job.requests.length] ?? '', number++);
        const due = dueAt(started);
        started += 1;
        if (due > performance.now()) await new Promise((resolve) => setTimeout(resolve, due - performance.now()));
        const at = job.perSecond === undefined ? performance.now() : due;
        const status = await connection.send(request);
        latencies.push(performance.now() - at);
        if (status < 200 || status > 299) failures[status] = (failures[status] ?? 0) + 1;
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
    case 'paced':
      return watchers.paced(job);
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
