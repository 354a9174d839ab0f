import { PodQueryError } from '../base/contracts/pod-queries.ts';
import { HttpProblem } from './http/request.ts';

const statusOf = { NotFound: 404, Invalid: 400, Unsupported: 501, Unavailable: 503 } as const;

/** Converts a PodQueryError to the HTTP error; returns any other error unchanged. */
export function podProblem(error: unknown): unknown {
  return error instanceof PodQueryError ? new HttpProblem(statusOf[error.reason], error.message) : error;
}

/** Calls `ask` and throws its PodQueryError as an HTTP error. */
export function askPod<T>(ask: () => T): T {
  try {
    return ask();
  } catch (error) {
    throw podProblem(error);
  }
}
