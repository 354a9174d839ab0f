import { fieldError, type SubresourceDefinition, statusErrors } from '@keelson/core';
import { type Errors, newErrors, sameJson } from '../../../validation/checks.ts';
import type { Container, Pod, PodSpec, ResourceRequirements } from '../schema/index.ts';
import { checkPodSpec } from './check-pod-spec.ts';
import { defaultPodOnly, defaultPodSpec } from './default-pod-spec.ts';
import { mirrorAnnotation } from './pod-annotations.ts';
import { qosClassOf } from './resources.ts';

const lists = ['containers', 'initContainers'] as const;
const resizable = ['cpu', 'memory'] as const;

/** Changes the cpu and memory of the containers of a pod: see docs/reference/api-rules.md#resize. */
export const resizeSubresource: SubresourceDefinition = {
  type: 'replace',
  name: 'resize',
  patchable: true,
  apply(stored: Pod, { spec }: Pod) {
    defaultPodSpec(spec);
    defaultPodOnly(spec);
    const changed: PodSpec = { ...stored.spec };
    for (const list of lists) {
      const containers = withResources(spec[list] ?? [], stored.spec[list] ?? []);
      if (containers.length > 0) changed[list] = containers;
    }
    const errors = resizeErrors(stored, changed);
    if (errors.length > 0) throw statusErrors.invalid({ group: '', kind: 'Pod' }, stored.metadata?.name ?? '', errors);
    stored.spec = changed;
  },
};

/** The stored containers with the wanted resources; the wanted ones, which are rejected, when the names differ. */
function withResources(wanted: readonly Container[], stored: readonly Container[]): Container[] {
  if (!sameJson(wanted.map(nameOf), stored.map(nameOf))) return [...wanted];
  return stored.map((container, i) => {
    const { resources: _resources, resizePolicy: _resizePolicy, ...rest } = container;
    const { resources = {}, resizePolicy } = wanted[i] ?? {};
    return { ...rest, resources, ...(resizePolicy === undefined ? {} : { resizePolicy }) };
  });
}

const nameOf = ({ name }: Container): string => name;

function resizeErrors({ metadata, spec: old, status }: Pod, spec: PodSpec): Errors {
  const errors = newErrors();
  const refuse = (why: string) => {
    errors.push(fieldError.forbidden('[]', why));
    return errors;
  };
  if (hasPodResources(old)) return refuse('pods with pod-level resources cannot be resized');
  if (metadata?.annotations?.[mirrorAnnotation] !== undefined) return refuse('static pods cannot be resized');
  if (old.os?.name === 'windows') return refuse('windows pods cannot be resized');
  if ((status?.qosClass || qosClassOf(old)) !== qosClassOf(spec)) {
    const detail = 'Pod QOS Class may not change as a result of resizing';
    errors.push(fieldError.invalid('spec', status?.qosClass ?? '', detail));
  }
  // An agent that can resize reports the resources of the containers that run; the others never do.
  const running = status?.containerStatuses?.find(({ state }) => state?.running);
  if (running && !running.resources) {
    errors.push(fieldError.forbidden('spec', 'Pod running on node without support for resize'));
  }
  if (checkOrder(spec, old, errors)) checkResources(spec, old, errors);
  if (errors.length === 0) return errors;
  const all = newErrors();
  checkPodSpec(spec, 'pod', 'spec', all);
  all.push(...errors);
  return all;
}

function hasPodResources({ resources }: PodSpec): boolean {
  return Object.keys(resources?.requests ?? {}).length + Object.keys(resources?.limits ?? {}).length > 0;
}

/** Requires the same containers in the same order; returns whether they are. */
function checkOrder(spec: PodSpec, old: PodSpec, errors: Errors): boolean {
  const before = errors.length;
  for (const list of lists) {
    const containers = spec[list] ?? [];
    if (containers.length !== (old[list]?.length ?? 0)) {
      errors.push(fieldError.forbidden(`spec.${list}`, `${list} may not be added or removed on resize`));
      continue;
    }
    old[list]?.forEach(({ name }, i) => {
      if (containers[i]?.name === name) return;
      const detail = `${list} may not be renamed or reordered on resize`;
      errors.push(fieldError.forbidden(`spec.${list}[${i}].name`, detail));
    });
  }
  return errors.length === before;
}

/** Requires that containers and sidecars keep all resources, and that nothing but their cpu and memory differs. */
function checkResources(spec: PodSpec, old: PodSpec, errors: Errors): void {
  const each = (list: (typeof lists)[number], check: (before: Container, now: Container, path: string) => void) =>
    old[list]?.forEach((before, i) => {
      check(before, spec[list]?.[i] ?? before, `spec.${list}[${i}].resources`);
    });
  const isSidecar = ({ restartPolicy }: Container) => restartPolicy === 'Always';
  each('initContainers', (before, now, path) => {
    if (isSidecar(before)) checkRemoved(before.resources, now.resources, path, errors);
  });
  each('containers', (before, now, path) => checkRemoved(before.resources, now.resources, path, errors));
  each('containers', (before, now) => {
    if (sameJson(withOldAmounts(now, before), before)) return;
    errors.push(fieldError.forbidden('spec', 'only cpu and memory resources are mutable'));
  });
  each('initContainers', (before, now) => {
    if (sameJson(isSidecar(before) ? withOldAmounts(now, before) : now, before)) return;
    const detail = isSidecar(before)
      ? 'only cpu and memory resources for sidecar containers are mutable'
      : 'resources for non-sidecar init containers are immutable';
    errors.push(fieldError.forbidden('spec', detail));
  });
}

function checkRemoved(
  before: ResourceRequirements = {},
  now: ResourceRequirements = {},
  path: string,
  errors: Errors,
): void {
  for (const field of ['requests', 'limits'] as const) {
    const amounts = now[field] ?? {};
    if (Object.keys(before[field] ?? {}).every((name) => Object.hasOwn(amounts, name))) continue;
    errors.push(fieldError.forbidden(`${path}.${field}`, `resource ${field} cannot be removed`));
  }
}

/** The container with the former cpu and memory. As in Kubernetes, a list that did not exist may have any amounts. */
function withOldAmounts(container: Container, { resources: before = {} }: Container): Container {
  const resources: ResourceRequirements = {};
  for (const field of ['requests', 'limits'] as const) {
    const old = before[field];
    if (!old) continue;
    const amounts = { ...container.resources?.[field] };
    for (const name of resizable) {
      if (Object.hasOwn(old, name)) amounts[name] = old[name] ?? '0';
      else delete amounts[name];
    }
    resources[field] = amounts;
  }
  return { ...container, resources };
}
