import {
  type Answer,
  type Body,
  jsonText,
  type ListAnswer,
  type PatchBody,
  type ProtobufBodyType,
  parseJson,
  parseProtobufBody,
  parseYaml,
  servedJson,
} from '@keelson/core/internal';

/** Maximum length of the JSON of a recorded object. Larger objects are left out, and the event is annotated. */
const maxObjectLength = 1024 * 1024;

/**
 * The JSON of a recorded object; undefined when it is too large. @param value undefined when it is known to be too
 * large
 */
export function recordedJson(value: unknown, omitManagedFields: boolean): string | undefined {
  if (omitManagedFields) removeManagedFields(value);
  const text = value === undefined ? undefined : jsonText(value);
  return text !== undefined && text.length <= maxObjectLength ? text : undefined;
}

/** The content of the body of a request. @throws when it cannot be parsed */
export function parsedBody(body: Body | PatchBody, type: ProtobufBodyType): unknown {
  if ('type' in body) return parseJson(body.bytes).value;
  if (body.format === 'protobuf') return parseProtobufBody(body.bytes, type);
  return (body.format === 'yaml' ? parseYaml(body.bytes) : parseJson(body.bytes)).value;
}

/** A private copy of the content of an answer; undefined when it is too large to be recorded. */
export function answerValue(answer: Answer | ListAnswer): unknown {
  if ('object' in answer) return parseJson(Buffer.from(jsonText(answer.object))).value;
  const form = servedJson(answer.kind);
  if ('stored' in answer) return parseJson(answer.stored.encoded(form)).value;
  const { kind, list } = answer;
  const items: unknown[] = [];
  let length = 0;
  for (const object of list.objects()) {
    length += object.byteLength;
    if (length > maxObjectLength) return undefined;
    items.push(parseJson(object.encoded(form)).value);
  }
  return {
    kind: `${kind.kind}List`,
    apiVersion: kind.apiVersion,
    metadata: { resourceVersion: String(list.revision) },
    items,
  };
}

function removeManagedFields(value: unknown): void {
  const { metadata, items } = (value ?? {}) as { metadata?: Record<'managedFields', unknown>; items?: unknown[] };
  if (typeof metadata === 'object' && metadata !== null) Reflect.deleteProperty(metadata, 'managedFields');
  if (Array.isArray(items)) for (const item of items) removeManagedFields(item);
}
