import { isDeepStrictEqual } from 'node:util';
import { type AdmissionPlugin, type AdmissionRequest, type StatusError, statusErrors } from '@keelson/core';
import {
  IngressClass,
  isDefaultStorageClass,
  type NetworkingV1Ingress,
  type Node,
  type PersistentVolumeClaim,
  type Pod,
  PriorityClass,
  RuntimeClass,
  StorageClass,
} from '@keelson/kinds';
import type { CachedObjects } from './cached-objects.ts';

/** The error (403) with which an admission plugin rejects a request. */
export function refusal({ kind, name }: AdmissionRequest, why: string): StatusError {
  return statusErrors.forbidden({ group: kind.group, resource: kind.names.plural }, name, why);
}

const isMain = ({ subresource }: AdmissionRequest) => subresource === undefined;
const isNew = ({ operation, subresource }: AdmissionRequest) => operation === 'create' && subresource === undefined;

/**
 * The plugins that complete new objects: DefaultTolerationSeconds, Priority, RuntimeClass, DefaultStorageClass and
 * DefaultIngressClass, of which the latter four apply the classes that the objects name, or the default class; and
 * TaintNodesByCondition, if a controller removes the taint: see
 * docs/adr/0093-admission-that-a-controller-ends-follows-the-controllers-of-the-process.md.
 *
 * @param runs names of the controllers of this process
 */
export function defaultAdmission(objects: CachedObjects, runs: readonly string[]): AdmissionPlugin[] {
  return [
    defaultTolerations,
    podPriority(objects),
    oneDefaultPriority(objects),
    podRuntime(objects),
    claimClass(objects),
    ingressClass(objects),
    ...(runs.includes('node-lifecycle-controller') ? [newNodeTaint] : []),
  ];
}

const notReadyKey = 'node.kubernetes.io/not-ready';
const missedNodeKeys = [notReadyKey, 'node.kubernetes.io/unreachable'];
/** Time in which a node may come back before its pods are evicted. */
const tolerationSeconds = 300;

/** Pods tolerate a node that is not ready or unreachable for five minutes, unless they state a time themselves. */
const defaultTolerations: AdmissionPlugin = {
  name: 'DefaultTolerationSeconds',
  resources: ['pods'],
  handles: ({ operation, subresource }) => operation === 'create' && subresource === undefined,
  mutate: ({ object }) => {
    const { spec } = object as Pod;
    const given = spec.tolerations ?? [];
    const missing = missedNodeKeys.filter(
      (missed) =>
        !given.some(
          ({ key = '', effect = '' }) => (key === '' || key === missed) && (effect === '' || effect === 'NoExecute'),
        ),
    );
    if (missing.length === 0) return;
    const added = missing.map((key) => ({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds }));
    spec.tolerations = [...given, ...added];
  },
};

/** A new node gets no pods until the node lifecycle controller has seen its conditions. */
const newNodeTaint: AdmissionPlugin = {
  name: 'TaintNodesByCondition',
  resources: ['nodes'],
  handles: isNew,
  mutate: ({ object }) => {
    const node = object as Node;
    const given = node.spec?.taints ?? [];
    if (given.some(({ key, effect }) => key === notReadyKey && effect === 'NoSchedule')) return;
    node.spec = { ...node.spec, taints: [...given, { key: notReadyKey, effect: 'NoSchedule' }] };
  },
};

async function defaultPriorityClass(objects: CachedObjects): Promise<PriorityClass | undefined> {
  const defaults = (await objects.list(PriorityClass)).filter(({ globalDefault }) => globalDefault);
  return defaults.sort((a, b) => a.value - b.value)[0];
}

function podPriority(objects: CachedObjects): AdmissionPlugin {
  return {
    name: 'Priority',
    resources: ['pods'],
    handles: (request) => isMain(request) && (request.operation === 'create' || request.operation === 'update'),
    async mutate(request) {
      const { spec } = request.object as Pod;
      if (request.operation === 'update') {
        const { priority, preemptionPolicy } = (request.oldObject as Pod).spec;
        if (priority !== undefined) spec.priority ??= priority;
        if (preemptionPolicy !== undefined) spec.preemptionPolicy ??= preemptionPolicy;
        return;
      }
      const name = spec.priorityClassName;
      const found = name ? await objects.get(PriorityClass, name) : await defaultPriorityClass(objects);
      if (name && !found) throw refusal(request, `no PriorityClass with name ${name} was found`);
      if (found && !name) spec.priorityClassName = found.metadata?.name ?? '';
      const priority = found?.value ?? 0;
      if (spec.priority !== undefined && spec.priority !== priority) {
        throw refusal(
          request,
          `the integer value of priority (${spec.priority}) must not be provided in pod spec; priority admission ` +
            `controller computed ${priority} from the given PriorityClass name`,
        );
      }
      spec.priority = priority;
      const policy = found === undefined ? 'PreemptLowerPriority' : found.preemptionPolicy;
      if (policy === undefined) return;
      if (spec.preemptionPolicy !== undefined && spec.preemptionPolicy !== policy) {
        throw refusal(
          request,
          `the string value of PreemptionPolicy (${spec.preemptionPolicy}) must not be provided in pod spec; priority ` +
            `admission controller computed ${policy} from the given PriorityClass name`,
        );
      }
      spec.preemptionPolicy = policy;
    },
  };
}

