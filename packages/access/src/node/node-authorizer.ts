import {
  type AccessAttributes,
  type AccessDecision,
  type Authorizer,
  type KindDefinition,
  parseFieldSelector,
  SelectorError,
  type UserInfo,
} from '@keelson/core';
import { kindPrefix, objectKey, type ResourceStorage, type StoredObject, selectionOf } from '@keelson/core/internal';
import { PersistentVolume, PersistentVolumeClaim, Pod, VolumeAttachment } from '@keelson/kinds';
import { nodeRules } from '../authorization/bootstrap-policy.ts';
import { allowingRule } from '../authorization/rbac-authorizer.ts';
import { claimPrefix, referencesOf, secretsOfVolume } from './pod-references.ts';

const nodesGroup = 'system:nodes';
const nodePrefix = 'system:node:';
/** Namespace of the Leases of nodes. */
export const leaseNamespace = 'kube-node-lease';

/** Whether a user is a node by its group and the form of its name. */
export function isNodeUser({ name, groups }: UserInfo): boolean {
  return groups.includes(nodesGroup) && name.startsWith(nodePrefix);
}

/** The node name of a user; undefined when the user is not a node, or when the user name does not contain one. */
export function nodeNameOf(user: UserInfo): string | undefined {
  return isNodeUser(user) && user.name.length > nodePrefix.length ? user.name.slice(nodePrefix.length) : undefined;
}

const allowed: AccessDecision = { allowed: true };
const noOpinion: AccessDecision = { allowed: false };
const because = (reason: string): AccessDecision => ({ allowed: false, reason });
const reading: ReadonlySet<string> = new Set(['get', 'list', 'watch']);

function isRestrictedTo(fieldSelector: string | undefined, nodeName: string): boolean {
  if (!fieldSelector) return false;
  try {
    return parseFieldSelector(fieldSelector).requirements.some(
      ({ field, operator, value }) => field === 'spec.nodeName' && operator === '=' && value === nodeName,
    );
  } catch (error) {
    // An invalid selector does not restrict the request to the node. The registry rejects such a request anyway.
    if (error instanceof SelectorError) return false;
    throw error;
  }
}

/**
 * Allows what the agents of nodes require. A node reads its own Node, the pods bound to it, the Secrets, ConfigMaps,
 * service accounts and claims to which these pods refer, and the volumes of these claims with their Secrets; it
 * requests tokens of the service accounts, and writes the Lease and the CSINode of its own name. What else it may write
 * to its pods and its Node is the concern of the admission plugin NodeRestriction. Rules and reasons are those of the
 * authorizer `Node` of kube-apiserver. There is no opinion on other users.
 *
 * The pods of a node are read from the watch cache, which indexes them by node; a reference that is not found there is
 * searched for in the newest state, because an agent asks as soon as a pod is bound.
 */
export class NodeAuthorizer implements Authorizer {
  readonly #storageOf: (kind: KindDefinition) => ResourceStorage;
  /** The cache returns the same instance until the pod changes, so each state is parsed once. */
  readonly #references = new WeakMap<StoredObject, ReadonlySet<string>>();

  /** @param storageOf the storages of the control plane, which exist when the first request is authorized */
  constructor(storageOf: (kind: KindDefinition) => ResourceStorage) {
    this.#storageOf = storageOf;
  }

  /** Node permissions cannot be listed, because they follow from pods. */
  rulesFor(user: UserInfo) {
    const evaluationError = 'node authorizer does not support user rule resolution';
    return {
      resourceRules: [],
      nonResourceRules: [],
      ...(isNodeUser(user) ? { incomplete: true, evaluationError } : { incomplete: false }),
    };
  }

  authorize(attributes: AccessAttributes, user: UserInfo): AccessDecision | Promise<AccessDecision> {
    if (!isNodeUser(user)) return noOpinion;
    const nodeName = nodeNameOf(user);
    if (nodeName === undefined) return because(`unknown node for user ${JSON.stringify(user.name)}`);
    if (attributes.isResourceRequest) {
      const { apiGroup, resource } = attributes;
      switch (apiGroup === '' ? resource : `${resource}.${apiGroup}`) {
        case 'secrets':
        case 'configmaps':
          return this.#readReferenced(attributes, nodeName);
        case 'serviceaccounts':
          return attributes.verb === 'get' && attributes.subresource === ''
            ? this.#readReferenced(attributes, nodeName)
            : this.#createToken(attributes, nodeName);
        case 'persistentvolumeclaims':
        case 'persistentvolumes':
        case 'volumeattachments.storage.k8s.io':
          return this.#storageDecision(attributes, nodeName);
        case 'csinodes.storage.k8s.io':
          return csiNodeDecision(attributes, nodeName);
        case 'leases.coordination.k8s.io':
          return leaseDecision(attributes, nodeName);
        case 'nodes':
          return nodeDecision(attributes, nodeName);
        case 'pods':
          return this.#podDecision(attributes, nodeName);
      }
    }
    return allowingRule(nodeRules, attributes) === undefined ? noOpinion : allowed;
  }

