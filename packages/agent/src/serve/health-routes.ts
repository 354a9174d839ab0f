import type { Clock } from '@keelson/core/runtime';
import type { PodQueries } from '../base/contracts/pod-queries.ts';
import { HttpProblem, sendText } from './http/request.ts';
import type { Route } from './http/route.ts';

export interface HealthOptions {
  readonly state: Pick<PodQueries, 'lastSyncLoopMs'>;
  readonly syncMs: number;
  readonly clock: Clock;
}

/**
 * Minimum time without a run of the pod loop after which it counts as stuck: see
 * docs/reference/agent-rules.md#ports-of-the-agent.
 */
const leastStuckMs = 300_000;

/** `/healthz` and its parts: `ping`, and `syncloop`, which fails when the pod loop is stuck. */
export function healthRoutes({ state, syncMs, clock }: HealthOptions): Route[] {
  const patienceMs = Math.max(leastStuckMs, 2 * syncMs);
  const started = clock.monotonic();
  const stuck = (): string | undefined => {
    const age = clock.monotonic() - (state.lastSyncLoopMs() ?? started);
    return age > patienceMs ? `the sync loop has not gone round for ${Math.round(age / 1000)} s` : undefined;
  };
  return [
    {
      first: 'healthz',
      methods: ['GET'],
      readOnlyPort: true,
      serve({ path, response }) {
        const [, check, ...rest] = path;
        if (rest.length > 0 || (check !== undefined && check !== 'ping' && check !== 'syncloop')) {
          throw new HttpProblem(404, '404 page not found');
        }
        const problem = check === 'ping' ? undefined : stuck();
        if (problem !== undefined) throw new HttpProblem(500, `[-]syncloop failed: ${problem}`);
        sendText(response, 'ok');
      },
    },
  ];
}
