import type { KubeObject } from '@keelson/core';

/** A status report does not move an object out of the reach of selectors: labels keep their stored value. */
export function restoreLabels(object: KubeObject, old: KubeObject): void {
  if (!object.metadata) return;
  if (old.metadata?.labels) object.metadata.labels = old.metadata.labels;
  else delete object.metadata.labels;
}
