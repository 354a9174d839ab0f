import { setImmediate } from 'node:timers/promises';
import { objectCodecOf } from '../codec/object-codec.ts';
import { type QualifiedResource, statusErrors } from '../errors/status-error.ts';
import { decoderOf } from '../kind/decoder.ts';
import type { KindDefinition, Verb } from '../kind/kind-definition.ts';
import type { StrategyContext } from '../kind/strategy.ts';
import type { SubresourceDefinition } from '../kind/subresource.ts';
import type { AuthenticateToken, Authorizer } from '../meta/authorizer.ts';
import type { RequestContext } from '../meta/request-context.ts';
import type { Status } from '../meta/status.ts';
import type { AnyObject } from '../meta/types.ts';
import { apiVersionOf, type GroupVersionResource, type KubeObject } from '../meta/types.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Logger } from '../runtime/logger.ts';
import type { ContinueTokens } from '../storage/continue-token.ts';
import type { ObjectCodec, ResourceStorage } from '../storage/resource-storage.ts';
import { kindPrefix, storageKindOf } from '../storage/storage-key.ts';
import type { Key } from '../storage/store.ts';
import { maxKeyBytes } from '../storage/store-helpers.ts';
import type { StoredObject } from '../storage/stored-object.ts';
import type { AdmissionChain } from './admission.ts';
import type { BodyType } from './decode-body.ts';
import { FieldTracking } from './field-tracking.ts';
import type { ObjectAllocator } from './object-allocator.ts';
import { servedValue, type Target } from './resource-service.ts';

/** Bodies and objects above this size are processed in several turns of the event loop. */
const largeBytes = 64 * 1024;

/**
 * Lets other requests run between two steps of a request whose body or object has this many bytes. Each step of the
 * largest permitted one takes less than 100 ms; docs/adr/0030 has the measurements. Undefined for small ones.
 */
export function nextTurn(bytes: number): Promise<void> | undefined {
  return bytes > largeBytes ? setImmediate() : undefined;
}

/** The options of a storage call: the signal of the request, if it has one. */
export function signalOption({ signal }: RequestContext): { readonly signal?: AbortSignal } {
  return signal === undefined ? {} : { signal };
}

/** A context that passes each distinct warning to `context` once, however many attempts an operation takes. */
export function warningOnce(context: RequestContext): RequestContext {
  return new DistinctWarnings(context);
}

/** Reads every property from the original context on demand, because some of them, such as the signal, are lazy. */
class DistinctWarnings implements RequestContext {
  readonly #context: RequestContext;
  #warn: ((text: string) => void) | undefined;

  constructor(context: RequestContext) {
    this.#context = context;
  }

  get user() {
    return this.#context.user;
  }

  get requestId() {
    return this.#context.requestId;
  }

  get userAgent() {
    return this.#context.userAgent;
  }

  get signal() {
    return this.#context.signal;
  }

  get authorize() {
    return this.#context.authorize;
  }

  get warn() {
    this.#warn ??= distinct(this.#context.warn);
    return this.#warn;
  }

  annotate(key: string, value: string): void {
    this.#context.annotate?.(key, value);
  }

  waited(ms: number): void {
    this.#context.waited?.(ms);
  }
}

function distinct(warn: (text: string) => void): (text: string) => void {
  const sent = new Set<string>();
  return (text) => {
    if (sent.has(text)) return;
    sent.add(text);
    warn(text);
  };
}

/** Makes a name from the value of generateName. */
export type NameGenerator = (base: string) => string;

/** Dependencies that the services of all kinds share. */
export interface RegistryServices {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly admission: AdmissionChain;
  readonly generateName: NameGenerator;
  /** Fill metadata.selfLink with the object's path, as servers up to 1.19 did. */
  readonly selfLinks: boolean;
  /** Whether a kind of this name is registered; error messages depend on it. */
  readonly isRegistered: (apiVersion: string, kind: string) => boolean;
  readonly kindOf: (apiVersion: string, kind: string) => KindDefinition | undefined;
  /** For kinds that report permissions, such as access reviews. The operations themselves authorize nothing. */
  readonly authorizer: Authorizer;
  readonly authenticateToken: AuthenticateToken | undefined;
  readonly allocatorOf: (kind: KindDefinition) => ObjectAllocator | undefined;
  /**
   * Reads an object of any kind, for connect subresources that depend on other objects. Undefined when it does not
   * exist.
   */
  readonly readObject: (
    context: RequestContext,
    resource: GroupVersionResource,
    name: string,
    namespace?: string,
  ) => Promise<KubeObject | undefined>;
  /**
   * Posts a body to a subresource of an object of any kind. Throws a StatusError, 404 where no such subresource is
   * served.
   */
  readonly createSubresource: (
    context: RequestContext,
    resource: GroupVersionResource,
    target: Target,
    subresource: string,
    body: KubeObject,
    dryRun: boolean,
  ) => Promise<KubeObject | Status>;
}

/** {@link RegistryServices} for a kind whose objects are stored. */
export interface StoredKindServices extends RegistryServices {
  readonly tokens: ContinueTokens;
}

