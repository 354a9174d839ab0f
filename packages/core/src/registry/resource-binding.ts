import { objectCodecOf } from '../codec/object-codec.ts';
import type { QualifiedResource } from '../errors/status-error.ts';
import { statusErrors } from '../errors/status-error.ts';
import { decoderOf } from '../kind/decoder.ts';
import type { KindDefinition, Verb } from '../kind/kind-definition.ts';
import type { StrategyContext } from '../kind/strategy.ts';
import type { AuthenticateToken, Authorizer } from '../meta/authorizer.ts';
import type { RequestContext } from '../meta/request-context.ts';
import type { Status } from '../meta/status.ts';
import type { GroupVersionResource, KubeObject } from '../meta/types.ts';
import type { Clock } from '../runtime/clock.ts';
import { storageKindOf } from '../scope/storage-key.ts';
import type { ContinueTokens } from '../storage/continue-token.ts';
import type { ObjectCodec, ResourceStorage } from '../storage/resource-storage.ts';
import type { StoredObject } from '../storage/stored-object.ts';
import type { AdmissionChain } from './admission-chain.ts';
import { servedValue } from './answer-value.ts';
import type { BodyType } from './decode-body.ts';
import type { AnyObject } from './json-values.ts';
import type { NameGenerator } from './name-generator.ts';
import type { Target } from './resource-service.ts';

/** What the services of all kinds share. */
export interface RegistryServices {
  readonly clock: Clock;
  readonly admission: AdmissionChain;
  readonly generateName: NameGenerator;
  /** Fill metadata.selfLink with the object's path, as servers up to 1.19 did. */
  readonly selfLinks: boolean;
  /** Whether any registered kind has this name, for the words of a refusal. */
  readonly isRegistered: (apiVersion: string, kind: string) => boolean;
  /** Asked by kinds that tell about permissions; the operations themselves trust their caller. */
  readonly authorizer: Authorizer;
  readonly authenticateToken: AuthenticateToken | undefined;
  /** A stored object of any kind, for connect subresources that lead by way of others; undefined when there is none. */
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

/** The same for kinds whose objects are stored. */
export interface StoredKindServices extends RegistryServices {
  readonly tokens: ContinueTokens;
}

/** What the bodies of requests about a kind are. */
export function kindBodyType(kind: KindDefinition, isRegistered: BodyType['isRegistered']): BodyType {
  return {
    group: kind.group,
    kind: kind.kind,
    version: kind.version,
    apiVersion: kind.apiVersion,
    schema: kind.schema,
    // Compiled with the first body: the controllers touch every kind when a server starts, and few kinds are written at
    // once.
    decode: (input) => decoderOf(kind.schema)(input),
    isRegistered,
  };
}

/**
 * One kind in one version, bound to its storage: what every operation on it needs. Crosses between served and stored
 * form.
 */
export class ResourceBinding {
  readonly kind: KindDefinition;
  readonly storedKind: KindDefinition;
  readonly storage: ResourceStorage;
  readonly services: StoredKindServices;
  /** How failures name the resource. */
  readonly resource: QualifiedResource;
  readonly bodyType: BodyType;
  readonly #codec: ObjectCodec;

  constructor(kind: KindDefinition, storage: ResourceStorage, services: StoredKindServices) {
    this.kind = kind;
    this.storedKind = storageKindOf(kind);
    this.storage = storage;
    this.services = services;
    this.resource = { group: kind.group, resource: kind.names.plural };
    this.bodyType = kindBodyType(kind, services.isRegistered);
    this.#codec = objectCodecOf(this.storedKind);
  }

  /** A private parse of a stored object in the served version, resourceVersion included. */
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
