import { isDeepStrictEqual } from 'node:util';
import {
  type AdmissionPlugin,
  type AdmissionRequest,
  type KindDefinition,
  type KubeObject,
  type StatusError,
  statusErrors,
} from '@keelson/core';
import { objectKey, type ResourceStorage } from '@keelson/core/internal';
import { Node, Pod, type TokenRequest } from '@keelson/kinds';
import { isNodeUser, leaseNamespace, nodeNameOf } from './node-authorizer.ts';
import { forbiddenLabelChanges } from './node-labels.ts';
import { apiReferenceOf } from './pod-references.ts';

/** The annotation of mirror pods. */
const mirrorAnnotation = 'kubernetes.io/config.mirror';

/** The storages of the objects that requests refer to. */
export interface NodeRestrictionOptions {
  readonly nodes: ResourceStorage;
  readonly pods: ResourceStorage;
}

/** A request of a node. Each rule returns the reason for a rejection, or undefined. */
interface NodeRequest extends AdmissionRequest {
  readonly nodeName: string;
  /** @throws StatusError 404 when the pod does not exist */
  readonly readPod: (name: string) => Promise<Pod>;
  /** @throws StatusError 404 when the node does not exist */
  readonly readNode: () => Promise<Node>;
}

type Reason = string | undefined;
type Rule = (request: NodeRequest) => Reason | Promise<Reason>;

const quote = (text: string): string => JSON.stringify(text);
const operationName = ({ operation }: AdmissionRequest): string => quote(operation.toUpperCase());

function podRule(request: NodeRequest): Reason | Promise<Reason> {
  switch (request.subresource) {
    case undefined:
      return wholePodRule(request);
    case 'status':
      return podStatusRule(request);
    case 'eviction':
      return evictionRule(request);
    default:
      return `unexpected pod subresource ${quote(request.subresource)}, only 'status' and 'eviction' are allowed`;
  }
}

function wholePodRule(request: NodeRequest): Reason | Promise<Reason> {
  const { operation, oldObject, nodeName } = request;
  if (operation === 'create') return newPodRule(request);
  const node = `node ${quote(nodeName)}`;
  if (operation !== 'delete') {
    return `unexpected operation ${operationName(request)}, ${node} can only create and delete mirror pods`;
  }
  if ((oldObject as Pod).spec.nodeName === nodeName) return undefined;
  return `${node} can only delete pods with spec.nodeName set to itself`;
}

async function newPodRule({ object, nodeName, readNode }: NodeRequest): Promise<Reason> {
  const pod = object as Pod;
  const node = `node ${quote(nodeName)}`;
  if (pod.metadata?.annotations?.[mirrorAnnotation] === undefined) {
    return `pod does not have ${quote(mirrorAnnotation)} annotation, ${node} can only create mirror pods`;
  }
  if (pod.spec.nodeName !== nodeName) return `${node} can only create pods with spec.nodeName set to itself`;
  const [owner, ...others] = pod.metadata.ownerReferences ?? [];
  if (others.length > 0) return `${node} can only create pods with a single owner reference set to itself`;
  if (owner?.apiVersion !== Node.apiVersion || owner.kind !== Node.kind || owner.name !== nodeName) {
    return `${node} can only create pods with an owner reference set to itself`;
  }
  if (owner.controller !== true) return `${node} can only create pods with a controller owner reference set to itself`;
  if (owner.blockOwnerDeletion === true) return `${node} must not set blockOwnerDeletion on an owner reference`;
  const { uid = '' } = (await readNode()).metadata ?? {};
  if (owner.uid !== uid) return `node ${nodeName} UID mismatch: expected ${owner.uid} got ${uid}`;
  const reference = apiReferenceOf(pod);
  return reference === undefined ? undefined : `${node} can not create pods that reference ${reference}`;
}

