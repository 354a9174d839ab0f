import { type Amounts, amountOf, podAmounts } from '@keelson/controllers';
import { type AdmissionPlugin, type AdmissionRequest, compareQuantities, quantityMilliValue } from '@keelson/core';
import { type Container, type coreV1, LimitRange, type PersistentVolumeClaim, type Pod } from '@keelson/kinds';
import type { CachedObjects } from './cached-objects.ts';
import { refusal } from './default-admission.ts';

type Item = coreV1.LimitRangeItem;

const annotation = 'kubernetes.io/limit-ranger';

/**
 * Completes requests and limits of containers from the LimitRanges of the namespace, and rejects pods and claims
 * outside them. Behaviour and messages are those of the plugin LimitRanger of kube-apiserver.
 */
export function limitRanger(objects: CachedObjects): AdmissionPlugin {
  /** The limits that `mutate` has read, for `validate` of the same request. */
  const known = new WeakMap<AdmissionRequest, readonly LimitRange[]>();
  const limitsOf = async (request: AdmissionRequest): Promise<readonly LimitRange[]> => {
    const limits = known.get(request) ?? (await objects.list(LimitRange, request.namespace ?? ''));
    known.set(request, limits);
    return limits;
  };
  return {
    name: 'LimitRanger',
    resources: ['pods', 'persistentvolumeclaims'],
    handles: ({ kind, operation, subresource, oldObject }) =>
      (operation === 'create'
        ? subresource === undefined
        : operation === 'update' &&
          subresource === (kind.names.plural === 'persistentvolumeclaims' ? undefined : 'resize')) &&
      oldObject?.metadata?.deletionTimestamp === undefined,
    async mutate(request) {
      if (request.kind.names.plural !== 'pods' || request.subresource !== undefined) return;
      for (const { spec } of await limitsOf(request)) setDefaults(request.object as Pod, spec.limits);
    },
    async validate(request) {
      for (const { spec } of await limitsOf(request)) {
        const items = spec.limits;
        const problems = new Set(
          request.kind.names.plural === 'pods'
            ? items.flatMap((item) => podProblems(request.object as Pod, item))
            : items.flatMap((item) => claimProblems(request.object as PersistentVolumeClaim, item)),
        );
        if (problems.size === 0) continue;
        const [only = '', ...more] = problems;
        throw refusal(request, more.length === 0 ? only : `[${[...problems].join(', ')}]`);
      }
    },
  };
}

function setDefaults(pod: Pod, items: readonly Item[]): void {
  const containers = items.filter(({ type }) => type === 'Container');
  const limits: Amounts = Object.assign({}, ...containers.map((item) => item.default));
  const requests: Amounts = Object.assign({}, ...containers.map((item) => item.defaultRequest));
  const texts = [
    ...pod.spec.containers.flatMap((one) => completed(one, 'container', requests, limits)),
    ...(pod.spec.initContainers ?? []).flatMap((one) => completed(one, 'init container', requests, limits)),
  ];
  if (texts.length === 0) return;
  const annotations = { ...pod.metadata?.annotations, [annotation]: `LimitRanger plugin set: ${texts.join('; ')}` };
  pod.metadata = { ...pod.metadata, annotations };
}

/** Sets the missing requests and limits of a container to the defaults. Returns a description of each change. */
function completed(container: Container, role: string, requests: Amounts, limits: Amounts): string[] {
  const { resources = {} } = container;
  const texts: string[] = [];
  const complete = (field: 'requests' | 'limits', defaults: Amounts) => {
    const missing = Object.keys(defaults).filter((name) => amountOf(resources[field], name) === undefined);
    if (missing.length === 0) return;
    resources[field] = {
      ...resources[field],
      ...Object.fromEntries(missing.map((name) => [name, amountOf(defaults, name) ?? '0'])),
    };
    const word = field === 'requests' ? 'request' : 'limit';
    texts.push(`${missing.sort().join(', ')} ${word} for ${role} ${container.name}`);
  };
  complete('requests', requests);
  complete('limits', limits);
  if (texts.length > 0) container.resources = resources;
  return texts;
}

