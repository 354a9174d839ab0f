import {
  type AdmissionRequest,
  type GroupVersionKind,
  type KindDefinition,
  type KubeObject,
  statusErrors,
} from '@keelson/core';
import { decoderOf, isDecodeTypeError, storageKindOf } from '@keelson/core/internal';

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
  readonly replace: (document: unknown) => void;
}

type Converted = (object: KubeObject) => KubeObject;

function converter(from: KindDefinition, to: KindDefinition): Converted {
  if (from === to) return (object) => object;
  if (storageKindOf(from) !== storageKindOf(to)) throw new Error(`${from.kind} and ${to.kind} do not share storage`);
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

/** The view of a request in the kind `target`, which represents the same stored objects as the kind of the request. */
export function viewOf(request: AdmissionRequest, target: KindDefinition): RequestView {
  const { object, oldObject } = request;
  const subresource = target.subresources.find(({ name }) => name === request.subresource);
  const to = converter(request.kind, target);
  const back = converter(target, request.kind);
  const { group, version, kind } = target;
  const own = { target, kind: { group, version, kind } };
  const decode = (schema: KindDefinition['schema'], document: unknown): KubeObject => {
    try {
      const { value, errors } = decoderOf(schema)(document);
      if (errors.length === 0) return value as KubeObject;
      throw statusErrors.invalid(target, request.name, errors);
    } catch (error) {
      if (isDecodeTypeError(error)) throw statusErrors.internal(error.message, error);
      throw error;
    }
  };
  if (request.operation === 'connect' || subresource?.type === 'connect') {
    return { target, kind: object ? kindOfObject(object) : own.kind, object, oldObject, replace: () => {} };
  }
  if (subresource?.type === 'action') {
    const { bodyKind, schema } = subresource;
    const replace = (document: unknown) => object && replaceContent(object, decode(schema, document));
    return { target, kind: bodyKind, object, oldObject, replace };
  }
  const inTarget = object && to(object);
  const oldInTarget = oldObject && to(oldObject);
  if (subresource?.type === 'projection') {
    const { bodyKind, schema, read, write } = subresource;
    const replace = (document: unknown) => {
      if (object === undefined || inTarget === undefined) return;
      write(inTarget, decode(schema, document));
      replaceContent(object, back(inTarget));
    };
    const projected = inTarget && read(inTarget);
    return { target, kind: bodyKind, object: projected, oldObject: oldInTarget && read(oldInTarget), replace };
  }
  const replace = (document: unknown) => {
    if (object === undefined) return;
    const next = decode(target.schema, document);
    target.strategy.default?.(next);
    if ((next.metadata?.namespace ?? '') !== (object.metadata?.namespace ?? ''))
      throw statusErrors.badRequest(
        'the namespace of the provided object does not match the namespace sent on the request',
      );
    replaceContent(object, back(next));
  };
  return { ...own, object: inTarget, oldObject: oldInTarget, replace };
}
