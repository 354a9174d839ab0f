import type { PodSpec } from '../schema/index.ts';
import { defaultContainer } from './default-container.ts';
import { defaultVolume } from './default-volume.ts';

/**
 * Sets the defaults of the spec of a pod or of a pod template: see docs/reference/api-rules.md#defaults-of-kinds.
 * Idempotent.
 */
export function defaultPodSpec(spec: PodSpec): void {
  spec.restartPolicy ||= 'Always';
  spec.dnsPolicy ||= 'ClusterFirst';
  spec.schedulerName ||= 'default-scheduler';
  spec.terminationGracePeriodSeconds ??= 30;
  spec.securityContext ??= {};
  mirrorServiceAccount(spec);
  for (const volume of spec.volumes ?? []) defaultVolume(volume);
  for (const container of spec.initContainers ?? []) defaultContainer(container, spec.hostNetwork === true);
  for (const container of spec.containers ?? []) defaultContainer(container, spec.hostNetwork === true);
  for (const container of spec.ephemeralContainers ?? []) defaultContainer(container, false);
}

/** Sets the defaults of pods that do not apply to pod templates. */
export function defaultPodOnly(spec: PodSpec): void {
  spec.enableServiceLinks ??= true;
  for (const container of [...(spec.initContainers ?? []), ...(spec.containers ?? [])]) {
    const limits = container.resources?.limits;
    if (!limits || !container.resources) continue;
    const requests = container.resources.requests ?? {};
    for (const [name, limit] of Object.entries(limits)) if (!Object.hasOwn(requests, name)) requests[name] = limit;
    if (Object.keys(requests).length > 0) container.resources.requests = requests;
  }
}

/** Sets `serviceAccount`, the deprecated name of `serviceAccountName`, and vice versa. */
function mirrorServiceAccount(spec: PodSpec): void {
  const name = spec.serviceAccountName || spec.serviceAccount;
  if (!name) return;
  spec.serviceAccountName = name;
  spec.serviceAccount = name;
}
