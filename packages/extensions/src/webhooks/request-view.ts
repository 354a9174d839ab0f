import {
  type AdmissionRequest,
  apiVersionOf,
  fieldError,
  type GroupVersionKind,
  type KindDefinition,
  type KubeObject,
  statusErrors,
} from '@keelson/core';
import { decoderOf, isDecodeTypeError, isJsonObject, jsonText } from '@keelson/core/internal';
import { conversionOf } from '../custom-resources/serving/served-definition.ts';

/** A request as seen by a webhook, with the objects in one version of the resource or subresource. */
export interface RequestView {
  readonly target: KindDefinition;
  /** Kind of `object` and `oldObject`. */
  readonly kind: GroupVersionKind;
  readonly object: KubeObject | undefined;
  readonly oldObject: KubeObject | undefined;
  /**
   * Replaces the object of the request by a patched document.
   *
   * @throws StatusError when the document is no object of the kind
   */
  readonly replace: (document: unknown) => Promise<void>;
}

type Converted = (object: KubeObject) => KubeObject | Promise<KubeObject>;

function converter(from: KindDefinition, to: KindDefinition): Converted {
  if (from === to) return (object) => object;
  const [source, destination] = [conversionOf(from), conversionOf(to)];
  if (source !== undefined && destination !== undefined) {
    return async (object) => {
      const [converted] = await source.convert([object], to);
      return destination.complete(converted as KubeObject);
    };
  }
  return (object) => {
    const stored = from.storage ? from.storage.toStorage(object) : object;
    return to.storage ? (to.storage.fromStorage(stored) as KubeObject) : stored;
  };
}

function replaceContent(object: KubeObject, next: KubeObject): void {
  if (object === next) return;
  const target = object as Record<string, unknown>;
  for (const key of Object.keys(target)) delete target[key];
  Object.assign(target, next);
}

function kindOfObject({ apiVersion = '', kind = '' }: KubeObject): GroupVersionKind {
  const slash = apiVersion.indexOf('/');
  return slash < 0
    ? { group: '', version: apiVersion, kind }
    : { group: apiVersion.slice(0, slash), version: apiVersion.slice(slash + 1), kind };
}

/**
 * A patch must not change the type of an object.
 *
 * @throws StatusError 422 for a custom resource, 500 for other kinds, as in kube-apiserver
 */
function checkType(document: unknown, expected: GroupVersionKind, target: KindDefinition, name: string): void {
  if (!isJsonObject(document)) return;
  const { apiVersion = '', kind = '' } = document;
  const wanted = apiVersionOf(expected);
  if (target.structural || expected !== target) {
    const given = kindOfObject({ apiVersion: String(apiVersion || wanted), kind: String(kind || expected.kind) });
    if (given.kind === expected.kind && apiVersionOf(given) === wanted) return;
    const internal = `${expected.group.split('.')[0] || 'core'}.${expected.kind}`;
    throw statusErrors.internal(`converting (${given.version}.${given.kind}) to (${internal}): unknown conversion`);
  }
  if (kind === '') throw statusErrors.internal(`Object 'Kind' is missing in '${jsonText(document)}'`);
  const errors = [
    ...(kind === expected.kind ? [] : [fieldError.invalid('kind', kind, `must be ${expected.kind}`)]),
    ...(apiVersion === wanted ? [] : [fieldError.invalid('apiVersion', apiVersion, `must be ${wanted}`)]),
  ];
  if (errors.length > 0) throw statusErrors.invalid(target, name, errors);
}

/** The views of a request, by the kind to which its objects are converted. Each conversion is executed once. */
export class RequestViews {
  readonly #request: AdmissionRequest;
  readonly #views = new Map<KindDefinition, Promise<RequestView>>();

  constructor(request: AdmissionRequest) {
    this.#request = request;
  }

  /**
   * The view in the kind `target`, which represents the same stored objects as the kind of the request.
   *
   * @throws StatusError 500 when a conversion webhook fails
   */
  of(target: KindDefinition): Promise<RequestView> {
    let view = this.#views.get(target);
    if (view === undefined) {
      view = viewOf(this.#request, target);
      this.#views.set(target, view);
    }
    return view;
  }
}

async function viewOf(request: AdmissionRequest, target: KindDefinition): Promise<RequestView> {
  const { object, oldObject } = request;
  const subresource = target.subresources.find(({ name }) => name === request.subresource);
  const { group, version, kind } = target;
  const versioned = { target, kind: { group, version, kind } };
  const decode = (
    schema: KindDefinition['schema'],
    document: unknown,
    expected: GroupVersionKind = target,
  ): KubeObject => {
    checkType(document, expected, target, request.name);
    try {
      const { value, errors } = decoderOf(schema)(document, { keepNulls: true });
      if (errors.length === 0) return value as KubeObject;
      throw statusErrors.invalid(target, request.name, errors);
    } catch (error) {
      if (isDecodeTypeError(error)) throw statusErrors.internal(error.message, error);
      throw error;
    }
  };
  if (request.operation === 'connect' || subresource?.type === 'connect') {
    return { target, kind: object ? kindOfObject(object) : versioned.kind, object, oldObject, replace: async () => {} };
  }
  if (subresource?.type === 'action') {
    const { bodyKind, schema } = subresource;
    const replace = async (document: unknown) => {
      if (object !== undefined) replaceContent(object, decode(schema, document, bodyKind));
    };
    return { target, kind: bodyKind, object, oldObject, replace };
  }
  const own = request.kind.subresources.find(({ name }) => name === request.subresource);
  if (own?.type === 'projection') {
    // The body, such as a Scale, has the same kind in all versions of the resource.
    const { bodyKind, schema, read, write } = own;
    const replace = async (document: unknown) => {
      if (object !== undefined) write(object, decode(schema, document, bodyKind));
    };
    return { target, kind: bodyKind, object: object && read(object), oldObject: oldObject && read(oldObject), replace };
  }
  const to = converter(request.kind, target);
  const back = converter(target, request.kind);
  const replace = async (document: unknown) => {
    if (object === undefined) return;
    const next = decode(target.schema, document);
    target.strategy.default?.(next);
    if ((next.metadata?.namespace ?? '') !== (object.metadata?.namespace ?? ''))
      throw statusErrors.badRequest(
        'the namespace of the provided object does not match the namespace sent on the request',
      );
    replaceContent(object, await back(next));
  };
  return { ...versioned, object: object && (await to(object)), oldObject: oldObject && (await to(oldObject)), replace };
}
