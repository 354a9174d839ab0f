import type { IncomingMessage, ServerResponse } from 'node:http';
import { statusErrors } from '@keelson/core';
import type { Logger } from '@keelson/core/runtime';
import type Koa from 'koa';
import type { Exchange } from '../exchange/exchange.ts';
import type { KoaMiddleware, KoaState } from '../exchange/koa-types.ts';
import type { OwnRoutes } from '../exchange/options.ts';
import type { Handler, Pipeline } from '../exchange/pipeline.ts';
import { mayHaveBody, readBody } from '../exchange/request-body.ts';
import { sendNotFound } from '../exchange/send.ts';
import type { EndpointRouter } from './endpoint-router.ts';

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
}

/**
 * The API as a Koa application: the filters, the middleware of the program, the resource API, the fixed endpoints, the
 * routes of the program, middleware added with `use`. Koa is loaded when a request needs it: an API without any of the
 * program's own does not, and loading it takes a tenth of the time until a server responds.
 */
export class KoaApplication {
  readonly #options: KoaApplicationOptions;
  /** The exchanges of resource requests that the listener passes through the middleware. */
  readonly #opened = new WeakMap<IncomingMessage, Exchange>();
  readonly #added: KoaMiddleware[] = [];
  /** Undefined until Koa is loaded, and after each added middleware, which a composed listener would ignore. */
  #listener: ((request: IncomingMessage, response: ServerResponse) => Promise<void>) | undefined;

  constructor(options: KoaApplicationOptions) {
    this.#options = options;
  }

  /** False while there is nothing that only Koa can run. */
  get isNeeded(): boolean {
    const { middleware = [], routes = [] } = this.#options.own;
    return middleware.length + routes.length + this.#added.length > 0;
  }

  use(middleware: KoaMiddleware): void {
    this.#added.push(middleware);
    this.#listener = undefined;
  }

  /** Handles a request for which the filters have not run yet. */
  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      if (this.#listener === undefined) {
        const { default: Application } = await import('koa');
        this.#listener ??= this.#compose(Application);
      }
      await this.#listener(request, response);
    } catch (err) {
      reportFailure(this.#options.logger, err);
      response.destroy();
    }
  }

  /** Handles a request whose exchange exists. */
  handleOpened(exchange: Exchange): void {
    this.#opened.set(exchange.request, exchange);
    void this.handle(exchange.request, exchange.response);
  }

  #compose(Application: typeof Koa): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
    const { pipeline, handleResource, router, logger, own, bodyBytes } = this.#options;
    const { middleware = [], routes = [], state } = own;
    const app = new Application<KoaState>();
    app.on('error', (err: unknown) => reportFailure(logger, err));
    app.use(async (ctx, next) => {
      const exchange = this.#opened.get(ctx.req) ?? pipeline.open(ctx.req, ctx.res);
      ctx.state.exchange = exchange;
      await pipeline.run(exchange, async () => {
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
    for (const one of middleware) app.use(one);
    app.use((ctx, next) => {
      const { exchange } = ctx.state;
      if (exchange.attributes.isResourceRequest) {
        if (ctx.req.readableDidRead && mayHaveBody(ctx.req))
          throw new Error('middleware has read the body of a request of the resource API');
        return handleResource(exchange);
      }
      const answer = router(exchange.attributes.path);
      return answer === undefined ? next() : answer(exchange);
    });
    for (const one of routes) {
      app.use(one.routes());
      app.use(one.allowedMethods());
    }
    for (const one of this.#added) app.use(one);
    return app.callback();
  }
}
