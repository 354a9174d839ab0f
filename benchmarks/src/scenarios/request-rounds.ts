import type { LoadJob } from '../load/protocol.ts';
import type { Spawned } from '../measure/spawned.ts';
import type { Measurement, Round, Stage } from './scenario.ts';

type RequestJob = Omit<Extract<LoadJob, { kind: 'requests' }>, 'kind' | 'firstNumber' | 'port'>;

/** CPU microseconds of a server per request of a job. */
async function cost(
  stage: Stage,
  server: Spawned,
  job: RequestJob,
): Promise<{ cpuMicros: number; wallMicros: number; p50Ms: number; p99Ms: number }> {
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

/** Alternating slices of the same load on two servers; the first pair warms up and is not counted. */
export async function requestRounds(
  stage: Stage,
  floor: readonly [Spawned, RequestJob],
  subject: readonly [Spawned, RequestJob],
  by: 'cpu' | 'wall' = 'cpu',
): Promise<Measurement> {
  const rounds: Round[] = [];
  const p50: number[] = [];
  const p99: number[] = [];
  for (let round = 0; round <= stage.rounds; round += 1) {
    const below = await cost(stage, ...floor);
    const measured = await cost(stage, ...subject);
    if (round === 0) continue;
    rounds.push(
      by === 'cpu'
        ? { floor: below.cpuMicros, subject: measured.cpuMicros }
        : { floor: below.wallMicros, subject: measured.wallMicros },
    );
    p50.push(measured.p50Ms);
    p99.push(measured.p99Ms);
    stage.progress(`round ${round} of ${stage.rounds}`);
  }
  const last = (values: readonly number[]) => values.at(-1) ?? Number.NaN;
  return { unit: `${by === 'cpu' ? 'CPU' : 'wall'} µs per request`, rounds, notes: { p50Ms: last(p50), p99Ms: last(p99) } };
}