function podStatusRule(request: NodeRequest): Reason {
  const { operation, object, oldObject, nodeName } = request;
  if (operation !== 'update') return `unexpected operation ${operationName(request)}`;
  const [pod, old] = [object as Pod, oldObject as Pod];
  const node = `node ${quote(nodeName)}`;
  if (old.spec.nodeName !== nodeName)
    return `${node} can only update pod status for pods with spec.nodeName set to itself`;
  if (!isDeepStrictEqual(pod.metadata?.labels ?? {}, old.metadata?.labels ?? {})) {
    return `${node} cannot update labels through pod status`;
  }
  if (!isDeepStrictEqual(pod.status?.resourceClaimStatuses ?? [], old.status?.resourceClaimStatuses ?? [])) {
    return `${node} cannot update resource claim statues`;
  }
  return undefined;
}

async function evictionRule(request: NodeRequest): Promise<Reason> {
  const { operation, name, nodeName, readPod } = request;
  if (operation !== 'create') return `unexpected operation ${operation.toUpperCase()}`;
  const pod = await readPod(name);
  return pod.spec.nodeName === nodeName
    ? undefined
    : `node ${nodeName} can only evict pods with spec.nodeName set to itself`;
}

function nodeRule({ operation, object, oldObject, name, nodeName }: NodeRequest): Reason {
  const who = `node ${quote(nodeName)}`;
  if (name !== nodeName) return `${who} is not allowed to modify node ${quote(name)}`;
  if (operation !== 'create' && operation !== 'update') return undefined;
  const node = object as Node;
  const old = oldObject as Node | undefined;
  const labels = forbiddenLabelChanges(node.metadata?.labels, old?.metadata?.labels).join(', ');
  const configSource = node.spec?.configSource;
  // The garbage collector deletes objects whose owners do not exist. With an owner reference of its choice a node could
  // delete itself and register again without the taints and labels that an administrator has set.
  const sameOwners = isDeepStrictEqual(node.metadata?.ownerReferences ?? [], old?.metadata?.ownerReferences ?? []);
  if (old === undefined) {
    if (configSource) return `${who} is not allowed to create pods with a non-nil configSource`;
    if (!sameOwners) return `${who} is not allowed to set ownerReferences`;
    return labels === '' ? undefined : `${who} is not allowed to set the following labels: ${labels}`;
  }
  if (configSource && !isDeepStrictEqual(configSource, old.spec?.configSource)) {
    return `${who} is not allowed to update configSource to a new non-nil configSource`;
  }
  if (!isDeepStrictEqual(node.spec?.taints ?? [], old.spec?.taints ?? []))
    return `${who} is not allowed to modify taints`;
  if (!sameOwners) return `${who} is not allowed to modify ownerReferences`;
  return labels === '' ? undefined : `is not allowed to modify labels: ${labels}`;
}

/** A node may change only the status fields of a claim that are listed here. */
const claimReports = new Set(['capacity', 'conditions', 'allocatedResources', 'allocatedResourceStatuses']);

function withoutClaimReports(object: KubeObject | undefined): unknown {
  const { metadata, status, ...rest } = (object ?? {}) as KubeObject & { status?: Record<string, unknown> };
  const { resourceVersion: _, ...meta } = metadata ?? {};
  return {
    ...rest,
    metadata: meta,
    status: Object.entries(status ?? {}).filter(([field]) => !claimReports.has(field)),
  };
}

function claimRule(request: NodeRequest): Reason {
  const { operation, subresource, object, oldObject, nodeName } = request;
  if (subresource !== 'status') return 'may only update PVC status';
  if (operation !== 'update') return `unexpected operation ${operationName(request)}`;
  if (isDeepStrictEqual(withoutClaimReports(object), withoutClaimReports(oldObject))) return undefined;
  return `node ${quote(nodeName)} is not allowed to update fields other than status.capacity and status.conditions`;
}

