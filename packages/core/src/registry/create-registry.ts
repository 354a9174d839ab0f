import { isStatusError, statusErrors } from '../errors/status-error.ts';
import type { KindDefinition } from '../kind/kind-definition.ts';
import { type AuthenticateToken, type Authorizer, mastersAuthorizer } from '../meta/authorizer.ts';
import { StatusReason } from '../meta/status.ts';
import { apiVersionOf, type GroupVersionResource, type KubeObject } from '../meta/types.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Logger } from '../runtime/logger.ts';
import { storageKindOf, storedFieldOf } from '../scope/storage-key.ts';
import type { ContinueTokens } from '../storage/continue-token.ts';
import type { ResourceStorages } from '../storage/resource-storages.ts';
import type { AdmissionPlugin } from './admission.ts';
import { AdmissionChain } from './admission-chain.ts';
import { answerValue } from './answer-value.ts';
import { KindResourceService } from './kind-resource-service.ts';
import { type NameGenerator, randomName } from './name-generator.ts';
import { type RegistryServices, ResourceBinding } from './resource-binding.ts';
import type { ResourceRegistry, ResourceService } from './resource-service.ts';
import { VirtualResourceService } from './virtual-resource-service.ts';

/** What a registry is made of. */
export interface RegistryOptions {
  readonly storages: ResourceStorages;
  /** One for all kinds, or those of each kind's store. */
  readonly tokens: ContinueTokens | ((kind: KindDefinition) => ContinueTokens);
  readonly clock: Clock;
  readonly logger: Logger;
  /** In the order they run. */
  readonly admission: readonly AdmissionPlugin[];
  /** In the order discovery shows them; more may be added later. */
  readonly kinds: readonly KindDefinition[];
  /**
   * Keep the object's path in metadata.selfLink, as servers up to 1.19 did; default false. For kinds that share storage
   * it is the path in the storage version. Objects written before the option was changed keep what they have until
   * their next write.
   */
  readonly selfLinks?: boolean;
  /**
   * What access reviews ask; the transport in front of the registry should ask the same one. Default: only members of
   * `system:masters` may do anything.
   */
  readonly authorizer?: Authorizer;
  /** What token reviews ask. Default: no token is known. */
  readonly authenticateToken?: AuthenticateToken;
  /** Completes generateName; default: five random characters. */
  readonly generateName?: NameGenerator;
}

/** A kind and its service, which is made when it is first asked for. */
interface Registered {
  readonly kind: KindDefinition;
  service?: ResourceService;
}

function resourceId(group: string, version: string, resource: string): string {
  return `${group}/${version}/${resource}`;
}

function kindId(kind: KindDefinition): string {
  return resourceId(kind.group, kind.version, kind.names.plural);
}

/** A stored object keeps one reading of its selectable fields, made in the form of the storage version. */
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
  readonly #byKind = new Set<string>();
  #kinds: readonly KindDefinition[] = [];
  #generation = 0;

  constructor(options: RegistryOptions) {
    this.#storages = options.storages;
    this.#tokens = options.tokens;
    this.#logger = options.logger.child({ component: 'registry' });
    this.#services = {
      clock: options.clock,
      admission: new AdmissionChain(options.admission),
      generateName: options.generateName ?? randomName,
      selfLinks: options.selfLinks ?? false,
      authorizer: options.authorizer ?? mastersAuthorizer,
      authenticateToken: options.authenticateToken,
      readObject: (...wanted) => this.#readObject(...wanted),
      createSubresource: (...wanted) => this.#createSubresource(...wanted),
      isRegistered: (apiVersion, kind) => this.#byKind.has(`${apiVersion}/${kind}`),
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
    registered.service ??= this.#serviceOf(registered.kind);
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

  async #createSubresource(...wanted: Parameters<RegistryServices['createSubresource']>) {
    const [context, resource, target, name, body, dryRun] = wanted;
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

  #serviceOf(kind: KindDefinition): ResourceService {
    if (kind.virtual) return new VirtualResourceService(kind, kind.virtual, this.#services);
    const tokens = typeof this.#tokens === 'function' ? this.#tokens(kind) : this.#tokens;
    return new KindResourceService(
      new ResourceBinding(kind, this.#storages.forKind(kind), { ...this.#services, tokens }),
    );
  }

  add(kind: KindDefinition): void {
    const id = kindId(kind);
    if (this.#byResource.has(id))
      throw new Error(`the resource ${kind.names.plural} of ${apiVersionOf(kind)} is registered already`);
    checkSelectableFields(kind);
    this.#byResource.set(id, { kind });
    this.#byKind.add(`${kind.apiVersion}/${kind.kind}`);
    this.#kinds = [...this.#kinds, kind];
    this.#generation++;
    this.#logger.debug('kind added', { kind: kind.kind, apiVersion: kind.apiVersion });
  }

  remove(kind: KindDefinition): void {
    const id = kindId(kind);
    if (this.#byResource.get(id)?.kind !== kind) return;
    this.#byResource.delete(id);
    this.#byKind.delete(`${kind.apiVersion}/${kind.kind}`);
    this.#kinds = this.#kinds.filter((other) => other !== kind);
    this.#generation++;
    this.#logger.debug('kind removed', { kind: kind.kind, apiVersion: kind.apiVersion });
  }
}

/**
 * The kinds of a server and the service of each.
 *
 * @throws Error when two kinds claim one resource.
 */
export function createResourceRegistry(options: RegistryOptions): ResourceRegistry {
  return new KindRegistry(options);
}
