import { quantityValue } from '@keelson/core';
import type { Container, Pod } from '@keelson/kinds';
import { initContainersOf, isSidecar } from '../../base/pod/pod-spec.ts';

/** The request of a container in bytes; its limit if there is no request. */
export function containerRequest({ resources }: Container, name: 'memory' | 'ephemeral-storage'): number {
  const amount = resources?.requests?.[name] ?? resources?.limits?.[name];
  return amount === undefined ? 0 : Number(quantityValue(amount));
}

/**
 * The sum of the requests of the containers of a pod, or the largest request of an init container if that is more, in
 * bytes.
 */
export function podRequest(pod: Pod, name: 'memory' | 'ephemeral-storage'): number {
  const sum = (containers: readonly Container[]) =>
    containers.reduce((all, one) => all + containerRequest(one, name), 0);
  const init = initContainersOf(pod);
  const sidecars = sum(init.filter(isSidecar));
  const alone = init.filter((one) => !isSidecar(one)).map((one) => containerRequest(one, name));
  return Math.max(sum(pod.spec.containers ?? []), 0, ...alone) + sidecars;
}