  #readReferenced(attributes: AccessAttributes, nodeName: string): AccessDecision | Promise<AccessDecision> {
    const { verb, subresource, namespace, resource } = attributes;
    if (!reading.has(verb)) return because('can only read resources of this type');
    if (subresource !== '') return because('cannot read subresource');
    if (namespace === '') return because('can only read namespaced object of this type');
    return this.#related(attributes, nodeName, resource);
  }

  #createToken(attributes: AccessAttributes, nodeName: string): AccessDecision | Promise<AccessDecision> {
    const { verb, name, subresource } = attributes;
    if (verb !== 'create' || name === '') return because('can only create tokens for individual service accounts');
    if (subresource !== 'token') return because('can only create token subresource of serviceaccount');
    return this.#related(attributes, nodeName, 'serviceaccounts');
  }

  #storageDecision(attributes: AccessAttributes, nodeName: string): AccessDecision | Promise<AccessDecision> {
    const { resource, verb, subresource } = attributes;
    if (resource === 'persistentvolumeclaims' && subresource === 'status') {
      if (verb !== 'update' && verb !== 'patch') return because('can only get/update/patch this type');
    } else {
      if (verb !== 'get') return because('can only get individual resources of this type');
      if (subresource !== '') return because('cannot get subresource');
    }
    return this.#related(attributes, nodeName, resource);
  }

  #podDecision(attributes: AccessAttributes, nodeName: string): AccessDecision | Promise<AccessDecision> {
    const { verb, subresource, name, fieldSelector } = attributes;
    switch (`${subresource} ${verb}`) {
      case ' get':
        return this.#ownPod(attributes, nodeName);
      case ' list':
      case ' watch':
        if (isRestrictedTo(fieldSelector, nodeName)) return allowed;
        if (name !== '') return this.#ownPod(attributes, nodeName);
        return because('can only list/watch pods with spec.nodeName field selector');
      case ' create':
      case ' delete':
      case 'status update':
      case 'status patch':
      case 'eviction create':
        return allowed;
      default:
        return noOpinion;
    }
  }

  async #ownPod({ namespace, name }: AccessAttributes, nodeName: string): Promise<AccessDecision> {
    if (namespace === '') return unrelated(nodeName);
    const pod = await this.#read<Pod>(Pod, namespace, name, 'latest');
    return pod?.spec.nodeName === nodeName ? allowed : unrelated(nodeName);
  }

  /** Whether the object belongs to the node through one of its pods. */
  async #related({ namespace, name }: AccessAttributes, nodeName: string, resource: string): Promise<AccessDecision> {
    if (name === '') return because('No Object name found');
    const object = { resource, namespace, name };
    const found = (await this.#belongs(object, nodeName, 'any')) || (await this.#belongs(object, nodeName, 'latest'));
    return found ? allowed : unrelated(nodeName);
  }

  async #belongs({ resource, namespace, name }: NamedObject, nodeName: string, at: State): Promise<boolean> {
    switch (resource) {
      case 'volumeattachments':
        return (await this.#read<VolumeAttachment>(VolumeAttachment, '', name, at))?.spec.nodeName === nodeName;
      case 'persistentvolumes': {
        const claim = (await this.#read<PersistentVolume>(PersistentVolume, '', name, at))?.spec.claimRef;
        return claim !== undefined && this.#refers(claim.namespace ?? '', nodeName, `${claimPrefix}${claim.name}`, at);
      }
      case 'secrets':
        if (await this.#refers(namespace, nodeName, `secrets/${name}`, at)) return true;
        return this.#isSecretOfVolume(`${namespace}/${name}`, nodeName, at);
      default:
        return this.#refers(namespace, nodeName, `${resource}/${name}`, at);
    }
  }

  async #refers(namespace: string, nodeName: string, reference: string, at: State): Promise<boolean> {
    for (const pod of await this.#podsOf(nodeName, namespace, at)) {
      if (this.#referencesOf(pod).has(reference)) return true;
    }
    return false;
  }

  /** Whether a volume that a pod of the node claims names the Secret, which may be in another namespace. */
  async #isSecretOfVolume(secret: string, nodeName: string, at: State): Promise<boolean> {
    for (const pod of await this.#podsOf(nodeName, '', at)) {
      const { namespace = '' } = pod.value<Pod>().metadata ?? {};
      for (const reference of this.#referencesOf(pod)) {
        if (!reference.startsWith(claimPrefix)) continue;
        const claimName = reference.slice(claimPrefix.length);
        const claim = await this.#read<PersistentVolumeClaim>(PersistentVolumeClaim, namespace, claimName, at);
        const volumeName = claim?.spec.volumeName ?? '';
        if (volumeName === '') continue;
        const volume = await this.#read<PersistentVolume>(PersistentVolume, '', volumeName, at);
        const { claimRef } = volume?.spec ?? {};
        if (claimRef?.namespace !== namespace || claimRef.name !== claimName) continue;
        if (volume && secretsOfVolume(volume).has(secret)) return true;
      }
    }
    return false;
  }

  async #podsOf(nodeName: string, namespace: string, at: State): Promise<Iterable<StoredObject>> {
    const scope = namespace === '' ? {} : { namespace };
    const { predicate } = selectionOf(Pod, scope, { fieldSelector: `spec.nodeName=${nodeName}` });
    const prefix = namespace === '' ? kindPrefix(Pod) : objectKey(Pod, namespace, '');
    return (await this.#storageOf(Pod).list(prefix, { at: { at }, predicate })).objects();
  }

  async #read<T>(kind: KindDefinition, namespace: string, name: string, at: State): Promise<T | undefined> {
    const stored = await this.#storageOf(kind).get(objectKey(kind, namespace, name), { at });
    return stored?.value<T & object>();
  }

  #referencesOf(stored: StoredObject): ReadonlySet<string> {
    let references = this.#references.get(stored);
    if (references === undefined) {
      references = referencesOf(stored.value<Pod>());
      this.#references.set(stored, references);
    }
    return references;
  }
}

