import type { KubeObject } from '@keelson/core';

/** Restores the stored labels, which a status update must not change. */
export function restoreLabels(object: KubeObject, old: KubeObject): void {
  if (!object.metadata) return;
  if (old.metadata?.labels) object.metadata.labels = old.metadata.labels;
  else delete object.metadata.labels;
}
