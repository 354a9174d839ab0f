import { getHeapSpaceStatistics, getHeapStatistics } from 'node:v8';
import type { Clock } from '@keelson/core/runtime';
import { type AgentRequest, HttpProblem, sendJson } from '../http/request.ts';
import type { Route } from '../http/route.ts';
import type { LoopDelay } from './loop-delay.ts';

/** Waits, or returns early when `signal` aborts. */
function wait(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const cancel = clock.after(ms, () => resolve());
    signal.addEventListener('abort', () => {
      cancel();
      resolve();
    });
  });
}

/** Records a CPU profile of this process for a time, in the format of `.cpuprofile` files. */
export async function recordCpuProfile(clock: Clock, ms: number, signal: AbortSignal): Promise<object> {
  // Loaded on demand, because it is rarely used.
  const { Session } = await import('node:inspector/promises');
  const session = new Session();
  session.connect();
  try {
    await session.post('Profiler.enable');
    await session.post('Profiler.start');
    await wait(clock, ms, signal);
    return (await session.post('Profiler.stop')).profile;
  } finally {
    session.disconnect();
  }
}

export interface ProfileRouteOptions {
  /** Undefined without --contention-profiling. */
  readonly loopDelay: Pick<LoopDelay, 'report'> | undefined;
  readonly clock: Clock;
}

const pages = {
  profile: 'use of the CPU over ?seconds=30 (at most 60), as .cpuprofile, which browsers and editors open',
  heap: 'sizes of the heap and its spaces, and memory of the process, in bytes',
  contention: 'how long the event loop was held up, with --contention-profiling',
} as const;

const defaultSeconds = 30;
const maxSeconds = 60;

function secondsOf(query: URLSearchParams): number {
  const text = query.get('seconds') || String(defaultSeconds);
  const seconds = /^\d{1,9}(\.\d{1,3})?$/.test(text) ? Number(text) : Number.NaN;
  if (!(seconds > 0 && seconds <= maxSeconds))
    throw new HttpProblem(400, `seconds must be above 0 and at most ${maxSeconds}`);
  return seconds;
}

/** `/debug/pprof/`: profiles of the CPU time and the memory of the agent. */
export function profileRoute({ loopDelay, clock }: ProfileRouteOptions): Route {
  let recording = false;

  async function profile({ query, response, incoming }: AgentRequest): Promise<void> {
    const seconds = secondsOf(query);
    // A profile slows the agent down, so only one is recorded at a time.
    if (recording) throw new HttpProblem(503, 'a profile is being recorded', { 'Retry-After': String(maxSeconds) });
    recording = true;
    const gone = new AbortController();
    const leave = () => gone.abort();
    response.once('close', leave);
    try {
      const recorded = await recordCpuProfile(clock, seconds * 1000, gone.signal);
      if (incoming.socket.destroyed) return;
      response.setHeader('Content-Disposition', 'attachment; filename="agent.cpuprofile"');
      sendJson(response, recorded);
    } finally {
      recording = false;
    }
  }

  return {
    first: 'debug',
    methods: ['GET'],
    debug: true,
    async serve(request) {
      const { path, response } = request;
      const [, pprof, page = '', ...rest] = path;
      if (pprof !== 'pprof' || rest.length > 0) throw new HttpProblem(404, '404 page not found');
      if (page === '') return sendJson(response, pages);
      if (page === 'profile') return profile(request);
      if (page === 'heap') {
        return sendJson(response, {
          heap: getHeapStatistics(),
          spaces: getHeapSpaceStatistics(),
          process: process.memoryUsage(),
        });
      }
      if (page !== 'contention')
        throw new HttpProblem(404, `no such profile; use one of ${Object.keys(pages).join(', ')}`);
      if (loopDelay === undefined)
        throw new HttpProblem(404, 'contention is only measured with --contention-profiling');
      sendJson(response, loopDelay.report());
    },
  };
}
