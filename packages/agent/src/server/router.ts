import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Logger } from '@keelson/core';
import { type Caller, HttpProblem, sendText } from './request.ts';
import type { Route } from './route.ts';

export interface RouterOptions {
  readonly routes: readonly Route[];
  /** @throws HttpProblem 401 */
  readonly authenticate: (incoming: IncomingMessage) => Caller;
  /** False: debug routes answer 405. */
  readonly debuggingHandlers: boolean;
  readonly logger: Logger;
}

const anyHost = 'http://agent';

function segments(pathname: string): string[] {
  try {
    return pathname
      .replace(/^\/+|\/+$/g, '')
      .split('/')
      .map(decodeURIComponent);
  } catch {
    throw new HttpProblem(400, 'the path is not well encoded');
  }
}

/** A listener that authenticates, finds the route of the path's first segment, and turns failures into answers. */
export function createRouter({ routes, authenticate, debuggingHandlers, logger }: RouterOptions): RequestListener {
  const byFirst = new Map<string, Route[]>();
  for (const route of routes) byFirst.set(route.first, [...(byFirst.get(route.first) ?? []), route]);

  async function serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = 'GET' } = incoming;
    const target = incoming.url ?? '/';
    if (!target.startsWith('/') || !URL.canParse(anyHost + target))
      throw new HttpProblem(400, 'the request target is not a path');
    const url = new URL(anyHost + target);
    // Before anything else is told, even whether a path exists.
    const caller = authenticate(incoming);
    const path = segments(url.pathname);
    const found = byFirst.get(path[0] ?? '') ?? [];
    if (found.length === 0) throw new HttpProblem(404, '404 page not found');
    if (found.some(({ debug }) => debug) && !debuggingHandlers) throw new HttpProblem(405, 'Debug endpoints are disabled.');
    const route = found.find(({ methods }) => methods.includes(method) || (method === 'HEAD' && methods.includes('GET')));
    if (route === undefined) {
      const allowed = found.flatMap(({ methods }) => methods).join(', ');
      throw new HttpProblem(405, `${method} is not allowed; allowed: ${allowed}`, { Allow: allowed });
    }
    await route.serve({ method, path, query: url.searchParams, caller, incoming, response });
  }

  return (incoming, response) => {
    // A client that goes away in the middle is no fault.
    response.on('error', () => {});
    serve(incoming, response).catch((error: unknown) => fail(incoming, response, error));
  };

  function fail(incoming: IncomingMessage, response: ServerResponse, error: unknown): void {
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
    sendText(response, 'internal error\n', 500);
  }
}
