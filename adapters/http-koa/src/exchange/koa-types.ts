// The types of Koa in the public API. Those of `@types/koa` are sixteen packages that every user would install, and
// a declaration that imports them does not compile without them.
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { ParsedUrlQuery } from 'node:querystring';
import type { Exchange } from './exchange.ts';

/**
 * What middleware commonly uses of a Koa context. A program with `@types/koa` can write its middleware with the types
 * `Context` and `Middleware` of Koa instead, which contain everything.
 *
 * @public
 */
export interface KoaContext {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  // biome-ignore lint/suspicious/noExplicitAny: each program has a type of its own for the state
  state: any;
  readonly method: string;
  readonly url: string;
  readonly path: string;
  readonly query: ParsedUrlQuery;
  readonly querystring: string;
  readonly headers: IncomingHttpHeaders;
  readonly host: string;
  readonly hostname: string;
  readonly ip: string;
  status: number;
  body: unknown;
  type: string;
  /** False: Koa does not answer, because the middleware writes to `res` itself. */
  respond?: boolean | undefined;
  /** A header of the request, '' when it is absent. */
  get(field: string): string;
  /** Sets a header of the response. */
  set(field: string, value: string | string[]): void;
  /** Throws an error that is sent to the client with this status code and message. */
  throw(status: number, ...message: string[]): never;
  redirect(url: string): void;
}

/**
 * Koa middleware, also that which is written with the types of Koa.
 *
 * @public
 */
export type KoaMiddleware = {
  // Parameters of methods, unlike those of functions, may have a more specific type, such as the context of Koa itself.
  // biome-ignore lint/suspicious/noExplicitAny: Koa ignores the result
  middleware(context: KoaContext, next: () => Promise<any>): any;
}['middleware'];

/** The state of the Koa context. */
export interface KoaState {
  /** The request after the filters: attributes, user, request id. */
  exchange: Exchange;
}
