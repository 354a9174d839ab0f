import { fieldError } from '@keelson/core';
import type { Errors } from '../../../validation/errors.ts';
import type { Pod } from '../schema/index.ts';

/** A container that has ended for good does not come back to life in a status report. */
export function checkPodStatusUpdate(pod: Pod, old: Pod, errors: Errors): void {
  const { restartPolicy } = pod.spec;
  if (restartPolicy === 'Always') return;
  const sidecars = new Set<string>();
  for (const container of pod.spec.initContainers ?? [])
    if (container.restartPolicy === 'Always') sidecars.add(container.name);
  for (const field of ['initContainerStatuses', 'containerStatuses'] as const) {
    const ended = new Set<string>();
    for (const { name, state } of old.status?.[field] ?? []) {
      if (!state?.terminated || (field === 'initContainerStatuses' && sidecars.has(name))) continue;
      if (restartPolicy !== 'OnFailure' || state.terminated.exitCode === 0) ended.add(name);
    }
    pod.status?.[field]?.forEach(({ name, state }, i) => {
      if (!ended.has(name) || state?.terminated) return;
      errors.push(
        fieldError.forbidden(`status.${field}[${i}].state`, 'may not be transitioned to non-terminated state'),
      );
    });
  }
}
