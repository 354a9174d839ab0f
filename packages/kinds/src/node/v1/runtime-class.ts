import { defineKind, dns1123LabelErrors, type FieldError, fieldError, type KindDefinition } from '@keelson/core';
import { ageColumn, column, nameColumn } from '../../columns/columns.ts';
import { checkTolerations } from '../../core/v1/pod/check-scheduling.ts';
import { checkContainerResources } from '../../core/v1/pod/resources.ts';
import { checkLabels, checkUnchanged, newErrors, pushInvalid } from '../../validation/checks.ts';
import { labelWarnings } from '../../validation/deprecated-labels.ts';
import { RuntimeClassSchema, type RuntimeClass as RuntimeClassType } from './schema.ts';

/** Names a way to run containers; a pod chooses it with `runtimeClassName`. */
export const RuntimeClass: KindDefinition<RuntimeClassType> = defineKind({
  group: 'node.k8s.io',
  version: 'v1',
  kind: 'RuntimeClass',
  scope: 'Cluster',
  names: { plural: 'runtimeclasses' },
  schema: RuntimeClassSchema,
  strategy: {
    generation: 'none',
    allowCreateOnUpdate: true,
    allowUnconditionalUpdate: false,
    validate: validateClass,
    warnings: ({ scheduling }) =>
      Object.keys(scheduling?.nodeSelector ?? {}).flatMap((key) => labelWarnings(key, 'scheduling.nodeSelector')),
    validateUpdate(object, old) {
      const errors = newErrors();
      checkUnchanged(object.handler, old.handler, 'handler', errors);
      return errors;
    },
  },
  columns: [
    nameColumn(),
    column('Handler', 'string', 'Configuration of the runtime.', (object: RuntimeClassType) => object.handler),
    ageColumn,
  ],
});
export type RuntimeClass = RuntimeClassType;

function validateClass({ handler, overhead, scheduling }: RuntimeClassType): FieldError[] {
  const errors = newErrors();
  pushInvalid(dns1123LabelErrors(handler), handler, 'handler', errors);
  const { podFixed } = overhead ?? {};
  if (podFixed) checkContainerResources({ limits: podFixed, requests: podFixed }, new Set(), 'overhead', errors);
  checkLabels(scheduling?.nodeSelector, 'scheduling.nodeSelector', errors);
  checkTolerations(scheduling?.tolerations, 'scheduling.tolerations.tolerations', errors);
  const seen = new Set<string>();
  scheduling?.tolerations?.forEach((toleration, i) => {
    const { key, operator, value, effect } = toleration;
    const id = JSON.stringify([key, operator, value, effect]);
    if (seen.has(id)) errors.push(fieldError.duplicate(`scheduling.tolerations[${i}]`, toleration));
    seen.add(id);
  });
  return errors;
}
