import { isJsonObject, jsonText, parseJsonText } from '../json/json.ts';
import type { SchemaNode } from '../kind/schema.ts';
import type { AnyObject } from '../meta/types.ts';
import { compareObjects } from './compare.ts';
import type { FieldSet } from './field-set.ts';
import { content, type FieldConflict } from './managed-fields.ts';
import { fieldsOf, typeErrors } from './typed-value.ts';

/** Annotation in which client-side apply of kubectl stores the last applied configuration. */
export const lastAppliedAnnotation = 'kubectl.kubernetes.io/last-applied-configuration';

/** The kind of an applied object. */
interface AppliedKind {
  readonly apiVersion: string;
  readonly type: SchemaNode;
}

/** The fields of the configuration that client-side apply has recorded, as far as the object still has these values. */
export function lastAppliedFields(kind: AppliedKind, live: AnyObject): FieldSet | undefined {
  const text = live.metadata?.annotations?.[lastAppliedAnnotation];
  if (!text) return undefined;
  let config: unknown;
  try {
    config = parseJsonText(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
  if (!isJsonObject(config) || config['apiVersion'] !== kind.apiVersion) return undefined;
  if (typeErrors(kind.type, config).length > 0) return undefined;
  const { modified, added, removed } = compareObjects(kind.type, config, content(live));
  return fieldsOf(kind.type, config).difference(modified).difference(added).difference(removed);
}

/**
 * The conflicts without those on fields that client-side apply of kubectl has set: a server-side apply of kubectl takes
 * these fields over.
 */
export function notLastApplied(
  kind: AppliedKind,
  live: AnyObject,
  conflicts: readonly FieldConflict[],
): readonly FieldConflict[] {
  const allowed = lastAppliedFields(kind, live);
  return allowed === undefined ? conflicts : conflicts.filter(({ path }) => !allowed.hasPath(path));
}

/** Greatest size of all annotations of an object. */
const maxAnnotations = 256 * 1024;

/** Updates the annotation of client-side apply, so that users can return to client-side apply. */
export function renewLastApplied(object: AnyObject, config: AnyObject): void {
  const annotations = object.metadata?.annotations;
  if (!annotations?.[lastAppliedAnnotation]) return;
  const applied = { ...config };
  if (config.metadata?.annotations) {
    const { [lastAppliedAnnotation]: _, ...rest } = config.metadata.annotations;
    applied.metadata = { ...config.metadata, annotations: rest };
  }
  const renewed = { ...annotations, [lastAppliedAnnotation]: `${jsonText(sorted(applied))}\n` };
  let size = 0;
  // A null is an annotation that the configuration removes.
  for (const [name, value] of Object.entries(renewed)) size += Buffer.byteLength(name) + Buffer.byteLength(value ?? '');
  const { [lastAppliedAnnotation]: _, ...others } = annotations;
  object.metadata = { ...object.metadata, annotations: size > maxAnnotations ? others : renewed };
}

/** A copy in which the keys of all objects are in alphabetical order, the order in which Go encodes maps. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isJsonObject(value)) return value;
  const entries = Object.entries(value).map(([name, item]) => [name, sorted(item)] as const);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}
