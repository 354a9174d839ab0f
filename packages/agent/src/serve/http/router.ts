import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from '@keelson/core';
import { type Caller, HttpProblem, sendText, type UpgradeOffer } from './request.ts';
import type { Route } from './route.ts';

/** A request whose sender is known and may make it. */
export interface Admitted {
  readonly method: string;
  /** Decoded segments of the path, without empty ones at its ends. */
  readonly path: readonly string[];
  readonly query: URLSearchParams;
  readonly caller: Caller;
}

/**
 * The one way in, for plain requests and for those that want another protocol: reads the target, finds out who asks,
 * and whether they may.
 *
 * @throws HttpProblem 400 no path, 401 not known, 403 not allowed, 500 or 503 when there is no telling
 */
export type Gate = (incoming: IncomingMessage) => Promise<Admitted>;

export interface RouterOptions {
  readonly routes: readonly Route[];
  readonly gate: Gate;
  /** False: debug routes answer 405. */
  readonly debuggingHandlers: boolean;
  readonly logger: Logger;
}

/** Takes requests, those that would be upgraded among them. */
export type AgentListener = (incoming: IncomingMessage, response: ServerResponse, upgrade?: UpgradeOffer) => void;

/** A listener that lets a request in, finds the route of the path's first segment, and turns failures into answers. */
export function createRouter({ routes, gate, debuggingHandlers, logger }: RouterOptions): AgentListener {
  const byFirst = new Map<string, Route[]>();
  for (const route of routes) byFirst.set(route.first, [...(byFirst.get(route.first) ?? []), route]);

  async function serve(incoming: IncomingMessage, response: ServerResponse, upgrade?: UpgradeOffer): Promise<void> {
    const admitted = await gate(incoming);
    // Whoever left while reviews were asked for is served no more: nothing would tell a route that it can stop.
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
    // A client that goes away in the middle is no fault.
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
    // Nobody speaks HTTP there any more.
    if (upgrade !== undefined && response.socket === null) upgrade.socket.destroy();
    else sendText(response, 'internal error\n', 500);
  }
}
