import { PodQueryError } from '../base/contracts/pod-queries.ts';
import { HttpProblem } from './http/request.ts';

const statusOf = { NotFound: 404, Invalid: 400, Unsupported: 501, Unavailable: 503 } as const;

/** What to answer when a question about a pod has no answer; any other error as it is. */
export function podProblem(error: unknown): unknown {
  return error instanceof PodQueryError ? new HttpProblem(statusOf[error.reason], error.message) : error;
}

/** Asks, and throws what to answer when there is no answer. */
export function askPod<T>(ask: () => T): T {
  try {
    return ask();
  } catch (error) {
    throw podProblem(error);
  }
}
