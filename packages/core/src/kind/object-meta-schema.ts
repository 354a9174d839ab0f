import type { ListMeta, ManagedFieldsEntry, ObjectMeta, OwnerReference } from '../meta/types.ts';
import { always, optional, type Schema, s } from './schema.ts';

const metaV1 = 'k8s.io.apimachinery.pkg.apis.meta.v1';

/** A link from a dependent object to its owner. */
export const ownerReferenceSchema: Schema<OwnerReference> = s.message(
  `${metaV1}.OwnerReference`,
  'Names an object that this one belongs to. The owner lives in the same namespace or is cluster-scoped; when it goes, the garbage collector removes the dependent.',
  {
    apiVersion: always(5, s.string(), 'Group and version of the owner.'),
    kind: always(1, s.string(), 'Kind of the owner.'),
    name: always(3, s.string(), 'Name of the owner.'),
    uid: always(4, s.string(), 'UID of the owner; an object of the same name with another UID is not the owner.'),
    controller: optional(6, s.bool(), 'Marks the one owner that manages this object.', { presence: true }),
    blockOwnerDeletion: optional(
      7,
      s.bool(),
      'When true, a foreground deletion of the owner waits until this object is gone or the link is removed.',
      { presence: true },
    ),
  },
  { mapType: 'atomic' },
);

/** Which manager set which fields. */
export const managedFieldsEntrySchema: Schema<ManagedFieldsEntry> = s.message(
  `${metaV1}.ManagedFieldsEntry`,
  'Records the set of fields that one manager has set through one kind of operation.',
  {
    manager: optional(1, s.string(), 'Who changed the fields.'),
    operation: optional(2, s.string(), 'How they were changed: Apply or Update.'),
    apiVersion: optional(3, s.string(), 'Version of the object to which the set of fields refers.'),
    time: optional(4, s.time(), 'When the entry was made or last changed.'),
    fieldsType: optional(6, s.string(), 'Format of fieldsV1; only FieldsV1 exists.'),
    fieldsV1: optional(7, s.raw(), 'The set of fields, as a tree.'),
    subresource: optional(
      8,
      s.string(),
      'The subresource through which the change was made, empty for the object itself.',
    ),
  },
);

/** Metadata that every object has. */
export const objectMetaSchema: Schema<ObjectMeta> = s.message(
  `${metaV1}.ObjectMeta`,
  'Metadata of an object: what names it, what the server keeps about it, and what users attach to it.',
  {
    name: optional(
      1,
      s.string(),
      'Name of the object, unique among the objects of its kind in its namespace. Cannot be changed.',
    ),
    generateName: optional(
      2,
      s.string(),
      'Beginning of a name that the server completes with random characters when name is empty.',
    ),
    namespace: optional(
      3,
      s.string(),
      'Namespace in which the object lives; empty for cluster-scoped kinds. Cannot be changed.',
    ),
    selfLink: optional(4, s.string(), 'Path of the object. A relic that servers need not fill.'),
    uid: optional(5, s.string(), 'Identity of the object in time and space, set by the server when it is created.'),
    resourceVersion: optional(
      6,
      s.string(),
      'Opaque version of the object, for optimistic concurrency and for watching. Only ever compare it for equality.',
    ),
    generation: optional(7, s.int64(), 'Number that rises whenever the desired state changes. Set by the server.'),
    creationTimestamp: optional(8, s.time(), 'When the object was created. Set by the server.'),
    deletionTimestamp: optional(
      9,
      s.time(),
      'When the object is to be gone at the latest. Set by the server once deletion has been asked for; never unset.',
    ),
    deletionGracePeriodSeconds: optional(
      10,
      s.int64(),
      'Seconds the object is given to end gracefully. Set together with deletionTimestamp; may only be shortened.',
      { presence: true },
    ),
    labels: optional(11, s.map(s.string()), 'Short keys and values by which objects are grouped and selected.'),
    annotations: optional(
      12,
      s.map(s.string()),
      'Keys and values that tools store with the object. Not selectable; 256 KiB in total.',
    ),
    ownerReferences: optional(
      13,
      s.listByKey(ownerReferenceSchema, 'uid'),
      'Objects this one belongs to. When all of them are gone, the garbage collector removes it.',
    ),
    finalizers: optional(
      14,
      s.set(s.string()),
      'Words of those who still have to act before the object may disappear. Each removes its own; nothing can be added once deletion has begun.',
    ),
    managedFields: optional(
      17,
      s.list(managedFieldsEntrySchema, { listType: 'atomic' }),
      'Which manager has set which fields, for server-side apply. Kept by the server.',
    ),
  },
);

/** Metadata that every list has. */
export const listMetaSchema: Schema<ListMeta> = s.message(
  `${metaV1}.ListMeta`,
  'Metadata of a list: the state it shows and how to go on reading it.',
  {
    selfLink: optional(1, s.string(), 'Path of the list. A relic that servers need not fill.'),
    resourceVersion: optional(2, s.string(), 'Version of the state that the list shows; a watch may start from it.'),
    continue: optional(3, s.string(), 'Token for the next part of a list that was cut by a limit; empty at the end.'),
    remainingItemCount: optional(4, s.int64(), 'Number of objects after this part, where it is known.', {
      presence: true,
    }),
  },
);
