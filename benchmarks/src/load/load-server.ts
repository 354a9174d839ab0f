import { connect, type Socket } from 'node:net';
import { percentile } from '../measure/statistics.ts';
import { Connection } from './connection.ts';
import { type LoadJob, type LoadResult, numberDigits } from './protocol.ts';

/**
 * The load, in a process of its own so that the measured server's CPU time is the server's alone. Jobs come over the IPC channel, one at a
 * time; every job is answered.
 */

interface Watcher {
  readonly socket: Socket;
  received: number;
}

const watchers: Watcher[] = [];
let onBytes: () => void = () => {};

async function sendRequests(job: Extract<LoadJob, { kind: 'requests' }>): Promise<LoadResult> {
  const connections = Array.from({ length: job.connections }, () => new Connection(job.port));
  const until = job.durationMs === undefined ? Number.POSITIVE_INFINITY : performance.now() + job.durationMs;
  const count = job.count ?? Number.POSITIVE_INFINITY;
  const latencies: number[] = [];
  let number = job.firstNumber;
  let started = 0;
  let failures = 0;
  await Promise.all(
    connections.map(async (connection) => {
      while (started < count && performance.now() < until) {
        const template = job.requests[started % job.requests.length] ?? '';
        started += 1;
        const request = template.includes('{n}')
          ? template.replaceAll('{n}', String(number++).padStart(numberDigits, '0'))
          : template;
        const at = performance.now();
        const status = await connection.send(request);
        latencies.push(performance.now() - at);
        if (status < 200 || status > 299) failures += 1;
        if (status === 0) return;
      }
    }),
  );
  for (const connection of connections) connection.close();
  return {
    requests: latencies.length,
    failures,
    nextNumber: number,
    p50Ms: percentile(latencies, 0.5),
    p99Ms: percentile(latencies, 0.99),
  };
}

async function openWatches(job: Extract<LoadJob, { kind: 'watch' }>): Promise<void> {
  await Promise.all(
    Array.from(
      { length: job.watchers },
      () =>
        new Promise<void>((resolve, reject) => {
          const socket = connect({ host: '127.0.0.1', port: job.port });
          const watcher: Watcher = { socket, received: 0 };
          let open = false;
          socket.once('error', reject);
          socket.on('data', (chunk) => {
            if (open) {
              watcher.received += chunk.length;
              onBytes();
              return;
            }
            // The first bytes are the headers; what a watch sends comes later.
            open = true;
            watchers.push(watcher);
            resolve();
          });
          socket.write(job.request);
        }),
    ),
  );
}

async function drain(bytes: number): Promise<void> {
  for (;;) {
    if (watchers.every((watcher) => watcher.received >= bytes)) break;
    await new Promise<void>((resolve) => {
      onBytes = resolve;
    });
  }
  for (const watcher of watchers) watcher.received = 0;
}

async function run(job: LoadJob): Promise<LoadResult | undefined> {
  if (job.kind === 'requests') return sendRequests(job);
  if (job.kind === 'watch') await openWatches(job);
  else if (job.kind === 'drain') await drain(job.bytes);
  else for (const { socket } of watchers.splice(0)) socket.destroy();
  return undefined;
}

process.on('message', (job: LoadJob) => {
  void run(job).then(
    (result) => process.send?.({ result }),
    (error: Error) => process.send?.({ error: error.message }),
  );
});
