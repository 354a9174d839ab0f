import { always, type Infer, type KubeObject, optional, type Schema, s } from '@keelson/core';

const priorityClass = s.message(
  'k8s.io.api.scheduling.v1.PriorityClass',
  'Assigns a priority to a name that pods use.',
  {
    value: always(2, s.int32(), 'The priority of such pods.'),
    globalDefault: optional(3, s.bool(), 'True assigns it to pods that name no class.'),
    description: optional(4, s.string(), 'What the class is for.'),
    preemptionPolicy: optional(
      5,
      s.string({ values: ['Never', 'PreemptLowerPriority'] }),
      'Whether such pods may displace others: PreemptLowerPriority or Never.',
      {
        presence: true,
      },
    ),
  },
);
export interface PriorityClass extends KubeObject, Infer<typeof priorityClass> {}
export const PriorityClassSchema: Schema<PriorityClass> = priorityClass;
