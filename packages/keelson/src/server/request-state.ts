import { createInProcessClient } from '@keelson/client';
import type { ApiClient, Authorizer, KindDefinition, KubeObject, ResourceClient, UserInfo } from '@keelson/core';
import type { ResourceRegistry } from '@keelson/core/internal';
import type { Clock, Logger, Metrics } from '@keelson/core/runtime';
import type { Exchange, OwnRoutes, RouteSource } from '@keelson/http-koa';
import { authorizedRegistry } from './authorized-registry.ts';
import { encryptionPath } from './encryption-endpoint.ts';

/** Access to a plane with all permissions. */
export interface PlaneAccess {
  /** Typed access to the objects of a kind. */
  client<T extends KubeObject>(kind: KindDefinition<T>): ResourceClient<T>;
  /** The API for any kind. */
  readonly api: ApiClient;
  /** The clock of all parts of the plane. */
  readonly clock: Clock;
  /** The logger of the plane's options; `child` adds fields to the entries of a part. */
  readonly logger: Logger;
  /** The metrics that `/metrics` reports; counters of the program can be added. */
  readonly metrics: Metrics;
}

/** What a user wants to do: a verb on a resource (`pods` of group ''), or on a path. */
export type AccessQuestion =
  | {
      readonly verb: string;
      /** API group. Default '', the core group. */
      readonly group?: string;
      /** Plural name of the resource: `pods`. */
      readonly resource: string;
      readonly subresource?: string;
      /** Namespace of the object. Absent: all namespaces, or a cluster-scoped resource. */
      readonly namespace?: string;
      readonly name?: string;
    }
  | { readonly verb: string; readonly path: string };

/** The middleware and the routes of the program, for `listen` and `handler`. */
export interface RouteOptions {
  /**
   * Koa middleware for every HTTP request that has been authenticated and authorized, those of the API included.
   * Resource requests bypass Koa when this list is empty.
   */
  readonly middleware?: OwnRoutes['middleware'];
  /** Routers of `@koa/router`; a route on a path of the API is an error at the start. */
  readonly routes?: readonly RouteSource[];
}

/** `ctx.state` of middleware and routes: `new Router<RequestState>()`. */
export interface RequestState {
  /** The authenticated or impersonated user. */
  readonly user: UserInfo;
  /** Asks the authorizer of the plane about the user. */
  can(question: AccessQuestion): Promise<boolean>;
  /** Typed access with the permissions of the user; a call that they do not allow fails with a StatusError 403. */
  client<T extends KubeObject>(kind: KindDefinition<T>): ResourceClient<T>;
  /** The API for any kind with the permissions of the user. */
  readonly api: ApiClient;
  /** The plane itself: its clients have all permissions. */
  readonly plane: PlaneAccess;
  /** Logger whose entries contain the id of the request and the name of the user. */
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly clock: Clock;
  /** The `Audit-Id` of the answer. */
  readonly requestId: string;
  /** Aborted when the client has disconnected or the request has timed out. */
  readonly signal: AbortSignal;
  /** The body of the request; rejects with a StatusError 413 above the limit of the API. */
  readBody(): Promise<Buffer>;
}

/** Dependencies of the states of all requests. */
export interface RequestStateOptions {
  readonly plane: PlaneAccess;
  readonly registry: ResourceRegistry;
  readonly authorizer: Authorizer;
}

function attributesOf(question: AccessQuestion) {
  const onPath = 'path' in question;
  const {
    group = '',
    resource = '',
    subresource = '',
    namespace = '',
    name = '',
  } = onPath
    ? {}
    : (question as {
        readonly [key: string]: string | undefined;
      });
  return {
    verb: question.verb,
    isResourceRequest: !onPath,
    apiGroup: group,
    apiVersion: '',
    path: onPath ? question.path : '',
    ...{ resource, subresource, namespace, name },
  };
}

/** Members that most requests do not use are created on first use. */
class State implements RequestState {
  readonly #exchange: Exchange;
  readonly #options: RequestStateOptions;
  readonly readBody: () => Promise<Buffer>;
  #api: ApiClient | undefined;
  #logger: Logger | undefined;

  constructor(exchange: Exchange, readBody: () => Promise<Buffer>, options: RequestStateOptions) {
    this.#exchange = exchange;
    this.#options = options;
    this.readBody = readBody;
  }

  get user(): UserInfo {
    return this.#exchange.user;
  }

  /** The returned function does not depend on its receiver, because middleware may destructure the state. */
  get can(): RequestState['can'] {
    const { user } = this;
    return async (question) => (await this.#options.authorizer.authorize(attributesOf(question), user)).allowed;
  }

  get api(): ApiClient {
    const { user, userAgent, warn } = this.#exchange;
    const { registry, plane } = this.#options;
    this.#api ??= createInProcessClient(registry, { user, userAgent, clock: plane.clock, onWarning: warn });
    return this.#api;
  }

  get client(): RequestState['client'] {
    return (kind) => this.api.resource(kind);
  }

  get plane(): PlaneAccess {
    return this.#options.plane;
  }

  get logger(): Logger {
    this.#logger ??= this.plane.logger.child({ requestId: this.requestId, user: this.user.name });
    return this.#logger;
  }

  get metrics(): Metrics {
    return this.plane.metrics;
  }

  get clock(): Clock {
    return this.plane.clock;
  }

  get requestId(): string {
    return this.#exchange.requestId;
  }

  get signal(): AbortSignal {
    return this.#exchange.signal;
  }
}

/** The part of the API's options that serves middleware and routes of the program. */
export function ownRoutes({ middleware = [], routes = [] }: RouteOptions, options: RequestStateOptions): OwnRoutes {
  const registry = authorizedRegistry(options.registry, options.authorizer);
  return {
    middleware,
    routes,
    reserved: [encryptionPath.split('/')[1] ?? ''],
    ...(middleware.length + routes.length > 0
      ? { state: (exchange, readBody) => new State(exchange, readBody, { ...options, registry }) }
      : {}),
  };
}
