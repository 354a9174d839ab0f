import { configMap, leastConfigMapFrame, requestsOf, sharedStreams } from '../fixtures.ts';
import type { ScaleStage } from './scale-stage.ts';
import { scaleToken } from './scale-stage.ts';

/** Something that grows until its last step, or until the time or the memory of the part is used up. */
export interface ScalePart {
  readonly name: string;
  readonly what: string;
  /** What is counted on the horizontal axis. */
  readonly unit: string;
  /** Figures that get a plot and a line. */
  readonly fitted: readonly string[];
  readonly adapter: 'chosen' | 'postgres';
  run(stage: ScaleStage): Promise<void>;
}

const path = '/api/v1/namespaces/default/configmaps';
const steps = 10;
const clients = 64;
const events = 5;

const { request, patchRequest } = requestsOf(scaleToken);

const nameOf = (number: number): string => `object-${String(number).padStart(9, '0')}`;

/** Creates objects until the time of the part is over; returns how many and the numbers in their names. */
async function create(stage: ScaleStage, count: number) {
  const requests = Array.from({ length: 100 }, () => request('POST', path, configMap('object-{n}')));
  const target = { port: stage.server.port, tls: true, connections: clients };
  const made = await stage.load.requests({ ...target, count, durationMs: Math.max(1, stage.leftMs), requests });
  return { made, numbers: [made.nextNumber - made.requests, made.nextNumber] as const };
}

/** GETs of objects that are spread over all that exist. */
function gets(ranges: readonly (readonly [number, number])[]): string[] {
  return Array.from({ length: 2_000 }, (_, index) => {
    const [first, end] = ranges[index % ranges.length] ?? [0, 1];
    return request('GET', `${path}/${nameOf(first + Math.floor(Math.random() * (end - first)))}`);
  });
}

const objects: ScalePart = {
  name: 'objects',
  what: 'ConfigMaps of 1.2 KB; after each step GETs of any of them, 64 connections',
  unit: 'objects',
  fitted: ['server MB', 'GET CPU µs', 'create CPU µs'],
  adapter: 'chosen',
  run: async (stage) => {
    const ranges: (readonly [number, number])[] = [];
    let total = 0;
    for (let step = 1; step <= steps; step += 1) {
      stage.check();
      // The first half of the first step compiles the code of a create; second halves are measured.
      const half = Math.ceil(stage.options.objects / steps / 2);
      const first = await create(stage, half);
      stage.cpuSince();
      const began = performance.now();
      const second = await create(stage, half);
      const createCpu = (stage.cpuSince() * 1e6) / second.made.requests;
      const perSecond = (second.made.requests * 1000) / (performance.now() - began);
      ranges.push(first.numbers, second.numbers);
      total += first.made.requests + second.made.requests;
      const target = { port: stage.server.port, tls: true, connections: clients, durationMs: stage.options.sliceMs };
      const got = await stage.load.requests({ ...target, requests: gets(ranges) });
      const getCpu = (stage.cpuSince() * 1e6) / got.requests;
      await stage.record(total, {
        'create CPU µs': createCpu,
        'creates per second': perSecond,
        'GET CPU µs': getCpu,
        'GET p99 ms': got.p99Ms,
      });
    }
  },
};

