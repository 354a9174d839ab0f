import { isStatusError, statusErrors } from '../errors/status-error.ts';
import type { KindDefinition, Verb } from '../kind/kind-definition.ts';
import { type AuthenticateToken, type Authorizer, mastersAuthorizer } from '../meta/authorizer.ts';
import type { RequestContext } from '../meta/request-context.ts';
import { StatusReason } from '../meta/status.ts';
import { apiVersionOf, type GroupVersionResource, type KubeObject } from '../meta/types.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Logger } from '../runtime/logger.ts';
import type { ContinueTokens } from '../storage/continue-token.ts';
import type { ResourceStorages } from '../storage/resource-storages.ts';
import { storageKindOf, storedFieldOf } from '../storage/storage-key.ts';
import { AdmissionChain, type AdmissionPlugin } from './admission.ts';
import { ComputedStorage, noTokens } from './computed-storage.ts';
import { ConnectOperation } from './connect-operation.ts';
import { CreateOperation, randomName } from './create-operation.ts';
import { DeleteOperations } from './delete-operations.ts';
import type { ObjectAllocator } from './object-allocator.ts';
import { ObjectWriter } from './object-writer.ts';
import { ReadOperations } from './read-operations.ts';
import { type NameGenerator, type RegistryServices, ResourceBinding } from './resource-binding.ts';
import {
  answerValue,
  type ResourceRegistry,
  type ResourceService,
  type ServedKind,
  type Target,
} from './resource-service.ts';
import { SubresourceOperations } from './subresource-operations.ts';
import { translateError } from './translate-error.ts';
import { UpdateOperations } from './update-operations.ts';
import { VirtualResourceService } from './virtual-resource-service.ts';

/** Dependencies and settings of a registry. */
export interface RegistryOptions {
  readonly storages: ResourceStorages;
  /** Continue tokens for all kinds, or a function that gives the tokens of a kind's store. */
  readonly tokens: ContinueTokens | ((kind: KindDefinition) => ContinueTokens);
  readonly clock: Clock;
  readonly logger: Logger;
  /** Admission plugins in the order of execution. */
  readonly admission: readonly AdmissionPlugin[];
  /** Kinds in the order of discovery; more may be added later. */
  readonly kinds: readonly KindDefinition[];
  /**
   * Sets metadata.selfLink to the path of the object, as servers up to 1.19 did; default false. For kinds that share
   * storage it is the path in the storage version. An object keeps its selfLink until its next write when the option is
   * changed.
   */
  readonly selfLinks?: boolean;
  /**
   * Authorizer of access reviews; it should be the one that the transport uses. Default: only members of
   * `system:masters` are allowed.
   */
  readonly authorizer?: Authorizer;
  /** Authenticates the tokens of token reviews. Default: no token is valid. */
  readonly authenticateToken?: AuthenticateToken;
  /** The allocator of the values that objects of a kind need, such as addresses; undefined for kinds without one. */
  readonly allocatorOf?: (kind: KindDefinition) => ObjectAllocator | undefined;
  /** Completes generateName; default: five random characters. */
  readonly generateName?: NameGenerator;
}

/** A kind and its service, which is created by the first `find`. */
interface Registered extends ServedKind {
  service?: ResourceService;
}

function resourceId(group: string, version: string, resource: string): string {
  return `${group}/${version}/${resource}`;
}

function kindId(kind: KindDefinition): string {
  return resourceId(kind.group, kind.version, kind.names.plural);
}

/**
 * Selectable fields are read from the storage version, once for all kinds that share storage.
 *
 * @throws Error when the storage version lacks a selectable field.
 */
function checkSelectableFields(kind: KindDefinition): void {
  const stored = storageKindOf(kind);
  for (const field of kind.selectableFields.keys()) {
    const storedField = storedFieldOf(kind, field);
    if (!stored.selectableFields.has(storedField)) {
      throw new Error(
        `kind ${kind.kind} of ${kind.apiVersion}: the selectable field ${storedField} is missing in its storage version`,
      );
    }
  }
}

