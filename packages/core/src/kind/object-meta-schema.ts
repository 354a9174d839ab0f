import type { ListMeta, ManagedFieldsEntry, ObjectMeta, OwnerReference } from '../meta/types.ts';
import { always, optional, type Schema, s } from './schema.ts';

const metaV1 = 'k8s.io.apimachinery.pkg.apis.meta.v1';

/** A link from a dependent object to its owner. */
export const ownerReferenceSchema: Schema<OwnerReference> = s.message(
  `${metaV1}.OwnerReference`,
  'Names the owner of this object, which is in the same namespace or cluster-scoped. After the owner is deleted, the garbage collector deletes this object.',
  {
    apiVersion: always(5, s.string(), 'Group and version of the owner.'),
    kind: always(1, s.string(), 'Kind of the owner.'),
    name: always(3, s.string(), 'Name of the owner.'),
    uid: always(4, s.string(), 'UID of the owner; an object of the same name with another UID is not the owner.'),
    controller: optional(6, s.bool(), 'True for the owner that manages this object; at most one owner has it.', {
      presence: true,
    }),
    blockOwnerDeletion: optional(
      7,
      s.bool(),
      'When true, a foreground deletion of the owner waits until this object is deleted or this reference is removed.',
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
  'Metadata of an object: its names, fields that the server sets, and labels and annotations of users.',
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
    selfLink: optional(4, s.string(), 'Deprecated path of the object, which servers do not set.'),
    uid: optional(
      5,
      s.string(),
      'Unique ID of the object, set by the server when it is created. An object of the same name that is created later has another.',
    ),
    resourceVersion: optional(
      6,
      s.string(),
      'Opaque version of the object, for optimistic concurrency and for watches. Clients compare it for equality only.',
    ),
    generation: optional(7, s.int64(), 'Number that rises whenever the desired state changes. Set by the server.'),
    creationTimestamp: optional(8, s.time(), 'When the object was created. Set by the server.'),
    deletionTimestamp: optional(
      9,
      s.time(),
      'Time by which the object is deleted. Set by the server when deletion is requested; never unset.',
    ),
    deletionGracePeriodSeconds: optional(
      10,
      s.int64(),
      'Seconds for a graceful termination of the object. Set together with deletionTimestamp; can only be shortened.',
      { presence: true },
    ),
    labels: optional(11, s.map(s.string()), 'Keys and values by which objects are grouped and selected.'),
    annotations: optional(
      12,
      s.map(s.string()),
      'Keys and values that tools store with the object. Not selectable; 256 KiB in total.',
    ),
    ownerReferences: optional(
      13,
      s.listByKey(ownerReferenceSchema, 'uid'),
      'Owners of this object. After all of them are deleted, the garbage collector deletes this object.',
    ),
    finalizers: optional(
      14,
      s.set(s.string()),
      'Identifiers of components that must act before the object is removed. Each component removes its own; none can be added after deletion was requested.',
    ),
    managedFields: optional(
      17,
      s.list(managedFieldsEntrySchema, { listType: 'atomic' }),
      'Fields that each manager has set, for server-side apply. Maintained by the server.',
      // An empty list resets the record.
      { presence: true },
    ),
  },
);

/** Metadata that every list has. */
export const listMetaSchema: Schema<ListMeta> = s.message(
  `${metaV1}.ListMeta`,
  'Metadata of a list: the revision that it shows and the token for its next part.',
  {
    selfLink: optional(1, s.string(), 'Deprecated path of the list, which servers do not set.'),
    resourceVersion: optional(2, s.string(), 'Version of the state that the list shows; a watch may start from it.'),
    continue: optional(3, s.string(), 'Token for the next part of a list that was cut by a limit; empty at the end.'),
    remainingItemCount: optional(4, s.int64(), 'Number of objects after this part, where it is known.', {
      presence: true,
    }),
  },
);
