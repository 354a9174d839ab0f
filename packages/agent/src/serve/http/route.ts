import type { AgentRequest } from './request.ts';

/**
 * Where a path may be asked for, besides the main port: what reads pods and statistics is open on the read-only port.
 */
export interface Route {
  /** First segment of the path. */
  readonly first: string;
  readonly methods: readonly string[];
  /** Shows or does what --enable-debugging-handlers=false forbids. */
  readonly debug?: boolean;
  readonly readOnlyPort?: boolean;
  readonly serve: (request: AgentRequest) => Promise<void> | void;
}
