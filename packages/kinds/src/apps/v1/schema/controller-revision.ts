import { always, type Infer, type KubeObject, optional, type Schema, s } from '@keelson/core';

const controllerRevision = s.message(
  'k8s.io.api.apps.v1.ControllerRevision',
  'A state that a controller keeps, to be able to return to it.',
  {
    data: optional(2, s.raw(), 'The state, which only its controller reads.'),
    revision: always(3, s.int64(), 'Number of the state; later ones are greater.'),
  },
);
export interface ControllerRevision extends KubeObject, Infer<typeof controllerRevision> {}
export const ControllerRevisionSchema: Schema<ControllerRevision> = controllerRevision;
