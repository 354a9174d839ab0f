import type { IncomingMessage } from 'node:http';
import { statusErrors } from '@keelson/core';
import type { Logger } from '@keelson/core/runtime';
import Koa from 'koa';
import type { Exchange } from '../exchange/exchange.ts';
import type { KoaState } from '../exchange/koa-types.ts';
import type { OwnRoutes } from '../exchange/options.ts';
import type { Handler, Pipeline } from '../exchange/pipeline.ts';
import { mayHaveBody, readBody } from '../exchange/request-body.ts';
import { sendNotFound } from '../exchange/send.ts';
import { type EndpointRouter, methodNotAllowed } from './endpoint-router.ts';

const clientFaults = /^(?:HPE_.*|ECONNRESET|ECONNABORTED|EPIPE|ETIMEDOUT|ERR_STREAM_PREMATURE_CLOSE|ERR_HTTP2_.*)$/;

/**
 * Koa reports errors of a connection until the response has been sent, such as a malformed second request. Clients can
 * cause those at will, and the error contains what they sent.
 */
function reportFailure(logger: Logger, err: unknown): void {
  const code = err instanceof Error && 'code' in err ? String(err.code) : '';
  if (clientFaults.test(code)) logger.debug('the connection of a client failed', { code });
  else logger.error('koa middleware failed', { err });
}

/** An error created by `ctx.throw` whose message may be sent to the client. */
function isHttpError(error: unknown): error is Error & { readonly status: number } {
  return error instanceof Error && 'expose' in error && error.expose === true && 'status' in error;
}

export interface KoaApplicationOptions {
  readonly pipeline: Pipeline;
  readonly handleResource: Handler;
  readonly router: EndpointRouter;
  readonly logger: Logger;
  readonly own: OwnRoutes;
  readonly bodyBytes: number;
  /** The exchange that the listener has created for a request; undefined when it has created none. */
  readonly opened: (request: IncomingMessage) => Exchange | undefined;
}

/**
 * The API as a Koa application: the filters, the middleware of the program, the resource API, the fixed endpoints, the
 * routes of the program. Middleware added with `use` runs after them, for paths that none of them has.
 */
export function createKoaApplication(options: KoaApplicationOptions): Koa<KoaState> {
  const { pipeline, handleResource, router, logger, own, bodyBytes } = options;
  const { middleware = [], routes = [], state } = own;
  const app = new Koa<KoaState>();
  app.on('error', (err: unknown) => reportFailure(logger, err));
  app.use(async (ctx, next) => {
    const exchange = options.opened(ctx.req) ?? pipeline.open(ctx.req, ctx.res);
    ctx.state.exchange = exchange;
    await pipeline.run(exchange, async () => {
      if (exchange.attributes.isResourceRequest && middleware.length === 0) {
        await handleResource(exchange);
        return;
      }
      if (state)
        ctx.state = Object.assign(
          state(exchange, async () => readBody(exchange, bodyBytes)),
          { exchange },
        );
      // Koa cannot parse every request target in absolute form, so its URL is set from the parsed path and query.
      const { path, query } = exchange.attributes;
      if (!ctx.url.startsWith('/')) ctx.url = query.text === '' ? path : `${path}?${query.text}`;
      try {
        await next();
      } catch (error) {
        throw isHttpError(error) ? statusErrors.relayed(error.status, error.message) : error;
      }
      if (exchange.attributes.isResourceRequest && !exchange.answered)
        logger.warn('middleware answered a request of the resource API', { path: exchange.attributes.path });
      if (!exchange.answered && ctx.status === 404 && (ctx.body === undefined || ctx.body === null))
        sendNotFound(exchange);
    });
    // Koa must not respond when the exchange has already done so.
    if (exchange.answered || ctx.res.destroyed) ctx.respond = false;
  });
  if (middleware.length > 0) {
    for (const one of middleware) app.use(one);
    app.use((ctx, next) => {
      const { exchange } = ctx.state;
      if (!exchange.attributes.isResourceRequest) return next();
      if (ctx.req.readableDidRead && mayHaveBody(ctx.req))
        throw new Error('middleware has read the body of a request of the resource API');
      return handleResource(exchange);
    });
  }
  app.use((ctx, next) => {
    const { exchange } = ctx.state;
    const answer = router(exchange.attributes.path);
    if (answer === undefined) return next();
    if (ctx.method === 'GET' || ctx.method === 'HEAD') return answer(exchange);
    if (ctx.method !== 'OPTIONS') throw methodNotAllowed();
    ctx.set('Allow', 'HEAD, GET');
    ctx.body = '';
    return undefined;
  });
  for (const one of routes) {
    app.use(one.routes());
    app.use(one.allowedMethods());
  }
  return app;
}
