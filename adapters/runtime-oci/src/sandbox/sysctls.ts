import { type PodSandboxConfig, RuntimeError } from '@keelson/container-runtime';
import type { PodPlace } from './pod-place.ts';

const ofIpc = [/^kernel\.(shm\w+|msg\w+|sem)$/, /^fs\.mqueue\.\w+$/];
const ofNetwork = /^net\.[\w./-]+$/;

/**
 * Kernel parameters of the pod's own namespaces, as paths below /proc/sys and values.
 * @throws `InvalidArgument` for one that is the whole machine's, in general or because the pod shares the machine's
 *   namespace
 */
export function sysctlsOf(
  config: PodSandboxConfig,
  place: PodPlace,
): { readonly path: string; readonly value: string }[] {
  return Object.entries(config.sysctls ?? {}).map(([name, value]) => {
    // A slash stands for a dot in names that have dots of their own, like those of interfaces.
    const path = name.includes('/') ? name : name.replaceAll('.', '/');
    const dotted = path.replaceAll('/', '.');
    const own =
      (ofNetwork.test(dotted) && place.network !== undefined) ||
      (ofIpc.some((pattern) => pattern.test(dotted)) && place.ipc !== undefined);
    if (!own || path.split('/').some((part) => part === '..' || part === ''))
      throw new RuntimeError('InvalidArgument', `sysctl "${name}" is not in a namespace of the pod's own`);
    return { path, value };
  });
}
