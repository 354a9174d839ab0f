import type { AgentRequest } from './request.ts';

/**
 * A route of the agent's HTTP servers. Routes that read pods and statistics are also open on the read-only port.
 */
export interface Route {
  /** First segment of the path. */
  readonly first: string;
  readonly methods: readonly string[];
  /** Disabled by --enable-debugging-handlers=false. */
  readonly debug?: boolean;
  readonly readOnlyPort?: boolean;
  readonly serve: (request: AgentRequest) => Promise<void> | void;
}
