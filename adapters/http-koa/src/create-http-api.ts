import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import {
  defaultBrand,
  pickBudgets,
  protobufForms,
  Representations,
  type RequestAttributes,
  reportBudgets,
} from '@keelson/core/internal';
import { declineUpgradesWithBody } from '@keelson/core/runtime';
import { ConnectHandler } from './connect/connect-handler.ts';
import { answerOn, driveAnswer, serveWithoutUpgrade } from './connect/upgrade-requests.ts';
import { ApiDocuments, issuerPaths } from './endpoints/api-documents.ts';
import { createEndpointRouter, versionDocument } from './endpoints/endpoint-router.ts';
import { Health } from './endpoints/health.ts';
import { KoaApplication } from './endpoints/koa-application.ts';
import { checkRoutes } from './endpoints/own-routes.ts';
import type { Exchange } from './exchange/exchange.ts';
import type { KoaMiddleware } from './exchange/koa-types.ts';
import { ListMemory } from './exchange/list-body.ts';
import { HttpMetrics } from './exchange/metrics.ts';
import {
  defaultHttpBudgets,
  defaultLimits,
  type HealthCheck,
  type HttpApiOptions,
  type HttpLimits,
} from './exchange/options.ts';
import { Pipeline } from './exchange/pipeline.ts';
import { mayHaveBody } from './exchange/request-body.ts';
import { sendNotFound } from './exchange/send.ts';
import { asksForWebSocket } from './exchange/web-socket.ts';
import { ResourceHandler, Routes } from './resource/resource-handler.ts';
import { WatchHandler } from './watch/watch-handler.ts';

/** The resource API as a listener for any HTTP server. */
export interface HttpApi {
  /**
   * Handles every request. Koa handles those of the resource API when there is middleware, and all others when there is
   * middleware, a route, or middleware added with `use` (docs/adr/0005). The filters are the same.
   */
  readonly listener: (request: IncomingMessage, response: ServerResponse) => void;
  /**
   * Handles the requests of a server that ask to upgrade the connection, such as those for a shell in a container. They
   * pass the same filters as other requests. A request whose target does not offer an upgrade is served over HTTP.
   * When this method is not called, every such request is.
   */
  acceptUpgrades(server: Server): void;
  /**
   * Handles one request that asks to upgrade the connection. Returns false, and has done nothing, when the request is
   * to be served over HTTP.
   */
  upgrade(request: IncomingMessage, socket: Socket, head: Buffer): boolean;
  /** Adds Koa middleware for the paths that the API does not have. It runs after the filters. */
  use(middleware: KoaMiddleware): void;
  /**
   * Takes the API out of service: new requests get 503, watches end cleanly, `/readyz` fails. Resolves when every
   * running request is answered.
   */
  drain(): Promise<void>;
}

/** Creates the API of a registry. Opens no port and starts no timer. */
export function createHttpApi(options: HttpApiOptions): HttpApi {
  const limits: HttpLimits = { ...defaultLimits, ...options.limits };
  const budgets = pickBudgets(defaultHttpBudgets, options.budgets);
  reportBudgets(options.metrics, budgets);
  const brand = options.brand ?? defaultBrand;
  const logger = options.logger.child({ component: 'http' });
  const httpMetrics = new HttpMetrics(options.metrics);
  const watches = new WatchHandler({ clock: options.clock, metrics: httpMetrics, limits });
  const routes = new Routes(
    options.registry,
    new Representations({
      clock: options.clock,
      brand,
      builders: [protobufForms(brand), ...(options.formBuilders ?? [])],
      recentBodiesBytes: budgets.recentBodiesBytes,
    }),
  );
  const pipeline = new Pipeline(options, limits, httpMetrics, routes.connectOf);
  options.metrics.beforeRead?.(() => httpMetrics.flush(pipeline.levels));
  const connects = new ConnectHandler({ clock: options.clock, limits, dialer: options.nodeDialer });
  const { aggregated } = options;
  const resources = new ResourceHandler({
    routes,
    watches,
    connects,
    aggregated,
    limits,
    clock: options.clock,
    brand,
    memory: new ListMemory(budgets),
  });
  const shutdown: HealthCheck = { name: 'shutdown', check: () => !pipeline.draining, on: ['readyz'] };
  const router = createEndpointRouter({
    documents: new ApiDocuments({
      registry: options.registry,
      clock: options.clock,
      serverAddress: options.serverAddress,
      version: options.version.gitVersion,
      gzipBytes: limits.gzipBytes,
      brand,
      morePaths: options.issuerDocuments ? issuerPaths : [],
      prefix: options.prefix ?? '',
      aggregated: options.aggregated,
      forward: (exchange, server) => connects.forward(exchange, server),
    }),
    health: new Health([...(options.checks ?? []), shutdown], logger),
    version: versionDocument(options.version),
    metrics: options.metrics,
    httpMetrics,
    levels: () => pipeline.levels,
    issuerDocuments: options.issuerDocuments,
  });
  const isAggregated = ({ apiGroup, apiVersion }: RequestAttributes) =>
    aggregated?.find(apiGroup, apiVersion) !== undefined;
  const own = options.own ?? {};
  if (own.routes?.length) checkRoutes(own, options.registry);
  const koa = new KoaApplication({
    ...{ pipeline, handleResource: resources.handle, router, logger, own },
    bodyBytes: limits.bodyBytes,
  });
  const handleEndpoint = (exchange: Exchange) => {
    const answer = router(exchange.attributes.path);
    return answer === undefined ? sendNotFound(exchange) : answer(exchange);
  };
  const handleOther = (request: IncomingMessage, response: ServerResponse): void => {
    if (koa.isNeeded) void koa.handle(request, response);
    else void pipeline.run(pipeline.open(request, response), handleEndpoint);
  };
  const throughMiddleware = own.middleware?.length ? koa.handleOpened.bind(koa) : undefined;
  const upgrade = (request: IncomingMessage, socket: Socket, head: Buffer): boolean => {
    const asked = { socket, head };
    const response = answerOn(request, asked);
    // The connection has been destroyed.
    if (response === undefined) return true;
    const exchange = pipeline.open(request, response);
    const { attributes } = exchange;
    const connect = routes.connectOf(attributes);
    const forwards = connect?.upgrades || (attributes.isResourceRequest && isAggregated(attributes));
    const streams = asksForWebSocket(request) && (connect !== undefined || attributes.verb === 'watch');
    if ((forwards || streams) && !mayHaveBody(request)) {
      driveAnswer(response, asked);
      if (forwards) exchange.upgrade = asked;
      else exchange.webSocket = asked;
      void pipeline.run(exchange, resources.handle);
      return true;
    }
    response.detachSocket(socket);
    return false;
  };
  return {
    listener: pipeline.listener(resources.handle, handleOther, throughMiddleware),
    upgrade,
    acceptUpgrades: (server) => {
      declineUpgradesWithBody(server);
      server.on('upgrade', (request: IncomingMessage, stream, head: Buffer) => {
        const socket = stream as Socket;
        if (!upgrade(request, socket, head)) serveWithoutUpgrade(server, request, { socket, head });
      });
    },
    use: (middleware) => koa.use(middleware),
    drain: () => {
      watches.drain();
      connects.drain();
      const idle = pipeline.drain();
      return idle;
    },
  };
}