function oneDefaultPriority(objects: CachedObjects): AdmissionPlugin {
  return {
    name: 'Priority',
    resources: ['priorityclasses.scheduling.k8s.io'],
    handles: (request) => isMain(request) && (request.object as PriorityClass | undefined)?.globalDefault === true,
    async validate(request) {
      const known = (await defaultPriorityClass(objects))?.metadata?.name;
      if (known === undefined || (request.operation === 'update' && known === request.name)) return;
      throw refusal(request, `PriorityClass ${known} is already marked as default. Only one default can exist`);
    },
  };
}

function podRuntime(objects: CachedObjects): AdmissionPlugin {
  const classOf = async (request: AdmissionRequest): Promise<RuntimeClass | undefined> => {
    const name = (request.object as Pod).spec.runtimeClassName;
    if (name === undefined) return undefined;
    const found = await objects.get(RuntimeClass, name);
    if (found === undefined) throw refusal(request, `pod rejected: RuntimeClass ${JSON.stringify(name)} not found`);
    return found;
  };
  return {
    name: 'RuntimeClass',
    resources: ['pods'],
    handles: (request) => {
      const spec = (request.object as Pod | undefined)?.spec;
      return isNew(request) && (spec?.runtimeClassName !== undefined || spec?.overhead !== undefined);
    },
    async mutate(request) {
      const found = await classOf(request);
      const { spec } = request.object as Pod;
      const overhead = found?.overhead?.podFixed;
      if (overhead !== undefined) {
        const isOther = Object.keys(spec.overhead ?? {}).length > 0 && !isDeepStrictEqual(spec.overhead, overhead);
        if (isOther)
          throw refusal(request, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead");
        spec.overhead = { ...overhead };
      }
      const { nodeSelector, tolerations = [] } = found?.scheduling ?? {};
      for (const [key, value] of Object.entries(nodeSelector ?? {})) {
        const given = spec.nodeSelector?.[key];
        if (given !== undefined && given !== value) {
          throw refusal(
            request,
            `conflict: runtimeClass.scheduling.nodeSelector[${key}] = ${value}; pod.spec.nodeSelector[${key}] = ${given}`,
          );
        }
      }
      if (nodeSelector) spec.nodeSelector = { ...spec.nodeSelector, ...nodeSelector };
      const missing = tolerations.filter((one) => !spec.tolerations?.some((given) => isDeepStrictEqual(given, one)));
      if (missing.length > 0) spec.tolerations = [...(spec.tolerations ?? []), ...structuredClone(missing)];
    },
    async validate(request) {
      const found = await classOf(request);
      const { overhead } = (request.object as Pod).spec;
      if (overhead === undefined || isDeepStrictEqual(found?.overhead?.podFixed, overhead)) return;
      throw refusal(request, 'pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead');
    },
  };
}

/** The newest of the classes that are the default; of equally old ones the first by name. */
async function newestDefault<T extends StorageClass | IngressClass>(
  classes: readonly T[] | Promise<readonly T[]>,
  isDefault: (found: T) => boolean,
): Promise<string | undefined> {
  const nameOf = (found: T) => found.metadata?.name ?? '';
  const timeOf = (found: T) => Date.parse(found.metadata?.creationTimestamp ?? '') || 0;
  const [newest] = (await classes)
    .filter(isDefault)
    .sort((a, b) => timeOf(b) - timeOf(a) || (nameOf(a) < nameOf(b) ? -1 : 1));
  return newest && nameOf(newest);
}

/** Names the class of a claim, and takes precedence over `spec.storageClassName`. */
export const storageClassAnnotation = 'volume.beta.kubernetes.io/storage-class';

function claimClass(objects: CachedObjects): AdmissionPlugin {
  return {
    name: 'DefaultStorageClass',
    resources: ['persistentvolumeclaims'],
    handles: isNew,
    async mutate(request) {
      const { metadata, spec } = request.object as PersistentVolumeClaim;
      if (spec.storageClassName !== undefined || metadata?.annotations?.[storageClassAnnotation] !== undefined) return;
      const name = await newestDefault(objects.list(StorageClass), isDefaultStorageClass);
      if (name !== undefined) spec.storageClassName = name;
    },
  };
}

const ingressClassAnnotation = 'kubernetes.io/ingress.class';
const defaultIngressClassAnnotation = 'ingressclass.kubernetes.io/is-default-class';

function ingressClass(objects: CachedObjects): AdmissionPlugin {
  return {
    name: 'DefaultIngressClass',
    resources: ['ingresses.networking.k8s.io', 'ingresses.extensions'],
    handles: isNew,
    async mutate(request) {
      const ingress = request.object as NetworkingV1Ingress;
      if (ingress.spec?.ingressClassName !== undefined) return;
      if (ingress.metadata?.annotations?.[ingressClassAnnotation] !== undefined) return;
      const name = await newestDefault(
        objects.list(IngressClass),
        ({ metadata }) => metadata?.annotations?.[defaultIngressClassAnnotation] === 'true',
      );
      if (name !== undefined) ingress.spec = { ...ingress.spec, ingressClassName: name };
    },
  };
}
