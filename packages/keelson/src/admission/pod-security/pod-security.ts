import {
  type AdmissionPlugin,
  type AdmissionRequest,
  type FieldError,
  type KubeObject,
  statusErrors,
} from '@keelson/core';
import { kindPrefix, type StoredObject } from '@keelson/core/internal';
import type { Clock } from '@keelson/core/runtime';
import {
  type CronJob,
  type Deployment,
  Namespace,
  type Pod,
  type PodTemplate,
  type PodTemplateSpec,
} from '@keelson/kinds';
import type { StorageOfKind } from '../cached-objects.ts';
import { refusal } from '../default-admission.ts';
import { detailsOf, evaluate } from './evaluate.ts';
import { examineNamespace } from './namespace-labels.ts';
import { type PodView, podView, type Violation } from './pod-view.ts';
import { isPrivileged, type LevelVersion, type Policy, policyOf, unrestricted } from './policy.ts';

const workloads = [
  ...['replicationcontrollers', 'podtemplates', 'jobs.batch', 'cronjobs.batch', 'statefulsets.apps'],
  ...['daemonsets', 'deployments', 'replicasets'].flatMap((name) => [`${name}.apps`, `${name}.extensions`]),
];

/** Subresources of pods that do not change what the pod may do. */
const harmlessSubresources = new Set([
  'attach',
  'binding',
  'eviction',
  'exec',
  'log',
  'portforward',
  'proxy',
  'status',
]);

/** Prefix of the annotations of audit events. */
const prefix = 'pod-security.kubernetes.io/';

/**
 * Applies the Pod Security Standards that the labels of a namespace demand: rejects pods, and warns of pods and
 * workloads. Behaviour and messages are those of the plugin PodSecurity of kube-apiserver; see
 * docs/how-to/restrict-pods.md. In a namespace without these labels pods are not examined.
 */
export function podSecurity(stores: StorageOfKind, clock: Clock): AdmissionPlugin {
  const namespaces = stores.forKind(Namespace);
  const keyPrefix = kindPrefix(Namespace);
  // The cache returns the same instance until the namespace changes, so each state of a namespace is parsed once.
  const policies = new WeakMap<StoredObject, Policy>();
  const policyOfStored = (stored: StoredObject): Policy => {
    let policy = policies.get(stored);
    if (policy === undefined) {
      const { labels } = stored.value<Namespace>().metadata ?? {};
      policy = isRestricted(labels) ? policyOf(labels) : unrestricted;
      policies.set(stored, policy);
    }
    return policy;
  };
  const examineLatest = async (request: AdmissionRequest, key: string): Promise<void> => {
    const stored = await namespaces.get(key, { at: 'latest' });
    if (stored !== undefined) return examine(request, policyOfStored(stored));
    const name = JSON.stringify(request.namespace);
    if (request.kind.kind === 'Pod') throw statusErrors.internal(`failed to lookup namespace ${name}`);
    request.context.annotate?.(`${prefix}error`, `failed to lookup namespace ${name}: namespaces ${name} not found`);
  };
  return {
    name: 'PodSecurity',
    resources: ['namespaces', 'pods', ...workloads],
    handles: ({ operation, kind, subresource }) =>
      (operation === 'create' || operation === 'update') &&
      (subresource === undefined || (kind.kind === 'Pod' && !harmlessSubresources.has(subresource))),
    validate(request) {
      if (request.kind.kind === 'Namespace') return examineNamespace(request, stores, clock);
      const key = `${keyPrefix}${request.namespace}`;
      const cached = namespaces.cached?.get(key);
      return cached === undefined ? examineLatest(request, key) : examine(request, policyOfStored(cached));
    },
  };
}

/** Whether a namespace has labels of this plugin. */
function isRestricted(labels: Readonly<Record<string, string>> | undefined): boolean {
  for (const name in labels) if (name.startsWith(prefix)) return true;
  return false;
}

function examine(request: AdmissionRequest, policy: Policy): void {
  const { kind, context } = request;
  if (kind.kind === 'Pod') {
    if (policy === unrestricted || isPrivileged(policy))
      context.annotate?.(`${prefix}enforce-policy`, 'privileged:latest');
    else if (request.operation === 'create' || isExamined(request.object as Pod, request.oldObject as Pod)) {
      const { metadata, spec } = request.object as Pod;
      apply(policy, podView(metadata?.annotations, spec), request);
    }
    return;
  }
  const { warn, audit, errors } = policy;
  if (warn.level === 'privileged' && audit.level === 'privileged' && errors.length === 0) return;
  const template = templateOf(request.object as KubeObject);
  if (template?.spec) apply(policy, podView(template.metadata?.annotations, template.spec), request);
}

/** True when an update adds or removes containers, or changes images. Nothing else that can change is examined. */
function isExamined({ spec }: Pod, { spec: old }: Pod): boolean {
  const differs = (field: 'containers' | 'initContainers') => {
    const [now = [], before = []] = [spec[field], old[field]];
    return now.length !== before.length || now.some(({ image }, i) => image !== before[i]?.image);
  };
  if (differs('containers') || differs('initContainers')) return true;
  const images = new Map((old.ephemeralContainers ?? []).map(({ name, image }) => [name, image ?? '']));
  return (spec.ephemeralContainers ?? []).some(({ name, image }) => images.get(name) !== (image ?? ''));
}

function templateOf(object: KubeObject): PodTemplateSpec | undefined {
  const { template } = object as PodTemplate;
  const { spec } = object as Deployment | CronJob;
  return template ?? (spec && 'jobTemplate' in spec ? spec.jobTemplate.spec.template : spec?.template);
}

/** Enforces the policy on pods, annotates the audit event, and warns unless the request is rejected. */
function apply(policy: Policy, pod: PodView, request: AdmissionRequest): void {
  const { context } = request;
  const isPod = request.kind.kind === 'Pod';
  const known = new Map<string, readonly Violation[]>();
  const violated = (demanded: LevelVersion): string | undefined => {
    const found = known.get(demanded.text) ?? evaluate(demanded, pod);
    known.set(demanded.text, found);
    return found.length === 0 ? undefined : `PodSecurity "${demanded.text}": ${detailsOf(found)}`;
  };
  if (context.annotate !== undefined) {
    if (policy.errors.length > 0)
      context.annotate(`${prefix}error`, `Failed to parse policy: ${textOf(policy.errors)}`);
    if (isPod) context.annotate(`${prefix}enforce-policy`, policy.enforce.text);
    const audited = violated(policy.audit);
    if (audited !== undefined) context.annotate(`${prefix}audit-violations`, `would violate ${audited}`);
  }
  const enforced = isPod ? violated(policy.enforce) : undefined;
  if (enforced !== undefined) throw refusal(request, `violates ${enforced}`);
  const warned = violated(policy.warn);
  if (warned !== undefined) context.warn(`would violate ${warned}`);
}

function textOf(errors: readonly FieldError[]): string {
  const texts = errors.map(({ field, message }) => `${field}: ${message}`);
  return texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(', ')}]`;
}
