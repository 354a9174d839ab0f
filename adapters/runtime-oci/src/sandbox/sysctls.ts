import { type PodSandboxConfig, RuntimeError } from '@keelson/container-runtime';
import type { PodPlace } from './pod-place.ts';

const ofIpc = [/^kernel\.(shm\w+|msg\w+|sem)$/, /^fs\.mqueue\.\w+$/];
const ofNetwork = /^net\.[\w./-]+$/;

/**
 * Converts the sysctls of a pod to paths below /proc/sys and values.
 *
 * @throws RuntimeError `InvalidArgument` for a sysctl that would affect the machine, because it is not namespaced or
 *   because the pod shares the namespace of the machine
 */
export function sysctlsOf(
  config: PodSandboxConfig,
  place: PodPlace,
): { readonly path: string; readonly value: string }[] {
  return Object.entries(config.sysctls ?? {}).map(([name, value]) => {
    // Slashes are separators in names that contain dots, such as those of interfaces.
    const path = name.includes('/') ? name : name.replaceAll('.', '/');
    const dotted = path.replaceAll('/', '.');
    const own =
      (ofNetwork.test(dotted) && place.network !== undefined) ||
      (ofIpc.some((pattern) => pattern.test(dotted)) && place.ipc !== undefined);
    if (!own || path.split('/').some((part) => part === '..' || part === ''))
      throw new RuntimeError('InvalidArgument', `sysctl "${name}" does not belong to a namespace of the pod`);
    return { path, value };
  });
}
