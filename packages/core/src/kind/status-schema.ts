import { listMetaSchema } from './object-meta-schema.ts';
import { filled, type Infer, optional, type Schema, s } from './schema.ts';
import { typeMetaFields } from './type-meta-fields.ts';

const metaV1 = 'k8s.io.apimachinery.pkg.apis.meta.v1';

const cause = s.message(`${metaV1}.StatusCause`, 'One of several reasons why a request failed.', {
  reason: optional(1, s.string(), 'Machine-readable word for the cause.'),
  message: optional(2, s.string(), 'The cause, for people.'),
  field: optional(3, s.string(), 'Path of the field that caused it, in JavaScript notation, e.g. spec.ports[0].port.'),
});

const details = s.message(`${metaV1}.StatusDetails`, 'What a request that failed was about.', {
  name: optional(1, s.string(), 'Name of the object.'),
  group: optional(2, s.string(), 'Group of the kind.'),
  kind: optional(3, s.string(), 'Plural of the resource, or the kind where the body is at fault.'),
  uid: optional(6, s.string(), 'UID of the object, where it is one object.'),
  causes: optional(4, s.list(cause, { listType: 'atomic' }), 'All causes, where several are known.'),
  retryAfterSeconds: optional(5, s.int32(), 'Seconds to wait before trying again.'),
});

const status = s.message(`${metaV1}.Status`, 'Outcome of a request that returns no other object.', {
  ...typeMetaFields,
  metadata: filled(1, listMetaSchema, 'Metadata; carries a continue token in one kind of failure.'),
  status: optional(2, s.string(), 'Success or Failure.'),
  message: optional(3, s.string(), 'What happened, for people.'),
  reason: optional(4, s.string(), 'Machine-readable word for why the request failed.'),
  details: optional(5, details, 'What the failure was about.'),
  code: optional(6, s.int32(), 'HTTP status code.'),
});
/** Outcome of a request as other servers may send it: any field can be absent. */
export interface StatusObject extends Infer<typeof status> {}
export const statusSchema: Schema<StatusObject> = status;
