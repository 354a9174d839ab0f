import { defineKind, type KindDefinition, type Status } from '@keelson/core';
import { type Binding as BindingObject, BindingSchema } from './schema/index.ts';

/** Assigns the pod of its name to a node: the same as the subresource `binding` of that pod. */
export const Binding: KindDefinition<BindingObject> = defineKind({
  group: '',
  version: 'v1',
  kind: 'Binding',
  schema: BindingSchema,
  virtual: {
    create: (binding, call) =>
      call.createSubresource(
        { group: '', version: 'v1', resource: 'pods' },
        binding.metadata?.name ?? '',
        'binding',
        binding,
      ) as Promise<BindingObject | Status>,
  },
});
export type Binding = BindingObject;
