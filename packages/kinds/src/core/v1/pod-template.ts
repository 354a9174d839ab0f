import { type Column, defineKind, type KindDefinition } from '@keelson/core';
import { column, labelsText, nameColumn } from '../../columns/columns.ts';
import { newErrors } from '../../validation/checks.ts';
import { checkPodTemplate } from './pod/check-pod-spec.ts';
import { defaultPodSpec } from './pod/default-pod-spec.ts';
import { templateWarnings } from './pod/pod-warnings.ts';
import { PodTemplateSchema, type PodTemplate as PodTemplateType } from './schema/index.ts';

const containersOf = ({ template }: PodTemplateType) => template?.spec?.containers ?? [];

const columns: readonly Column<PodTemplateType>[] = [
  nameColumn(),
  column('Containers', 'string', 'Names of the containers.', (object) =>
    containersOf(object)
      .map(({ name }) => name)
      .join(','),
  ),
  column('Images', 'string', 'Images of the containers.', (object) =>
    containersOf(object)
      .map(({ image }) => image ?? '')
      .join(','),
  ),
  column('Pod Labels', 'string', 'Labels of the pods.', ({ template }) => labelsText(template?.metadata?.labels)),
];

/** A named template of pods, to which controllers can refer. */
export const PodTemplate: KindDefinition<PodTemplateType> = defineKind({
  group: '',
  version: 'v1',
  kind: 'PodTemplate',
  schema: PodTemplateSchema,
  strategy: {
    generation: 'spec',
    deleteReturnsObject: true,
    default: ({ template }) => defaultPodSpec(template.spec),
    validate({ template }) {
      const errors = newErrors();
      checkPodTemplate(template, 'template', errors);
      return errors;
    },
    warnings: (object, old) => templateWarnings(object, old, object.template, 'template'),
  },
  columns,
});
export type PodTemplate = PodTemplateType;
