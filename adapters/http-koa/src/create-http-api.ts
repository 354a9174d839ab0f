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
import { ConnectHandler } from './connect/connect-handler.ts';
import { answerOn, driveAnswer, serveWithoutUpgrade } from './connect/upgrade-requests.ts';
import { ApiDocuments, issuerPaths } from './endpoints/api-documents.ts';
import { createEndpointRouter, versionDocument } from './endpoints/endpoint-router.ts';
import { Health } from './endpoints/health.ts';
import { createKoaApplication } from './endpoints/koa-application.ts';
import { checkRoutes } from './endpoints/own-routes.ts';
import type { Exchange } from './exchange/exchange.ts';
import type { KoaApplication } from './exchange/koa-types.ts';
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
import { ResourceHandler, Routes } from './resource/resource-handler.ts';
import { WatchHandler } from './watch/watch-handler.ts';

/** The resource API as a listener for any HTTP server. */
export interface HttpApi {
  /**
   * Handles every request. Without middleware, requests of the resource API bypass Koa (docs/adr/0005). All others are
   * passed to `app`, which has the same filters.
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
  /** The same API as a Koa application, to mount it or to add endpoints. */
  readonly app: KoaApplication;
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
  /** The exchanges of resource requests that the listener passes through the middleware. */
  const opened = new WeakMap<IncomingMessage, Exchange>();
  const app = createKoaApplication({
    ...{ pipeline, handleResource: resources.handle, router, logger, own },
    bodyBytes: limits.bodyBytes,
    opened: (request) => opened.get(request),
  });
  let koa = app.callback();
  let composed = app.middleware.length;
  /** Middleware may be added at any time, but Koa composes it only when it creates a listener. */
  const throughKoa = (request: IncomingMessage, response: ServerResponse): void => {
    if (app.middleware.length !== composed) {
      composed = app.middleware.length;
      koa = app.callback();
    }
    void koa(request, response);
  };
  const throughMiddleware = own.middleware?.length
    ? (exchange: Exchange) => {
        opened.set(exchange.request, exchange);
        throughKoa(exchange.request, exchange.response);
      }
    : undefined;
  const upgrade = (request: IncomingMessage, socket: Socket, head: Buffer): boolean => {
    const asked = { socket, head };
    const response = answerOn(request, asked);
    // The connection has been destroyed.
    if (response === undefined) return true;
    const exchange = pipeline.open(request, response);
    const { attributes } = exchange;
    const upgrades =
      routes.connectOf(attributes)?.upgrades || (attributes.isResourceRequest && isAggregated(attributes));
    if (upgrades && !mayHaveBody(request)) {
      driveAnswer(response, asked);
      exchange.upgrade = asked;
      void pipeline.run(exchange, resources.handle);
      return true;
    }
    response.detachSocket(socket);
    return false;
  };
  return {
    listener: pipeline.listener(resources.handle, throughKoa, throughMiddleware),
    upgrade,
    acceptUpgrades: (server) => {
      server.on('upgrade', (request: IncomingMessage, stream, head: Buffer) => {
        const socket = stream as Socket;
        if (!upgrade(request, socket, head)) serveWithoutUpgrade(server, request, { socket, head });
      });
    },
    app,
    drain: () => {
      watches.drain();
      connects.drain();
      const idle = pipeline.drain();
      return idle;
    },
  };
}
