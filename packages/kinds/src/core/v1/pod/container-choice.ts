import { statusErrors } from '@keelson/core';
import type { Pod } from '../schema/index.ts';

const names = (containers: readonly { readonly name: string }[] = []): string[] => containers.map(({ name }) => name);

/**
 * The container that a call is about: the one it names, or the only one.
 *
 * @throws StatusError 400 when the pod has no such container, or several to choose from.
 */
export function containerChoice(pod: Pod, wanted: unknown): string {
  const { containers, initContainers, ephemeralContainers } = pod.spec;
  const name = pod.metadata?.name ?? '';
  const [main, initial, ephemeral] = [names(containers), names(initContainers), names(ephemeralContainers)];
  if (typeof wanted === 'string') {
    if ([...main, ...initial, ...ephemeral].includes(wanted)) return wanted;
    throw statusErrors.badRequest(`container ${wanted} is not valid for pod ${name}`);
  }
  const [only] = main;
  if (only !== undefined && main.length === 1) return only;
  let text = `a container name must be specified for pod ${name}`;
  if (main.length > 0) text += `, choose one of: [${main.join(' ')}]`;
  if (initial.length > 0) text += ` or one of the init containers: [${initial.join(' ')}]`;
  if (ephemeral.length > 0) text += ` or one of the ephemeral containers: [${ephemeral.join(' ')}]`;
  throw statusErrors.badRequest(text);
}

/** The node of a pod. @throws StatusError 400 when it has none yet */
export function hostOf(pod: Pod): string {
  const { nodeName } = pod.spec;
  if (!nodeName) throw statusErrors.badRequest(`pod ${pod.metadata?.name ?? ''} does not have a host assigned`);
  return nodeName;
}