const watches: ScalePart = {
  name: 'watches',
  what: `watches of one namespace, a tenth over HTTP/2 connections shared by ${sharedStreams} unless --shared says otherwise, the others with a connection each; ${events} events are delivered to all of them after each step`,
  unit: 'watches',
  fitted: ['server MB', 'event CPU ms', 'delivery p99 ms'],
  adapter: 'chosen',
  run: async (stage) => {
    const { server, load, options } = stage;
    const target = { port: server.port, tls: true };
    const watched = [request('POST', path, configMap('watched'))];
    await load.requests({ ...target, connections: 1, count: 1, requests: watched });
    const patch = patchRequest(`${path}/watched`);
    const open = { ...target, stalled: 0, request: request('GET', `${path}?watch=1`) };
    let total = 0;
    for (let step = 1; step <= steps; step += 1) {
      stage.check();
      const shared = Math.round(options.shared / steps);
      const alone = Math.round(options.watches / steps) - shared;
      if (alone > 0) await load.watch({ ...open, watchers: alone });
      if (shared > 0) await load.watch({ ...open, watchers: shared, streams: sharedStreams });
      total += alone + shared;
      // The first event to new watchers is not counted.
      const fanOut = { ...target, request: patch, burst: 1, bytes: leastConfigMapFrame };
      await load.fanOut({ ...fanOut, events: 1 });
      stage.cpuSince();
      const { requests, p50Ms, p99Ms } = await load.fanOut({ ...fanOut, events });
      const cpu = stage.cpuSince();
      await stage.record(total, {
        'event CPU ms': (cpu * 1e3) / events,
        'delivery CPU µs': (cpu * 1e6) / requests,
        'delivery p50 ms': p50Ms,
        'delivery p99 ms': p99Ms,
      });
    }
  },
};

const list: ScalePart = {
  name: 'list',
  what: 'all objects in one list, three times after each step, of which the first contains new objects; then 500 GETs per second of 8 connections alone, and beside further lists',
  unit: 'objects',
  fitted: ['list CPU ms', 'list p50 ms', 'server MB'],
  adapter: 'chosen',
  run: async (stage) => {
    const target = { port: stage.server.port, tls: true };
    const others = stage.anotherLoad();
    const ranges: (readonly [number, number])[] = [];
    let total = 0;
    for (let step = 1; step <= steps; step += 1) {
      stage.check();
      const { made, numbers } = await create(stage, Math.ceil(stage.options.list / steps));
      ranges.push(numbers);
      total += made.requests;
      const lists = { ...target, connections: 1, requests: [request('GET', path)] };
      stage.cpuSince();
      const listed = await stage.load.requests({ ...lists, count: 3 });
      const cpu = (stage.cpuSince() * 1e3) / listed.requests;
      const get = {
        ...target,
        connections: 8,
        requests: gets(ranges),
        durationMs: stage.options.sliceMs,
        perSecond: 500,
      };
      const quiet = await others.requests(get);
      const beside = others.requests(get);
      await stage.load.requests({ ...lists, durationMs: stage.options.sliceMs / 2 });
      const { p99Ms } = await beside;
      await stage.record(total, {
        'list CPU ms': cpu,
        'list p50 ms': listed.p50Ms,
        'list slowest ms': listed.p99Ms,
        'GET p99 ms': quiet.p99Ms,
        'GET p99 ms beside': p99Ms,
      });
    }
  },
};

const writes: ScalePart = {
  name: 'writes',
  what: 'PUTs of 2,000 ConfigMaps in turn on Postgres, 64 connections, due at the rate; latencies run from the time when a write is due; CPU includes that of Postgres',
  unit: 'seconds',
  fitted: ['server MB', 'store MB', 'write CPU µs'],
  adapter: 'postgres',
  run: async (stage) => {
    const target = { port: stage.server.port, tls: true, connections: clients };
    const { made, numbers } = await create(stage, 2_000);
    const puts = Array.from({ length: made.requests }, (_, index) => {
      const name = nameOf(numbers[0] + index);
      return request('PUT', `${path}/${name}`, configMap(name));
    });
    const began = performance.now();
    const durationMs = Math.max(1, stage.leftMs / steps);
    for (let step = 1; step <= steps; step += 1) {
      stage.checkMemory();
      stage.cpuSince();
      const at = performance.now();
      const job = { ...target, durationMs, perSecond: stage.options.rate, requests: puts };
      const { requests, p50Ms, p99Ms } = await stage.load.requests(job);
      const now = performance.now();
      await stage.record((now - began) / 1000, {
        'writes per second': (requests * 1000) / (now - at),
        'write CPU µs': (stage.cpuSince() * 1e6) / requests,
        'write p50 ms': p50Ms,
        'write p99 ms': p99Ms,
      });
    }
  },
};

export const scaleParts: readonly ScalePart[] = [objects, watches, list, writes];