/** The state of the cache, or the newest one. */
type State = 'any' | 'latest';

interface NamedObject {
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
}

const unrelated = (nodeName: string): AccessDecision =>
  because(`no relationship found between node '${nodeName}' and this object`);

function leaseDecision({ verb, namespace, name }: AccessAttributes, nodeName: string): AccessDecision {
  if (!['get', 'create', 'update', 'patch', 'delete'].includes(verb)) {
    return because('can only get, create, update, patch, or delete a node lease');
  }
  if (namespace !== leaseNamespace)
    return because(`can only access leases in the "${leaseNamespace}" system namespace`);
  // The name of a new lease is in its body, which admission checks.
  if (verb !== 'create' && name !== nodeName) {
    return because('can only access node lease with the same name as the requesting node');
  }
  return allowed;
}

function csiNodeDecision({ verb, subresource, name }: AccessAttributes, nodeName: string): AccessDecision {
  if (!['get', 'create', 'update', 'patch', 'delete'].includes(verb)) {
    return because('can only get, create, update, patch, or delete a CSINode');
  }
  if (subresource !== '') return because('cannot authorize CSINode subresources');
  if (verb !== 'create' && name !== nodeName) {
    return because('can only access CSINode with the same name as the requesting node');
  }
  return allowed;
}

function nodeDecision({ verb, subresource, name }: AccessAttributes, nodeName: string): AccessDecision {
  switch (`${subresource} ${verb}`) {
    case ' create':
      return allowed;
    case ' update':
    case ' patch':
    case 'status update':
    case 'status patch':
      if (name === nodeName) return allowed;
      return because(`node '${nodeName}' cannot modify '${name}', only its own Node object`);
    case ' get':
    case ' list':
    case ' watch':
      if (name === nodeName) return allowed;
      return because(
        name === ''
          ? `node '${nodeName}' cannot read all nodes, only its own Node object`
          : `node '${nodeName}' cannot read '${name}', only its own Node object`,
      );
    default:
      return noOpinion;
  }
}
