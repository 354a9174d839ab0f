import {
  type AdmissionPlugin,
  type AdmissionRequest,
  type ApiClient,
  type Authorizer,
  type FieldError,
  fieldError,
  type KindDefinition,
  type KubeObject,
  statusErrors,
} from '@keelson/core';
import type { Clock, Logger, Metrics, Service } from '@keelson/core/runtime';
import type { AdmissionExpression } from './expressions.ts';
import { isExempt } from './request-rules.ts';

/** Parts of the server on which admission by webhooks and by policies depends. */
export interface IndexedAdmissionOptions {
  readonly client: () => ApiClient;
  /** The kinds of the server. */
  readonly registry: () => { kinds(): readonly KindDefinition[]; readonly generation: number };
  /** Decides the authorization checks in expressions. */
  readonly authorizer: Authorizer;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** Admission that is configured by API objects: the plugins, and the service that caches these objects. */
export interface IndexedAdmission {
  readonly plugins: readonly AdmissionPlugin[];
  readonly service: Service;
}

/** Examines requests according to the API objects in an index. */
export interface Dispatcher extends Pick<AdmissionPlugin, 'mutate' | 'validate'> {
  readonly index: {
    start(): Promise<void>;
    /** True when all objects have been loaded once. */
    readonly synced: boolean;
    /** True when no object is configured, so that requests are not examined. */
    readonly empty: boolean;
  };
  stop(): Promise<void>;
}

interface IndexedPlugin {
  readonly serviceName: string;
  readonly pluginName: string;
  /** Creates the dispatcher. It calls `onChange` when its index has changed. */
  readonly dispatcher: (onChange: () => void) => Dispatcher;
  /** Returns false for requests that the configured objects never examine. */
  readonly handles?: (request: AdmissionRequest) => boolean;
}

/** A plugin that costs nothing while no object is configured, and the service that caches the objects. */
export function indexedPlugin({ serviceName, pluginName, dispatcher, handles = () => true }: IndexedPlugin): {
  readonly plugin: AdmissionPlugin;
  readonly service: Service;
} {
  let running: Dispatcher | undefined;
  const plugin: AdmissionPlugin & { idle: boolean } = {
    name: pluginName,
    idle: true,
    handles: (request) => {
      if (running === undefined) return false;
      plugin.idle = running.index.empty && running.index.synced;
      return !plugin.idle && !isExempt(request) && handles(request);
    },
    mutate: (request) => running?.mutate?.(request),
    validate: (request) => running?.validate?.(request),
  };
  const service: Service = {
    name: serviceName,
    start: async () => {
      running = dispatcher(() => {
        plugin.idle = false;
      });
      plugin.idle = false;
      await running.index.start();
    },
    stop: async () => {
      await running?.stop();
    },
  };
  return { plugin, service };
}

/** The expressions of an object with the paths of their fields. Each is compiled when `compile` is called. */
export type ExpressionsOf = (
  object: KubeObject,
) => readonly { readonly path: string; readonly source: string; readonly compile: () => AdmissionExpression }[];

/** Rejects writes of objects with expressions that cannot be evaluated. */
export function expressionCheck(name: string, resources: readonly string[], of: ExpressionsOf): AdmissionPlugin {
  return {
    name,
    resources: resources.map((resource) => `${resource}.admissionregistration.k8s.io`),
    handles: ({ operation, subresource, object }) =>
      operation !== 'delete' && subresource === undefined && object !== undefined,
    validate: ({ object, oldObject, kind, name }) => {
      // Expressions of the stored object remain accepted, so that other fields can be changed.
      const known = new Set(oldObject ? of(oldObject).map(({ source }) => source) : []);
      const errors: FieldError[] = [];
      for (const { path, source, compile } of object ? of(object) : []) {
        const problem = known.has(source) ? '' : compile().problem;
        if (problem !== '') errors.push(fieldError.invalid(path, source, problem));
      }
      if (errors.length > 0) throw statusErrors.invalid(kind, name, errors);
    },
  };
}
