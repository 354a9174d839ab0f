import { type Logger, statusErrors } from '@keelson/core';
import Koa from 'koa';
import type { Exchange } from '../exchange/exchange.ts';
import type { Handler, Pipeline } from '../exchange/pipeline.ts';
import { sendNotFound } from '../exchange/send.ts';
import type { EndpointRouter } from './endpoint-router.ts';

/** What middleware finds in `ctx.state`. */
export interface KoaState {
  /** The request as the filters have seen it: attributes, user, request id. */
  exchange: Exchange;
}

export type KoaApplication = Koa<KoaState>;

const clientFaults = /^(?:HPE_.*|ECONNRESET|ECONNABORTED|EPIPE|ETIMEDOUT|ERR_STREAM_PREMATURE_CLOSE|ERR_HTTP2_.*)$/;

/**
 * Koa reports what happens to a connection until its answer is sent, such as a malformed second request. Clients cause
 * that at will, and the error holds what they sent.
 */
function reportFailure(logger: Logger, err: unknown): void {
  const code = err instanceof Error && 'code' in err ? String(err.code) : '';
  if (clientFaults.test(code)) logger.debug('the connection of a client failed', { code });
  else logger.error('koa middleware failed', { err });
}

/** What `ctx.throw` of a middleware throws, when the client may see its message. */
function isHttpError(error: unknown): error is Error & { readonly status: number } {
  return error instanceof Error && 'expose' in error && error.expose === true && 'status' in error;
}

/**
 * The API as a Koa application: the filters, the resource API, the fixed endpoints. Middleware added with `use` runs
 * behind the filters, for paths outside the resource grammar that no fixed endpoint takes.
 */
export function createKoaApplication(
  pipeline: Pipeline,
  handleResource: Handler,
  router: EndpointRouter,
  logger: Logger,
): KoaApplication {
  const app: KoaApplication = new Koa<KoaState>();
  app.on('error', (err: unknown) => reportFailure(logger, err));
  app.use(async (ctx, next) => {
    const exchange = pipeline.open(ctx.req, ctx.res);
    ctx.state.exchange = exchange;
    await pipeline.run(exchange, async () => {
      if (exchange.attributes.isResourceRequest) {
        await handleResource(exchange);
        return;
      }
      // Koa cannot read every target in absolute form, which the attributes have taken apart already.
      const { path, query } = exchange.attributes;
      if (!ctx.url.startsWith('/')) ctx.url = query.text === '' ? path : `${path}?${query.text}`;
      try {
        await next();
      } catch (error) {
        throw isHttpError(error) ? statusErrors.relayed(error.status, error.message) : error;
      }
      if (!exchange.answered && ctx.status === 404 && (ctx.body === undefined || ctx.body === null))
        sendNotFound(exchange);
    });
    // Who answered through the exchange has written to the response itself.
    if (exchange.answered || ctx.res.destroyed) ctx.respond = false;
  });
  app.use(router.routes());
  app.use(router.allowedMethods());
  return app;
}
