import type { IncomingMessage } from 'node:http';
import { hostname } from 'node:os';
import { WebPageGuard } from '@keelson/core/internal';
import { HttpProblem } from '../http/request.ts';
import type { Gate } from '../http/router.ts';
import { type Authorize, alwaysAllow } from './access-reviews.ts';
import { everybody, type Identify } from './identify.ts';
import { isFromHere } from './known-caller.ts';
import { nodeAttributes } from './node-attributes.ts';

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

export interface GateOptions {
  readonly identify: Identify;
  readonly authorize: Authorize;
  /** The name of the node, accepted as host name in addition to its addresses. */
  readonly nodeName: string;
}

/** Creates the gate of a port. The route is found by the same path segments that are authorized. */
export function createGate({ identify, authorize, nodeName }: GateOptions): Gate {
  const names = [nodeName, hostname()];
  // Clients on other hosts may use names that the agent does not know.
  const localGuard = new WebPageGuard({ names, anyAddress: true });
  return async (incoming) => {
    const { method = 'GET', url: target = '/' } = incoming;
    if (!target.startsWith('/') || !URL.canParse(anyHost + target))
      throw new HttpProblem(400, 'the request target is not a path');
    // Authenticate before any information is returned, even whether a path exists.
    const caller = await identify(incoming);
    if (caller.anonymous) refuseWebPages(incoming, localGuard);
    const { pathname, searchParams } = new URL(anyHost + target);
    const path = segments(pathname);
    await authorize(caller, nodeAttributes(method, path));
    return { method, path, query: searchParams, caller };
  };
}

/** Rejects requests of web pages: a browser on this host can connect to every open port. @throws HttpProblem 403 */
function refuseWebPages({ headers, socket }: IncomingMessage, guard: WebPageGuard): void {
  const { host, ...others } = headers;
  const problem = isFromHere(socket) ? guard.problem(headers) : guard.problem(others);
  if (problem !== undefined) throw new HttpProblem(403, `Forbidden: ${problem}`);
}

/** A gate that accepts every request as anonymous. */
export function openGate(nodeName: string): Gate {
  return createGate({ identify: everybody, authorize: alwaysAllow, nodeName });
}