function podProblems(pod: Pod, item: Item): string[] {
  if (item.type === 'Pod') return problems(item, podAmounts(pod, 'requests'), podAmounts(pod, 'limits'));
  if (item.type !== 'Container') return [];
  return [...pod.spec.containers, ...(pod.spec.initContainers ?? [])].flatMap(({ resources }) =>
    problems(item, resources?.requests, resources?.limits),
  );
}

function problems(item: Item, requests: Amounts = {}, limits: Amounts = {}): string[] {
  const each = (amounts: Amounts | undefined, check: (name: string, enforced: string) => string | undefined) =>
    Object.keys(amounts ?? {})
      .sort()
      .flatMap((name) => check(name, amountOf(amounts, name) ?? '0') ?? []);
  return [
    ...each(item.min, (name, enforced) =>
      belowMinimum(item, name, enforced, amountOf(requests, name), amountOf(limits, name)),
    ),
    ...each(item.max, (name, enforced) =>
      aboveMaximum(item, name, enforced, amountOf(requests, name), amountOf(limits, name)),
    ),
    ...each(item.maxLimitRequestRatio, (name, enforced) =>
      aboveRatio(item, name, enforced, amountOf(requests, name), amountOf(limits, name)),
    ),
  ];
}

function claimProblems({ spec }: PersistentVolumeClaim, item: Item): string[] {
  if (item.type !== 'PersistentVolumeClaim') return [];
  const requested = spec.resources?.requests;
  const found: string[] = [];
  for (const [name, enforced] of Object.entries(item.min ?? {})) {
    found.push(belowMinimum(item, name, enforced, amountOf(requested, name), undefined) ?? '');
  }
  for (const [name, enforced] of Object.entries(item.max ?? {})) {
    const request = amountOf(requested, name);
    const text = `maximum ${name} usage per ${item.type} is ${enforced}`;
    if (request === undefined) found.push(`${text}.  No request is specified`);
    else if (compareQuantities(request, enforced) > 0) found.push(`${text}, but request is ${request}`);
  }
  return found.filter((text) => text !== '');
}

type Amount = string | undefined;

function belowMinimum({ type }: Item, name: string, min: string, request: Amount, limit: Amount): string | undefined {
  const text = `minimum ${name} usage per ${type} is ${min}`;
  if (request === undefined) return `${text}.  No request is specified`;
  if (compareQuantities(request, min) < 0) return `${text}, but request is ${request}`;
  return limit !== undefined && compareQuantities(limit, min) < 0 ? `${text}, but limit is ${limit}` : undefined;
}

function aboveMaximum({ type }: Item, name: string, max: string, request: Amount, limit: Amount): string | undefined {
  const text = `maximum ${name} usage per ${type} is ${max}`;
  if (limit === undefined) return `${text}.  No limit is specified`;
  if (compareQuantities(limit, max) > 0) return `${text}, but limit is ${limit}`;
  return request !== undefined && compareQuantities(request, max) > 0
    ? `${text}, but request is ${request}`
    : undefined;
}

function aboveRatio({ type }: Item, name: string, max: string, request: Amount, limit: Amount): string | undefined {
  const text = `${name} max limit to request ratio per ${type} is ${max}`;
  const requested = Number(quantityMilliValue(request ?? '0'));
  const limited = Number(quantityMilliValue(limit ?? '0'));
  if (requested === 0) return `${text}, but no request is specified or request is 0`;
  if (limited === 0) return `${text}, but no limit is specified or limit is 0`;
  const ratio = limited / requested;
  if (ratio * 1000 <= Number(quantityMilliValue(max))) return undefined;
  return `${text}, but provided ratio is ${ratio.toFixed(6)}`;
}
