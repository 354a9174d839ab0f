import { applyObject } from '../apply/field-manager.ts';
import { conflictTexts } from '../apply/managed-fields.ts';
import { TypedValueError, typeErrors } from '../apply/typed-value.ts';
import { parseYaml } from '../codec/yaml.ts';
import { statusErrors } from '../errors/status-error.ts';
import { isDocumentError, type ParsedDocument } from '../json/document-error.ts';
import { copyJson, isJsonObject } from '../json/json.ts';
import { fieldError } from '../meta/field-error.ts';
import type { RequestContext } from '../meta/request-context.ts';
import type { AnyObject } from '../meta/types.ts';
import { type BodyType, checkFields, type DecodedObject, decodeObject, settleIdentity } from './decode-body.ts';
import type { ObjectTarget, ResourceBinding } from './resource-binding.ts';
import type { PatchBody, WriteParameters } from './resource-service.ts';

function parse(bytes: Buffer): ParsedDocument {
  try {
    return parseYaml(bytes);
  } catch (error) {
    if (!isDocumentError(error)) throw error;
    if (error.reason === 'tooLarge') throw statusErrors.tooLarge(`Request entity too large: ${error.message}`);
    throw statusErrors.badRequest(`error decoding YAML: ${error.message}`, error);
  }
}

/** A group, version and kind as Go prints them. */
function typeText(apiVersion: unknown, kind: unknown): string {
  const text = typeof apiVersion === 'string' ? apiVersion : '';
  const version = text.includes('/') ? text : `/${text}`;
  return `${version}, Kind=${typeof kind === 'string' ? kind : ''}`;
}

/** An apply whose body has not been parsed yet. */
interface ParseRequest {
  readonly context: RequestContext;
  readonly patch: PatchBody;
  readonly parameters: WriteParameters;
}

/**
 * The configuration in the body of an apply: see docs/reference/api-rules.md#server-side-apply.
 *
 * @throws StatusError 422 without a field manager; 413 when the body is too large to parse; 400 when it is not YAML or
 *   JSON, not an object of the type, or has undeclared fields, repeated elements or managedFields.
 */
export function parseApplied(type: BodyType, request: ParseRequest): AnyObject {
  const { context, patch, parameters } = request;
  if (!parameters.fieldManager) {
    const error = fieldError.required('fieldManager', 'is required for apply patch');
    throw statusErrors.invalid({ group: 'meta.k8s.io', kind: 'PatchOptions' }, '', [error]);
  }
  const { value, ...repeated } = parse(patch.bytes);
  if (!isJsonObject(value)) throw statusErrors.badRequest('error decoding YAML: the document is not an object');
  const config = value as AnyObject;
  const given = typeText(config.apiVersion, config.kind);
  if (given !== typeText(type.apiVersion, type.kind)) throw statusErrors.badRequest(`invalid object type: ${given}`);
  const meta: unknown = config.metadata;
  if (isJsonObject(meta) && meta['managedFields'] !== undefined && meta['managedFields'] !== null)
    throw statusErrors.badRequest('metadata.managedFields must be nil');
  const errors = typeErrors(type.schema.node, config);
  if (errors.length > 0) {
    const [name, namespace] = isJsonObject(meta) ? [meta['name'], meta['namespace']] : [];
    const object = `${namespace ?? ''}/${name ?? ''}; ${given}`;
    const text = errors.length === 1 ? errors[0] : `errors:\n${errors.map((error) => `  ${error}`).join('\n')}`;
    throw statusErrors.badRequest(`failed to create typed patch object (${object}): ${text}`);
  }
  const rejected = (text: string) =>
    statusErrors.badRequest(
      text
        .replace('strict decoding error', 'error strict decoding YAML')
        .replace(': yaml:', ': error converting YAML to JSON: yaml:'),
    );
  checkFields(parameters.fieldValidation, { unknownFields: [], ...repeated }, context, rejected);
  return config;
}

/** An apply of a parsed configuration. */
export interface ApplyRequest {
  readonly config: AnyObject;
  readonly target: ObjectTarget;
  readonly subresource?: string | undefined;
  readonly parameters: Pick<WriteParameters, 'fieldManager' | 'force'>;
}

/**
 * Applies a configuration to the stored object, or to `{}` to create one.
 *
 * @throws StatusError 409 when others own fields that would change, or the object with the uid does not exist.
 */
export function applyConfig(binding: ResourceBinding, live: AnyObject, request: ApplyRequest): DecodedObject {
  const { config, target, subresource, parameters } = request;
  const uid = config.metadata?.uid;
  if (uid && live.metadata === undefined) {
    const why = `uid mismatch: the provided object specified uid ${uid}, and no existing object was found`;
    throw statusErrors.conflict(binding.resource, target.name, why);
  }
  const writer = { manager: parameters.fieldManager ?? '', nowMs: binding.services.clock.now() };
  const kind = binding.fields.through(subresource);
  const applied = mergeable(() => applyObject(kind, live, config, writer, parameters.force ?? false));
  if ('conflicts' in applied) {
    const { message, causes } = conflictTexts(applied.conflicts);
    throw statusErrors.applyConflict(message, causes);
  }
  // Decodes a copy: values without a schema are shared by decoding, and hooks that change them must change neither the
  // stored object nor the configuration.
  const decoded = decodeObject(binding.bodyType, copyJson(applied.object), { keepNulls: true });
  const { object } = decoded;
  if (object.metadata !== undefined && applied.managedFields !== undefined)
    object.metadata.managedFields = applied.managedFields;
  settleIdentity(target, object);
  return { ...decoded, isApplied: true };
}

/** A stored list cannot be merged when its elements lack their keys. */
function mergeable<T>(merge: () => T): T {
  try {
    return merge();
  } catch (error) {
    if (error instanceof TypedValueError)
      throw statusErrors.badRequest(`failed to merge config: ${error.message}`, error);
    throw error;
  }
}