async function tokenRule({ operation, subresource, object, nodeName, readPod, context }: NodeRequest): Promise<Reason> {
  if (operation !== 'create' || subresource !== 'token') return undefined;
  const { apiVersion, kind, name = '', uid = '' } = (object as TokenRequest).spec.boundObjectRef ?? {};
  if (apiVersion !== Pod.apiVersion || kind !== Pod.kind || name === '')
    return 'node requested token not bound to a pod';
  if (uid === '') return 'node requested token with a pod binding without a uid';
  const pod = await readPod(name);
  if (uid !== pod.metadata?.uid) {
    return (
      `the UID in the bound object reference (${uid}) does not match the UID in record. ` +
      'The object might have been deleted and then recreated'
    );
  }
  if (pod.spec.nodeName !== nodeName) return 'node requested token bound to a pod scheduled on a different node';
  return audienceProblem((object as TokenRequest).spec.audiences, pod, context.user.name);
}

/** A node needs tokens for the recipients that a volume of the pod names, and for no others. */
function audienceProblem(audiences: readonly string[] | undefined, { spec }: Pod, user: string): Reason {
  const [audience = '', ...more] = audiences ?? [];
  if (more.length > 0) return 'node may only request 0 or 1 audiences';
  const sources = (spec.volumes ?? []).flatMap(({ projected }) => projected?.sources ?? []);
  return sources.some(
    ({ serviceAccountToken }) => serviceAccountToken && (serviceAccountToken.audience ?? '') === audience,
  )
    ? undefined
    : `audience ${quote(audience)} not found in pod spec volume, ${user} is not authorized to request tokens for this audience`;
}

function leaseRule({ namespace, name, nodeName }: NodeRequest): Reason {
  if (namespace !== leaseNamespace) return `can only access leases in the ${quote(leaseNamespace)} system namespace`;
  return name === nodeName ? undefined : 'can only access node lease with the same name as the requesting node';
}

function csiNodeRule({ name, nodeName }: NodeRequest): Reason {
  return name === nodeName ? undefined : 'can only access CSINode with the same name as the requesting node';
}

/** Keyed by group and resource, so that a rule applies to every version. */
const rules: Readonly<Record<string, Rule>> = {
  pods: podRule,
  nodes: nodeRule,
  persistentvolumeclaims: claimRule,
  serviceaccounts: tokenRule,
  'leases.coordination.k8s.io': leaseRule,
  'csinodes.storage.k8s.io': csiNodeRule,
};

const ruleOf = ({ group, names }: KindDefinition): Rule | undefined =>
  rules[group === '' ? names.plural : `${names.plural}.${group}`];

function refusal({ kind, name }: AdmissionRequest, why: string): StatusError {
  return statusErrors.forbidden({ group: kind.group, resource: kind.names.plural }, name, why);
}

/**
 * Restricts the permissions that all nodes share to the node's own Node, Lease and CSINode, and to the pods bound to
 * it. The rules and messages are those of the plugin NodeRestriction of kube-apiserver.
 */
export function nodeRestriction({ nodes, pods }: NodeRestrictionOptions): AdmissionPlugin {
  const read = async <T extends KubeObject>(
    kind: KindDefinition<T>,
    storage: ResourceStorage,
    name: string,
    namespace: string | undefined,
    { signal }: AdmissionRequest['context'],
  ): Promise<T> => {
    const stored = await storage.get(objectKey(kind, namespace, name), { at: 'latest' }, signal ? { signal } : {});
    if (stored === undefined) throw statusErrors.notFound({ group: kind.group, resource: kind.names.plural }, name);
    return stored.value<T>();
  };
  return {
    name: 'NodeRestriction',
    resources: Object.keys(rules),
    handles: ({ context }) => isNodeUser(context.user),
    async validate(request) {
      const { context, kind, namespace } = request;
      const nodeName = nodeNameOf(context.user);
      if (nodeName === undefined)
        throw refusal(request, `could not determine node from user ${quote(context.user.name)}`);
      const why = await ruleOf(kind)?.({
        ...request,
        nodeName,
        readPod: (name) => read(Pod, pods, name, namespace, context),
        readNode: () => read(Node, nodes, nodeName, undefined, context),
      });
      if (why !== undefined) throw refusal(request, why);
    },
  };
}
