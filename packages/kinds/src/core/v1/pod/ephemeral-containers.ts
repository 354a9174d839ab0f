import { type FieldError, fieldError, type SubresourceDefinition, statusErrors } from '@keelson/core';
import { sameJson } from '../../../validation/checks.ts';
import type { Pod } from '../schema/index.ts';
import { defaultContainer } from './default-pod-spec.ts';
import { mirrorAnnotation } from './pod-annotations.ts';

/** Adds containers to a running pod, as `kubectl debug` does. They cannot be changed or removed afterwards. */
export const ephemeralContainersSubresource: SubresourceDefinition = {
  type: 'replace',
  name: 'ephemeralcontainers',
  patchable: true,
  apply(stored: Pod, { spec }: Pod) {
    const containers = spec.ephemeralContainers ?? [];
    for (const container of containers) defaultContainer(container);
    const errors = updateErrors(stored, containers);
    if (errors.length > 0) throw statusErrors.invalid({ group: '', kind: 'Pod' }, stored.metadata?.name ?? '', errors);
    if (containers.length === 0) delete stored.spec.ephemeralContainers;
    else stored.spec.ephemeralContainers = containers;
  },
};

function updateErrors(
  { metadata, spec }: Pod,
  containers: NonNullable<Pod['spec']['ephemeralContainers']>,
): FieldError[] {
  if (metadata?.annotations?.[mirrorAnnotation] !== undefined) {
    return [fieldError.forbidden('[]', 'static pods do not support ephemeral containers')];
  }
  const byName = new Map(containers.map((container) => [container.name, container]));
  return (spec.ephemeralContainers ?? []).flatMap((old) => {
    const container = byName.get(old.name);
    if (container !== undefined && sameJson(container, old)) return [];
    const change = container === undefined ? 'removed' : 'changed';
    const why = `existing ephemeral containers ${JSON.stringify(old.name)} may not be ${change}`;
    return [fieldError.forbidden('spec.ephemeralContainers', why)];
  });
}
