import { FakeClock } from '@keelson/core/runtime';
import { type ListeningLogger, listeningLogger, temporaryDirectory } from '@keelson/test-support';
import type { ExecutionContext } from 'ava';
import type { AgentConfig } from '../../src/base/config/agent-config.ts';
import { type PodQueries, PodQueryError } from '../../src/base/contracts/pod-queries.ts';
import type { PodStreams } from '../../src/base/contracts/pod-streams.ts';
import { type AgentServers, type AgentServersOptions, openServers } from '../../src/serve/agent-servers.ts';
import { createTextMetrics } from '../../src/serve/stats/text-metrics.ts';
import { parseOptions } from '../../src/startup/options/parse-options.ts';
import { resolveConfig } from '../../src/startup/options/resolve-config.ts';

export const missing = (): never => {
  throw new PodQueryError('NotFound', 'pod "nope" does not exist');
};

/** A node without pods. */
export const noStreams: PodStreams = {
  exec: missing,
  attach: missing,
  portForward: missing,
  run: async () => missing(),
};

/** Where the servers of a test are. */
export interface TestPlace {
  readonly directory: string;
  readonly clock: FakeClock;
  readonly logger: ListeningLogger;
  readonly config: AgentConfig;
}

export interface TestServers extends TestPlace {
  readonly servers: AgentServers;
}

type Changes = Omit<Partial<AgentServersOptions>, 'state'> & { readonly state?: Partial<PodQueries> };

/** The HTTP servers of an agent without pods, on free ports, under a clock that stands still. */
export async function openTestServers(
  t: ExecutionContext,
  words: readonly string[],
  changes: (place: TestPlace) => Changes | Promise<Changes> = () => ({}),
): Promise<TestServers> {
  const directory = await temporaryDirectory(t);
  const ports = ['--port=0', '--read-only-port=0', '--healthz-port=0', '--stats-port=0'];
  const places = [`--cert-dir=${directory}/pki`, `--root-dir=${directory}`];
  const parsed = parseOptions(['--hostname-override=n1', '--address=127.0.0.1', ...ports, ...places, ...words]);
  const { config } = resolveConfig(parsed, { hostname: () => 'n1', fileExists: () => false });
  const place = { directory, clock: new FakeClock(), logger: listeningLogger(), config };
  const { clock, logger } = place;
  const { state, ...others } = await changes(place);
  const servers = await openServers({
    config,
    state: {
      pods: () => [],
      runningPods: async () => [],
      logs: async () => missing(),
      usage: async () => [],
      lastSyncLoopMs: () => clock.monotonic(),
      ...state,
    },
    ...{ streams: noStreams, logRoot: directory, submit: undefined, effective: {}, clock, logger },
    metrics: createTextMetrics(),
    ...others,
  });
  t.teardown(() => servers.close());
  return { ...place, servers };
}
