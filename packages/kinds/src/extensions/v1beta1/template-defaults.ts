import type { KubeObject, LabelSelectorSpec } from '@keelson/core';
import type { PodTemplateSpec } from '../../core/v1/schema/index.ts';

interface Selecting extends KubeObject {
  spec: { selector?: LabelSelectorSpec; template: PodTemplateSpec };
}

/** Sets the defaults of this version: selector and labels are those of the template. */
export function defaultFromTemplate(object: Selecting): void {
  const labels = object.spec.template.metadata?.labels;
  if (!labels) return;
  object.spec.selector ??= { matchLabels: { ...labels } };
  object.metadata ??= {};
  if (Object.keys(object.metadata.labels ?? {}).length === 0) object.metadata.labels = { ...labels };
}
