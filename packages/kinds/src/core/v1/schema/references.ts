import { always, type Infer, optional, type Schema, s } from '@keelson/core';

const objectReference = s.message(
  'k8s.io.api.core.v1.ObjectReference',
  'Points at an object of any kind, or at a part of one.',
  {
    kind: optional(1, s.string(), 'Kind of the object.'),
    namespace: optional(2, s.string(), 'Namespace of the object, empty for cluster-scoped kinds.'),
    name: optional(3, s.string(), 'Name of the object.'),
    uid: optional(4, s.string(), 'UID of the object.'),
    apiVersion: optional(5, s.string(), 'Group and version of the object.'),
    resourceVersion: optional(6, s.string(), 'Specific version of the object.'),
    fieldPath: optional(
      7,
      s.string(),
      'Referenced part of the object in JavaScript notation, e.g. spec.containers{web}.',
    ),
  },
  { mapType: 'atomic' },
);
export interface ObjectReference extends Infer<typeof objectReference> {}
export const ObjectReferenceSchema: Schema<ObjectReference> = objectReference;

const localObjectReference = s.message(
  'k8s.io.api.core.v1.LocalObjectReference',
  'Names an object in the same namespace; the kind follows from the place.',
  {
    name: optional(1, s.string(), 'Name of the object.'),
  },
  { mapType: 'atomic' },
);
export interface LocalObjectReference extends Infer<typeof localObjectReference> {}
export const LocalObjectReferenceSchema: Schema<LocalObjectReference> = localObjectReference;

const typedLocalObjectReference = s.message(
  'k8s.io.api.core.v1.TypedLocalObjectReference',
  'Names an object of a given kind in the same namespace.',
  {
    apiGroup: optional(1, s.string(), 'API group of the kind; unset means the core group.', { presence: true }),
    kind: always(2, s.string(), 'Kind of the object.'),
    name: always(3, s.string(), 'Name of the object.'),
  },
  { mapType: 'atomic' },
);
export interface TypedLocalObjectReference extends Infer<typeof typedLocalObjectReference> {}
export const TypedLocalObjectReferenceSchema: Schema<TypedLocalObjectReference> = typedLocalObjectReference;

const typedObjectReference = s.message(
  'k8s.io.api.core.v1.TypedObjectReference',
  'Names an object of a given kind, possibly in another namespace.',
  {
    apiGroup: optional(1, s.string(), 'API group of the kind; unset means the core group.', { presence: true }),
    kind: always(2, s.string(), 'Kind of the object.'),
    name: always(3, s.string(), 'Name of the object.'),
    namespace: optional(4, s.string(), "Namespace of the object; another than one's own has to be granted there.", {
      presence: true,
    }),
  },
);
export interface TypedObjectReference extends Infer<typeof typedObjectReference> {}
export const TypedObjectReferenceSchema: Schema<TypedObjectReference> = typedObjectReference;
