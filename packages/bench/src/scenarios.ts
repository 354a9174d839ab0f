import { Connection } from './connection.ts';
import type { Subject } from './subject.ts';

/** The measurements of one round of a scenario on one server. */
export interface Sample {
  /** Number of requests, or of deliveries to watchers. */
  readonly operations: number;
  readonly seconds: number;
  /** Duration of each operation in milliseconds. A watched change ends when the last watcher has received it. */
  readonly latencies: readonly number[];
  /** CPU time of the server's process; undefined for servers that the benchmark has not started. */
  readonly cpuSeconds: number | undefined;
}

/** Load and duration of one round. */
export interface RoundSize {
  readonly clients: number;
  readonly watchers: number;
  readonly roundMs: number;
}

interface Scenario {
  readonly name: string;
  readonly what: string;
  run(subject: Subject, size: RoundSize): Promise<Sample>;
}

const pageSize = 500;
/** Timeout for the delivery of a change to all watchers. */
const deliveryMs = 30_000;

/**
 * Sends requests on all connections until the round is over or `next` returns no further request.
 *
 * @throws Error when a request was refused: a failed request costs less than a served one
 */
export async function send(
  subject: Subject,
  { clients, roundMs }: Pick<RoundSize, 'clients' | 'roundMs'>,
  next: () => string | undefined,
): Promise<Sample> {
  const latencies: number[] = [];
  const refused = new Map<number, number>();
  const connections = Array.from({ length: clients }, () => new Connection(subject.target));
  const cpu = subject.cpuSeconds();
  const began = performance.now();
  const until = began + roundMs;
  await Promise.all(
    connections.map(async (connection) => {
      for (let at = performance.now(); at < until; at = performance.now()) {
        const request = next();
        if (request === undefined) return;
        const status = await connection.send(request);
        latencies.push(performance.now() - at);
        if (status < 200 || status > 299) refused.set(status, (refused.get(status) ?? 0) + 1);
        if (status === 0) return;
      }
    }),
  );
  const seconds = (performance.now() - began) / 1000;
  const cpuSeconds = difference(subject.cpuSeconds(), cpu);
  for (const connection of connections) connection.close();
  const [first] = refused;
  if (first !== undefined) {
    const [status, count] = first;
    const why = status === 0 ? 'the connection was closed' : `the answer was ${status}`;
    throw new Error(`${count} of ${latencies.length} requests failed: ${why}`);
  }
  return { operations: latencies.length, seconds, latencies, cpuSeconds };
}

function difference(now: number | undefined, before: number | undefined): number | undefined {
  return now === undefined || before === undefined ? undefined : now - before;
}

/** Returns a function that makes a request for one existing object after the other, and then begins again. */
function inTurn(subject: Subject, request: (name: string) => string): () => string {
  let at = 0;
  return () => request(subject.existing[at++ % subject.existing.length] ?? '');
}

/** Creates `count` objects; returns their names. */
export async function fill(subject: Subject, count: number, clients: number): Promise<string[]> {
  const names = Array.from({ length: count }, () => subject.nextName());
  const waiting = [...names];
  await send(subject, { clients, roundMs: Number.POSITIVE_INFINITY }, () => {
    const name = waiting.pop();
    return name === undefined ? undefined : subject.createRequest(name);
  });
  return names;
}

/** Writes one change after the other. The next write begins when every watcher has received the change. */
async function watchLatency(subject: Subject, { watchers, roundMs }: RoundSize): Promise<Sample> {
  const stop = new AbortController();
  const [name = ''] = subject.existing;
  const { metadata } = await subject.objects.get(name);
  let received = 0;
  let expected = '';
  let delivered: () => void = () => {};
  const follow = async () => {
    const options = { labelSelector: subject.selector, resourceVersion: metadata.resourceVersion, signal: stop.signal };
    for await (const { object } of subject.objects.watch(options)) {
      if (object.metadata?.annotations?.['keelson-bench'] !== expected || object.metadata.name !== name) continue;
      received += 1;
      if (received === watchers) delivered();
    }
  };
  const following = Promise.all(Array.from({ length: watchers }, follow));
  const ended = following.then(() => Promise.reject(new Error('a watch ended')));
  ended.catch(() => {});
  const latencies: number[] = [];
  let began = performance.now();
  let cpu = subject.cpuSeconds();
  try {
    // The first change is delivered when every watch is open; it is not counted.
    for (let turn = 0; turn === 0 || performance.now() < began + roundMs; turn += 1) {
      received = 0;
      expected = `turn-${turn}-${Date.now()}`;
      let timer: NodeJS.Timeout | undefined;
      const all = new Promise<void>((resolve, reject) => {
        delivered = resolve;
        timer = setTimeout(() => reject(new Error('a change was not delivered to every watcher')), deliveryMs);
      });
      const at = performance.now();
      const change = { metadata: { annotations: { 'keelson-bench': expected } } };
      try {
        await Promise.all([subject.objects.patch(name, 'merge', change), Promise.race([all, ended])]);
      } finally {
        clearTimeout(timer);
      }
      if (turn === 0) {
        began = performance.now();
        cpu = subject.cpuSeconds();
      } else latencies.push(performance.now() - at);
    }
  } finally {
    stop.abort();
  }
  const seconds = (performance.now() - began) / 1000;
  const cpuSeconds = difference(subject.cpuSeconds(), cpu);
  return { operations: latencies.length * watchers, seconds, latencies, cpuSeconds };
}

export const scenarios: readonly Scenario[] = [
  {
    name: 'get',
    what: 'GET of one object',
    run: (subject, size) =>
      send(
        subject,
        size,
        inTurn(subject, (name) => subject.getRequest(name)),
      ),
  },
  {
    name: 'list',
    what: `list of a page of ${pageSize} objects`,
    run: (subject, size) =>
      send(subject, { ...size, clients: Math.min(size.clients, 4) }, () => subject.listRequest(pageSize)),
  },
  {
    name: 'create',
    what: 'create of an object',
    run: (subject, size) => send(subject, size, () => subject.createRequest(subject.nextName())),
  },
  {
    name: 'update',
    what: 'merge patch of an annotation',
    run: (subject, size) =>
      send(
        subject,
        size,
        inTurn(subject, (name) => subject.patchRequest(name)),
      ),
  },
  {
    name: 'delete',
    what: 'delete of an object',
    run: async (subject, size) => {
      const names = await fill(subject, size.clients * 25, size.clients);
      return send(subject, size, () => {
        const name = names.pop();
        return name === undefined ? undefined : subject.deleteRequest(name);
      });
    },
  },
  {
    name: 'mixed',
    what: '8 GET, a page and a merge patch in turn',
    run: (subject, size) => {
      const get = inTurn(subject, (name) => subject.getRequest(name));
      const patch = inTurn(subject, (name) => subject.patchRequest(name));
      let turn = 0;
      return send(subject, size, () => {
        turn = (turn + 1) % 10;
        return turn === 8 ? subject.listRequest(pageSize) : turn === 9 ? patch() : get();
      });
    },
  },
  {
    name: 'watch',
    what: 'a change until every watcher has received it; operations are deliveries',
    run: watchLatency,
  },
];

export const scenarioNames: readonly string[] = scenarios.map(({ name }) => name);
