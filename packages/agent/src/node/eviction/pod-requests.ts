import { quantityValue } from '@keelson/core';
import type { Container, Pod } from '@keelson/kinds';
import { initContainersOf, isSidecar } from '../../base/pod/pod-spec.ts';

/** What a container asks for of a resource; where only a limit is given, that. Bytes. */
export function containerRequest({ resources }: Container, name: 'memory' | 'ephemeral-storage'): number {
  const amount = resources?.requests?.[name] ?? resources?.limits?.[name];
  return amount === undefined ? 0 : Number(quantityValue(amount));
}

/** What the containers of a pod ask for together, or one init container alone, whichever is more. Bytes. */
export function podRequest(pod: Pod, name: 'memory' | 'ephemeral-storage'): number {
  const sum = (containers: readonly Container[]) =>
    containers.reduce((all, one) => all + containerRequest(one, name), 0);
  const init = initContainersOf(pod);
  const sidecars = sum(init.filter(isSidecar));
  const alone = init.filter((one) => !isSidecar(one)).map((one) => containerRequest(one, name));
  return Math.max(sum(pod.spec.containers ?? []), 0, ...alone) + sidecars;
}
