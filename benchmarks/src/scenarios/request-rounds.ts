import type { LoadJob } from '../load/protocol.ts';
import type { Spawned } from '../measure/spawned.ts';
import { median } from '../measure/statistics.ts';
import type { Measurement, Round, Stage } from './scenario.ts';

type RequestJob = Omit<Extract<LoadJob, { kind: 'requests' }>, 'kind' | 'firstNumber' | 'port'>;

interface Cost {
  readonly cpuMicros: number;
  readonly wallMicros: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** What one request of a job costs a server. */
async function cost(stage: Stage, server: Spawned, job: RequestJob): Promise<Cost> {
  const cpu = server.cpu();
  const at = performance.now();
  const result = await stage.load.requests({ ...job, port: server.port });
  const wall = performance.now() - at;
  return {
    cpuMicros: ((server.cpu() - cpu) * 1e6) / result.requests,
    wallMicros: (wall * 1000) / result.requests,
    p50Ms: result.p50Ms,
    p99Ms: result.p99Ms,
  };
}

/**
 * Slices before those that count, nearly three seconds of the usual ones: code has been compiled by then, heaps have
 * found their size.
 */
const warmUps = 4;

/** Alternating slices of the same load on two servers; the first ones warm up and are not counted. */
export async function requestRounds(
  stage: Stage,
  floor: readonly [Spawned, RequestJob],
  subject: readonly [Spawned, RequestJob],
  by: 'cpu' | 'wall' = 'cpu',
): Promise<Measurement> {
  const unit = by === 'cpu' ? 'cpuMicros' : 'wallMicros';
  const rounds: Round[] = [];
  const costs: Cost[] = [];
  for (let round = 1 - warmUps; round <= stage.rounds; round += 1) {
    const below = await cost(stage, ...floor);
    const measured = await cost(stage, ...subject);
    if (round <= 0) continue;
    rounds.push({ floor: below[unit], subject: measured[unit] });
    costs.push(measured);
    stage.progress(`round ${round} of ${stage.rounds}`);
  }
  const of = (field: keyof Cost) => median(costs.map((each) => each[field]));
  return {
    unit: `${by === 'cpu' ? 'CPU' : 'wall'} µs per request`,
    rounds,
    notes: { 'p50 ms': of('p50Ms'), 'p99 ms': of('p99Ms'), 'requests/s': 1e6 / of('wallMicros') },
  };
}
