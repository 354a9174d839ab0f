import { type NamespaceMode, RuntimeError } from '@keelson/container-runtime';
import type { PodPlace } from '../sandbox/pod-place.ts';
import type { OciNamespace } from './oci-spec.ts';

/**
 * Namespaces of a container. With `unifiedCgroups` it has a cgroup namespace. @throws RuntimeError `InvalidArgument`
 */
export function namespacesOf(pid: NamespaceMode, pod: PodPlace, unifiedCgroups: boolean): OciNamespace[] {
  const namespaces: OciNamespace[] = [{ type: 'mount' }];
  if (pod.network !== undefined) namespaces.push({ type: 'network', path: pod.network });
  if (pod.ipc !== undefined) namespaces.push({ type: 'ipc', path: pod.ipc });
  if (pod.uts !== undefined) namespaces.push({ type: 'uts', path: pod.uts });
  if (unifiedCgroups) namespaces.push({ type: 'cgroup' });
  if (pid === 'container') namespaces.push({ type: 'pid' });
  else if (pid === 'pod') {
    if (pod.pid === undefined) throw new RuntimeError('InvalidArgument', 'the sandbox has no PID namespace to share');
    namespaces.push({ type: 'pid', path: pod.pid });
  }
  return namespaces;
}