/** The type of the request bodies of a kind. */
export function kindBodyType(kind: KindDefinition, isRegistered: BodyType['isRegistered']): BodyType {
  return {
    group: kind.group,
    kind: kind.kind,
    version: kind.version,
    apiVersion: kind.apiVersion,
    schema: kind.schema,
    // Compiled for the first body: controllers open every kind when a server starts, but few kinds are written then.
    decode: (input, options) => decoderOf(kind.schema)(input, options),
    isRegistered,
  };
}

/** The body type of a subresource whose bodies have a kind of their own. */
export function bodyTypeOf(
  binding: ResourceBinding,
  { bodyKind, schema }: Extract<SubresourceDefinition, { readonly bodyKind: unknown }>,
): BodyType {
  return {
    group: bodyKind.group,
    version: bodyKind.version,
    kind: bodyKind.kind,
    apiVersion: apiVersionOf(bodyKind),
    schema,
    decode: decoderOf(schema),
    isRegistered: binding.services.isRegistered,
  };
}

/** One kind in one version with its storage. Converts between the served and the stored version. */
export class ResourceBinding {
  readonly kind: KindDefinition;
  readonly storedKind: KindDefinition;
  readonly storage: ResourceStorage;
  /** Prefix of the keys of all objects. */
  readonly prefix: string;
  readonly services: StoredKindServices;
  /** Name of the resource in error messages. */
  readonly resource: QualifiedResource;
  readonly bodyType: BodyType;
  readonly allocator: ObjectAllocator | undefined;
  readonly fields: FieldTracking;
  readonly #codec: ObjectCodec;

  constructor(kind: KindDefinition, storage: ResourceStorage, services: StoredKindServices) {
    this.kind = kind;
    this.storedKind = storageKindOf(kind);
    this.storage = storage;
    this.prefix = kindPrefix(kind);
    this.services = services;
    this.resource = { group: kind.group, resource: kind.names.plural };
    this.bodyType = kindBodyType(kind, services.isRegistered);
    this.allocator = services.allocatorOf(kind);
    this.fields = new FieldTracking(kind, services);
    this.#codec = objectCodecOf(this.storedKind);
  }

  /** Prefix of the keys in one namespace, or of all when `namespace` is undefined. */
  collectionPrefix(namespace: string | undefined): string {
    return namespace === undefined ? this.prefix : `${this.prefix}${namespace}/`;
  }

  /** Storage key of one object: the key prefix of the kind, the namespace if the kind is namespaced, and the name. */
  keyOf(namespace: string | undefined, name: string): Key {
    return `${this.collectionPrefix(namespace)}${name}`;
  }

  /** A private copy of a stored object in the served version, with its resourceVersion. */
  read(stored: StoredObject): AnyObject {
    return servedValue(this.kind, stored) as AnyObject;
  }

  /** The bytes to store for an object of the served version. */
  encode(object: AnyObject): Buffer {
    return this.#codec.encode(this.kind.storage ? this.kind.storage.toStorage(object) : object);
  }

  /** @throws StatusError 405 when the kind does not offer the verb. */
  requireVerb(verb: Verb): void {
    if (!this.kind.verbs.includes(verb)) throw statusErrors.methodNotAllowed(this.resource, verb);
  }

  strategyContext(request: RequestContext): StrategyContext {
    return { request, now: new Date(this.services.clock.now()), warn: request.warn };
  }
}

/** The object that the path of a request addresses. */
export interface ObjectTarget {
  /** Undefined exactly for cluster-scoped kinds. */
  readonly namespace: string | undefined;
  readonly name: string;
  readonly key: Key;
}

/**
 * The namespace of an operation on one object; undefined for cluster-scoped kinds.
 *
 * @throws StatusError 400 when the kind is namespaced and the target has no namespace.
 */
export function requiredNamespace(kind: KindDefinition, target: Target): string | undefined {
  if (kind.scope === 'Cluster') return undefined;
  if (!target.namespace) throw statusErrors.badRequest('an object of this kind is named by its namespace and its name');
  return target.namespace;
}

/** The object that a request addresses. @throws StatusError 400 when the name or the namespace is missing. */
export function objectTarget(binding: ResourceBinding, target: Target): ObjectTarget {
  const namespace = requiredNamespace(binding.kind, target);
  const name = target.name ?? '';
  if (name === '') throw statusErrors.badRequest('name must be provided');
  return { namespace, name, key: binding.keyOf(namespace, name) };
}

/** Storage prefix of the collection that a request addresses; without a namespace it covers all namespaces. */
export function targetPrefix(binding: ResourceBinding, target: Target): string {
  return binding.collectionPrefix(binding.kind.scope === 'Cluster' ? undefined : target.namespace || undefined);
}

function isSegment(text: string): boolean {
  return text !== '' && !text.includes('/') && !text.includes('\0');
}

/**
 * False for names under which nothing can be stored. Operations answer them without a call of the storage, because a
 * slash in a name would address another namespace.
 */
export function isStorable(target: ObjectTarget): boolean {
  return (
    isSegment(target.name) &&
    (target.namespace === undefined || isSegment(target.namespace)) &&
    Buffer.byteLength(target.key) <= maxKeyBytes
  );
}