class KindRegistry implements ResourceRegistry {
  readonly #storages: ResourceStorages;
  readonly #services: RegistryServices;
  readonly #tokens: RegistryOptions['tokens'];
  readonly #logger: Logger;
  readonly #byResource = new Map<string, Registered>();
  readonly #byKind = new Map<string, KindDefinition>();
  #kinds: readonly KindDefinition[] = [];
  #generation = 0;

  constructor(options: RegistryOptions) {
    this.#storages = options.storages;
    this.#tokens = options.tokens;
    this.#logger = options.logger.child({ component: 'registry' });
    this.#services = {
      logger: this.#logger,
      clock: options.clock,
      admission: new AdmissionChain(options.admission),
      generateName: options.generateName ?? randomName,
      selfLinks: options.selfLinks ?? false,
      authorizer: options.authorizer ?? mastersAuthorizer,
      authenticateToken: options.authenticateToken,
      allocatorOf: (kind) => options.allocatorOf?.(kind),
      readObject: (...call) => this.#readObject(...call),
      createSubresource: (...call) => this.#createSubresource(...call),
      isRegistered: (apiVersion, kind) => this.#byKind.has(`${apiVersion}/${kind}`),
      kindOf: (apiVersion, kind) => this.#byKind.get(`${apiVersion}/${kind}`),
    };
    for (const kind of options.kinds) this.add(kind);
  }

  kinds(): readonly KindDefinition[] {
    return this.#kinds;
  }

  get generation(): number {
    return this.#generation;
  }

  find(resource: GroupVersionResource): ResourceService | undefined {
    const registered = this.#byResource.get(resourceId(resource.group, resource.version, resource.resource));
    if (registered === undefined) return undefined;
    registered.service ??= this.#serviceOf(registered);
    return registered.service;
  }

  async #readObject(...[context, resource, name, namespace]: Parameters<RegistryServices['readObject']>) {
    const service = this.find(resource);
    const target = { name, ...(namespace === undefined ? {} : { namespace }) };
    try {
      const answer = await service?.get(context, target, { export: false, exact: false, resourceVersion: '' });
      return answer && (answerValue(answer) as KubeObject);
    } catch (error) {
      if (isStatusError(error, StatusReason.NotFound)) return undefined;
      throw error;
    }
  }

  async #createSubresource(...call: Parameters<RegistryServices['createSubresource']>) {
    const [context, resource, target, name, body, dryRun] = call;
    const service = this.find(resource);
    const subresource = service?.kind.subresources.find((entry) => entry.name === name);
    if (service === undefined || subresource === undefined)
      throw statusErrors.notFound(resource, `${target.name}/${name}`);
    const bytes = Buffer.from(JSON.stringify(body));
    const parameters = { dryRun, fieldValidation: 'Ignore' } as const;
    return answerValue(
      await service.createSubresource(context, target, subresource, { bytes, format: 'json' }, parameters),
    );
  }

  #serviceOf({ kind, storage: given }: ServedKind): ResourceService {
    const { create, read } = kind.virtual ?? {};
    if (create) return new VirtualResourceService(kind, create, this.#services);
    const storage = given ?? (read ? new ComputedStorage(kind, read) : this.#storages.forKind(kind));
    // Computed lists have one page, so that no token is needed.
    const tokens = typeof this.#tokens !== 'function' ? this.#tokens : read ? noTokens : this.#tokens(kind);
    return createKindService(new ResourceBinding(kind, storage, { ...this.#services, tokens }));
  }

  add(kind: KindDefinition): void {
    this.replace([], [{ kind }]);
  }

  remove(kind: KindDefinition): void {
    this.replace([kind], []);
  }

  replace(removed: readonly KindDefinition[], added: readonly ServedKind[]): void {
    const old = new Map<string, Registered>();
    for (const kind of removed) {
      const id = kindId(kind);
      const registered = this.#byResource.get(id);
      if (registered?.kind === kind) old.set(id, registered);
    }
    if (old.size === 0 && added.length === 0) return;
    for (const [index, { kind }] of added.entries()) {
      const id = kindId(kind);
      if ((this.#byResource.has(id) && !old.has(id)) || added.findIndex((other) => kindId(other.kind) === id) < index)
        throw new Error(`the resource ${kind.names.plural} of ${apiVersionOf(kind)} is registered already`);
      checkSelectableFields(kind);
    }
    const gone = new Set([...old.values()].map(({ kind }) => kind));
    const first = this.#kinds.findIndex((kind) => gone.has(kind));
    const place = first === -1 ? this.#kinds.length : first;
    const kinds = added.map(({ kind }) => kind);
    const others = this.#kinds.filter((kind) => !gone.has(kind));
    this.#kinds = [...others.slice(0, place), ...kinds, ...others.slice(place)];
    for (const [id, { kind }] of old) {
      this.#byResource.delete(id);
      this.#byKind.delete(`${kind.apiVersion}/${kind.kind}`);
    }
    for (const served of added) {
      const id = kindId(served.kind);
      const known = old.get(id);
      this.#byResource.set(id, known?.kind === served.kind && known.storage === served.storage ? known : { ...served });
      this.#byKind.set(`${served.kind.apiVersion}/${served.kind.kind}`, served.kind);
    }
    this.#generation++;
    const names = (list: Iterable<KindDefinition>) => [...list].map((kind) => `${kind.apiVersion} ${kind.kind}`);
    this.#logger.debug('served kinds changed', { removed: names(gone), added: names(kinds) });
  }
}

/**
 * Creates the registry of a server: its kinds and the service of each.
 *
 * @throws Error when two kinds have the same group, version and resource.
 */
export function createResourceRegistry(options: RegistryOptions): ResourceRegistry {
  return new KindRegistry(options);
}

/** The service of a kind whose objects are stored. Every error of an operation becomes a StatusError. */
export function createKindService(binding: ResourceBinding): ResourceService {
  const reads = new ReadOperations(binding);
  const writer = new ObjectWriter(binding);
  const updates = new UpdateOperations(binding, writer);
  const deletes = new DeleteOperations(binding, reads);
  const creates = new CreateOperation(binding);
  const subresources = new SubresourceOperations(binding, { reads, writer, updates, deletes });
  const connects = new ConnectOperation(binding, reads);

  /** Adds the translation of errors to an operation; `revisionOf` gives the resourceVersion in its parameters. */
  function operation<Rest extends unknown[], Result>(
    verb: Verb,
    run: (context: RequestContext, target: Target, ...rest: Rest) => Promise<Result>,
    revisionOf?: (...rest: Rest) => string,
  ): (context: RequestContext, target: Target, ...rest: Rest) => Promise<Result> {
    return async (context, target, ...rest) => {
      try {
        return await run(context, target, ...rest);
      } catch (error) {
        const revision = revisionOf?.(...rest) ?? '';
        const operated = {
          verb,
          resource: binding.resource,
          name: target.name ?? '',
          ...(revision === '' ? {} : { revision: Number(revision) }),
          ...(context.signal ? { signal: context.signal } : {}),
        };
        throw translateError(error, operated, binding.services.logger);
      }
    };
  }

  return {
    kind: binding.kind,
    create: operation('create', (...call) => creates.run(...call)),
    get: operation(
      'get',
      (...call) => reads.get(...call),
      ({ resourceVersion }) => resourceVersion,
    ),
    list: operation(
      'list',
      (...call) => reads.list(...call),
      ({ resourceVersion }) => resourceVersion,
    ),
    watch: operation(
      'watch',
      (...call) => reads.watch(...call),
      ({ resourceVersion }) => resourceVersion,
    ),
    update: operation('update', (context, target, body, parameters) =>
      updates.update(context, target, body, parameters),
    ),
    patch: operation('patch', (context, target, patch, parameters) =>
      updates.patch(context, target, patch, parameters),
    ),
    delete: operation('delete', (...call) => deletes.delete(...call)),
    deleteCollection: operation(
      'deletecollection',
      (...call) => deletes.deleteCollection(...call),
      (_parameters, { resourceVersion }) => resourceVersion,
    ),
    getSubresource: operation('get', (...call) => subresources.get(...call)),
    updateSubresource: operation('update', (...call) => subresources.update(...call)),
    patchSubresource: operation('patch', (...call) => subresources.patch(...call)),
    createSubresource: operation('create', (...call) => subresources.create(...call)),
    connect: operation('get', (...call) => connects.run(...call)),
  };
}
