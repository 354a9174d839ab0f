import { decoderOf } from '../kind/decoder.ts';
import type { KindDefinition } from '../kind/kind-definition.ts';
import { messageNode } from '../kind/schema-walk.ts';
import { type AnyObject, copyJson } from './json-values.ts';

/** Puts the status of a new object into the state of one that nobody has reported on: absent, or its zero value. */
export function clearStatus(kind: KindDefinition, object: AnyObject): void {
  const field = messageNode(kind.schema)?.fields['status'];
  if (field === undefined) return;
  if (field.whenAbsent !== 'zero') delete object['status'];
  else object['status'] = decoderOf(field.schema)({}).value;
}

/** A main write keeps the stored status, whatever the body says. */
export function restoreStatus(object: AnyObject, old: AnyObject): void {
  if (old['status'] === undefined) delete object['status'];
  else object['status'] = copyJson(old['status']);
}

/** A status write keeps everything but status and metadata. Returns the object to go on with. */
export function onlyStatus(object: AnyObject, old: AnyObject): AnyObject {
  const result: AnyObject = {};
  for (const key of Object.keys(old)) {
    if (key === 'metadata') result.metadata = object.metadata ?? {};
    else if (key !== 'status') result[key] = copyJson(old[key]);
    else if (object['status'] !== undefined) result['status'] = object['status'];
  }
  if (object['status'] !== undefined) result['status'] = object['status'];
  return result;
}
