import type { Logger } from '@keelson/core';
import Koa from 'koa';
import { sendNotFound } from '../answer/send.ts';
import type { Exchange } from '../exchange.ts';
import type { Handler, Pipeline } from '../pipeline.ts';
import type { EndpointRouter } from './endpoint-router.ts';

/** What middleware finds in `ctx.state`. */
export interface KoaState {
  /** The request as the filters have seen it: attributes, user, request id. */
  exchange: Exchange;
}

export type KoaApplication = Koa<KoaState>;

/**
 * The API as a Koa application: the filters, the resource API, the fixed endpoints. Middleware added with `use` runs behind the filters, for
 * paths outside the resource grammar that no fixed endpoint takes.
 */
export function createKoaApplication(
  pipeline: Pipeline,
  handleResource: Handler,
  router: EndpointRouter,
  logger: Logger,
): KoaApplication {
  const app: KoaApplication = new Koa<KoaState>();
  app.on('error', (err: unknown) => logger.error('koa middleware failed', { err }));
  app.use(async (ctx, next) => {
    const exchange = pipeline.open(ctx.req, ctx.res);
    ctx.state.exchange = exchange;
    await pipeline.run(exchange, async () => {
      if (exchange.attributes.isResourceRequest) {
        await handleResource(exchange);
        return;
      }
      await next();
      if (!exchange.answered && ctx.status === 404 && (ctx.body === undefined || ctx.body === null)) sendNotFound(exchange);
    });
    // Who answered through the exchange has written to the response itself.
    if (exchange.answered || ctx.res.destroyed) ctx.respond = false;
  });
  app.use(router.routes());
  app.use(router.allowedMethods());
  return app;
}
