import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from '@keelson/core/runtime';
import { type Caller, HttpProblem, sendText, type UpgradeOffer } from './request.ts';
import type { Route } from './route.ts';

/** The result of authentication and authorization. */
export interface Admitted {
  readonly method: string;
  /** Decoded segments of the path, without empty ones at its ends. */
  readonly path: readonly string[];
  readonly query: URLSearchParams;
  readonly caller: Caller;
}

/**
 * Admits every request, upgrade requests included: parses the target, authenticates the client and authorizes the
 * request.
 *
 * @throws HttpProblem 400 invalid path, 401 not authenticated, 403 not authorized, 500 or 503 when a review failed
 */
export type Gate = (incoming: IncomingMessage) => Promise<Admitted>;

export interface RouterOptions {
  readonly routes: readonly Route[];
  readonly gate: Gate;
  /** False: debug routes answer 405. */
  readonly debuggingHandlers: boolean;
  readonly logger: Logger;
}

/** Handles requests, including upgrade requests. */
export type AgentListener = (incoming: IncomingMessage, response: ServerResponse, upgrade?: UpgradeOffer) => void;

/** A listener that admits a request, finds the route by the first path segment, and converts errors to answers. */
export function createRouter({ routes, gate, debuggingHandlers, logger }: RouterOptions): AgentListener {
  const byFirst = new Map<string, Route[]>();
  for (const route of routes) byFirst.set(route.first, [...(byFirst.get(route.first) ?? []), route]);

  async function serve(incoming: IncomingMessage, response: ServerResponse, upgrade?: UpgradeOffer): Promise<void> {
    const admitted = await gate(incoming);
    // A client that disconnected during the reviews is not served: the route would not be notified to stop.
    if (incoming.socket.destroyed) return;
    const { method, path } = admitted;
    const found = byFirst.get(path[0] ?? '') ?? [];
    if (found.length === 0) throw new HttpProblem(404, '404 page not found');
    if (found.some(({ debug }) => debug) && !debuggingHandlers)
      throw new HttpProblem(405, 'Debug endpoints are disabled.');
    const route = found.find(
      ({ methods }) => methods.includes(method) || (method === 'HEAD' && methods.includes('GET')),
    );
    if (route === undefined) {
      const allowed = found.flatMap(({ methods }) => methods).join(', ');
      throw new HttpProblem(405, `${method} is not allowed; allowed: ${allowed}`, { Allow: allowed });
    }
    await route.serve({ ...admitted, incoming, response, upgrade });
  }

  return (incoming, response, upgrade) => {
    // A client that disconnects during a request is not a fault.
    response.on('error', () => {});
    serve(incoming, response, upgrade).catch((error: unknown) => fail(incoming, response, error, upgrade));
  };

  function fail(incoming: IncomingMessage, response: ServerResponse, error: unknown, upgrade?: UpgradeOffer): void {
    if (response.headersSent || response.destroyed) {
      response.destroy();
      return;
    }
    if (error instanceof HttpProblem) {
      for (const [name, value] of Object.entries(error.headers)) response.setHeader(name, value);
      sendText(response, `${error.message}\n`, error.status);
      return;
    }
    logger.error('request failed', { method: incoming.method, path: incoming.url?.replace(/\?.*$/s, ''), err: error });
    // The connection no longer uses HTTP.
    if (upgrade !== undefined && response.socket === null) upgrade.socket.destroy();
    else sendText(response, 'internal error\n', 500);
  }
}
