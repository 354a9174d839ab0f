import { statusErrors } from '@keelson/core';
import type { Logger } from '@keelson/core/runtime';
import Koa from 'koa';
import type { Exchange } from '../exchange/exchange.ts';
import type { Handler, Pipeline } from '../exchange/pipeline.ts';
import { sendNotFound } from '../exchange/send.ts';
import type { EndpointRouter } from './endpoint-router.ts';

/** The state of the Koa context. */
export interface KoaState {
  /** The request after the filters: attributes, user, request id. */
  exchange: Exchange;
}

export type KoaApplication = Koa<KoaState>;

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

/**
 * The API as a Koa application: the filters, the resource API, the fixed endpoints. Middleware added with `use` runs
 * after the filters, for paths that are neither resource paths nor fixed endpoints.
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
      // Koa cannot parse every target in absolute form; the attributes contain its parts.
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
    // Koa must not respond when the exchange has already done so.
    if (exchange.answered || ctx.res.destroyed) ctx.respond = false;
  });
  app.use(router.routes());
  app.use(router.allowedMethods());
  return app;
}
