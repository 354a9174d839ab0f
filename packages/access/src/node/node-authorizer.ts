import {
  type AccessAttributes,
  type AccessDecision,
  type Authorizer,
  parseFieldSelector,
  SelectorError,
  type UserInfo,
} from '@keelson/core';
import { objectKey, type ResourceStorage, type StoredObject, selectionOf } from '@keelson/core/internal';
import { Pod } from '@keelson/kinds';
import { nodeRules } from '../authorization/bootstrap-policy.ts';
import { allowingRule } from '../authorization/rbac-authorizer.ts';
import { referencesOf } from './pod-references.ts';

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
 * Allows what the agents of nodes require. A node reads its own Node, the pods bound to it, and the Secrets and
 * ConfigMaps to which these pods refer; it requests tokens of their service accounts, and writes the Lease of its own
 * name. What else it may write to its pods and its Node is the concern of the admission plugin NodeRestriction. Rules
 * and reasons are those of the authorizer `Node` of kube-apiserver. There is no opinion on other users.
 *
 * The pods of a node are read from the watch cache, which indexes them by node; a reference that is not found there is
 * searched for in the newest state, because an agent asks as soon as a pod is bound.
 */
export class NodeAuthorizer implements Authorizer {
  readonly #pods: () => ResourceStorage;
  /** The cache returns the same instance until the pod changes, so each state is parsed once. */
  readonly #references = new WeakMap<StoredObject, ReadonlySet<string>>();

  /** @param pods the pods of the control plane, whose storage exists when the first request is authorized */
  constructor(pods: () => ResourceStorage) {
    this.#pods = pods;
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
          return this.#createToken(attributes, nodeName);
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
    const stored = await this.#pods().get(objectKey(Pod, namespace, name), { at: 'latest' });
    return stored?.value<Pod>().spec.nodeName === nodeName ? allowed : unrelated(nodeName);
  }

  /** Whether a pod of the node refers to the object. */
  async #related({ namespace, name }: AccessAttributes, nodeName: string, resource: string): Promise<AccessDecision> {
    if (name === '') return because('No Object name found');
    const reference = `${resource}/${name}`;
    const found =
      (await this.#refers(namespace, nodeName, reference, 'any')) ||
      (await this.#refers(namespace, nodeName, reference, 'latest'));
    return found ? allowed : unrelated(nodeName);
  }

  async #refers(namespace: string, nodeName: string, reference: string, at: 'any' | 'latest'): Promise<boolean> {
    const { predicate } = selectionOf(Pod, { namespace }, { fieldSelector: `spec.nodeName=${nodeName}` });
    const pods = await this.#pods().list(objectKey(Pod, namespace, ''), { at: { at }, predicate });
    for (const pod of pods.objects()) if (this.#referencesOf(pod).has(reference)) return true;
    return false;
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
