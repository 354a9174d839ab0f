import { statusErrors } from '@keelson/core';
import type { Pod } from '../schema/index.ts';

const names = (containers: readonly { readonly name: string }[] = []): string[] => containers.map(({ name }) => name);

/**
 * The container that a request addresses: the requested one, or the only container of the pod.
 *
 * @throws StatusError 400 when the pod has no container of that name, or no name is given and it has several.
 */
export function containerChoice(pod: Pod, wanted: unknown): string {
  const { containers, initContainers, ephemeralContainers } = pod.spec;
  const name = pod.metadata?.name ?? '';
  const all = [...names(initContainers), ...names(containers), ...names(ephemeralContainers)];
  if (typeof wanted === 'string') {
    if (all.includes(wanted)) return wanted;
    throw statusErrors.badRequest(`container ${wanted} is not valid for pod ${name}`);
  }
  const [only] = containers;
  if (only !== undefined && containers.length === 1) return only.name;
  const text = `a container name must be specified for pod ${name}`;
  throw statusErrors.badRequest(only === undefined ? text : `${text}, choose one of: [${all.join(' ')}]`);
}

/** The node that a pod is assigned to. @throws StatusError 400 when the pod is not assigned. */
export function hostOf(pod: Pod): string {
  const { nodeName } = pod.spec;
  if (!nodeName) throw statusErrors.badRequest(`pod ${pod.metadata?.name ?? ''} does not have a host assigned`);
  return nodeName;
}
