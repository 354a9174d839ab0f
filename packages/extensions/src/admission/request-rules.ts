import { missingIsUndefined } from '@keelson/client';
import {
  type AdmissionRequest,
  type ApiClient,
  type GroupVersionResource,
  type KindDefinition,
  type KubeObject,
  type LabelSelector,
  statusErrors,
} from '@keelson/core';
import { kindPrefix } from '@keelson/core/internal';
import type { Clock } from '@keelson/core/runtime';
import { Namespace, type RuleWithOperations } from '@keelson/kinds';

/** The attributes of a request that are compared with the rules of webhooks and policies. */
export interface RuleSubject extends GroupVersionResource {
  /** `CREATE`, `UPDATE`, `DELETE`, `CONNECT`. */
  readonly operation: string;
  readonly subresource: string;
  readonly namespaced: boolean;
}

const any = '*';

function includes(values: readonly string[] | undefined, value: string): boolean {
  return values?.some((one) => one === any || one === value) ?? false;
}

/** Whether a rule selects a request. */
export function ruleMatches(rule: RuleWithOperations, subject: RuleSubject): boolean {
  if (rule.scope === 'Namespaced' && !subject.namespaced) return false;
  if (rule.scope === 'Cluster' && subject.namespaced) return false;
  if (!includes(rule.operations, subject.operation)) return false;
  if (!includes(rule.apiGroups, subject.group) || !includes(rule.apiVersions, subject.version)) return false;
  return (rule.resources ?? []).some((entry) => {
    const slash = entry.indexOf('/');
    const resource = slash < 0 ? entry : entry.slice(0, slash);
    const subresource = slash < 0 ? '' : entry.slice(slash + 1);
    return (
      (resource === any || resource === subject.resource) &&
      (subresource === any || subresource === subject.subresource)
    );
  });
}

export function subjectOf(request: AdmissionRequest, kind: KindDefinition = request.kind): RuleSubject {
  return {
    operation: request.operation.toUpperCase(),
    group: kind.group,
    version: kind.version,
    resource: kind.names.plural,
    subresource: request.subresource ?? '',
    namespaced: kind.scope === 'Namespaced',
  };
}

/**
 * Finds the other kinds, such as older API versions and the versions of a custom resource, that represent the same
 * stored objects as a given kind.
 */
export class EquivalentKinds {
  readonly #registry: { kinds(): readonly KindDefinition[]; readonly generation: number };
  #generation = Number.NaN;
  readonly #found = new Map<KindDefinition, readonly KindDefinition[]>();

  constructor(registry: { kinds(): readonly KindDefinition[]; readonly generation: number }) {
    this.#registry = registry;
  }

  /** The other kinds, in the order of discovery. */
  of(kind: KindDefinition): readonly KindDefinition[] {
    const { generation } = this.#registry;
    if (generation !== this.#generation) {
      this.#found.clear();
      this.#generation = generation;
    }
    let found = this.#found.get(kind);
    if (found === undefined) {
      const stored = kindPrefix(kind);
      found = this.#registry
        .kinds()
        .filter((other) => other.apiVersion !== kind.apiVersion && kindPrefix(other) === stored);
      this.#found.set(kind, found);
    }
    return found;
  }
}

/**
 * The kind to which the object must be converted for the first matching rule. This is the kind of the request or, with
 * the match policy `Equivalent`, another version of it. Undefined when no rule matches.
 */
export function matchingKind(
  rules: readonly RuleWithOperations[] | undefined,
  request: AdmissionRequest,
  equivalent: EquivalentKinds | undefined,
): KindDefinition | undefined {
  const own = subjectOf(request);
  if (rules?.some((rule) => ruleMatches(rule, own))) return request.kind;
  if (equivalent === undefined) return undefined;
  const { subresource } = request;
  const others = equivalent
    .of(request.kind)
    .filter(({ subresources }) => subresource === undefined || subresources.some(({ name }) => name === subresource));
  for (const rule of rules ?? []) {
    const found = others.find((kind) => ruleMatches(rule, subjectOf(request, kind)));
    if (found !== undefined) return found;
  }
  return undefined;
}

/**
 * Reads a namespace, from the cache if possible.
 *
 * @throws StatusError 404
 */
export async function readNamespace(client: ApiClient, name: string): Promise<KubeObject> {
  const namespaces = client.resource(Namespace);
  const cached = await namespaces.get(name, { resourceVersion: '0' }).catch(missingIsUndefined);
  return cached ?? (await namespaces.get(name));
}

/**
 * Whether the selectors of a webhook or policy select the object of a request. Namespace selectors do not exclude
 * cluster-scoped objects.
 *
 * @throws StatusError 404 for a namespace that does not exist
 */
export async function selects(
  { objects, namespaces }: { readonly objects: LabelSelector; readonly namespaces: LabelSelector },
  request: AdmissionRequest,
  client: ApiClient,
): Promise<boolean> {
  const { kind, operation, subresource, namespace, name, object, oldObject } = request;
  const selected = [object, oldObject].some((one) => one !== undefined && objects.matches(one.metadata?.labels));
  if (!objects.empty && !selected) return false;
  if (namespaces.empty) return true;
  const isNamespace = kind.group === '' && kind.names.plural === 'namespaces';
  if (isNamespace && subresource === undefined && (operation === 'create' || operation === 'update'))
    return namespaces.matches(object?.metadata?.labels ?? {});
  const named = isNamespace ? name : namespace;
  return !named || namespaces.matches((await readNamespace(client, named)).metadata?.labels ?? {});
}

/** Longest wait of a request for the first list of webhooks or policies. */
const readyTimeoutMs = 10_000;

/** Waits until webhooks or policies are known. @throws StatusError 403 when that takes too long */
export async function waitUntilSynced(
  index: { start(): Promise<void>; readonly synced: boolean },
  { kind, name }: AdmissionRequest,
  clock: Clock,
): Promise<void> {
  let cancel = () => {};
  const late = new Promise<void>((resolve) => {
    cancel = clock.after(readyTimeoutMs, resolve);
  });
  await Promise.race([index.start(), late]).finally(() => cancel());
  if (index.synced) return;
  const resource = { group: kind.group, resource: kind.names.plural };
  throw statusErrors.forbidden(resource, name, 'not yet ready to handle request');
}

const exempt: ReadonlySet<string> = new Set([
  'ValidatingWebhookConfiguration',
  'MutatingWebhookConfiguration',
  'ValidatingAdmissionPolicy',
  'ValidatingAdmissionPolicyBinding',
  'MutatingAdmissionPolicy',
  'MutatingAdmissionPolicyBinding',
]);

/**
 * Webhook and policy configurations are exempt from webhooks and policies, so that a wrong one can always be repaired.
 */
export function isExempt({ kind, byAction }: AdmissionRequest): boolean {
  return byAction === true || (kind.group === 'admissionregistration.k8s.io' && exempt.has(kind.kind));
}
