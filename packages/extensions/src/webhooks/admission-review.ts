import type { AdmissionRequest, OperationOptions } from '@keelson/core';
import { isJsonObject, jsonText } from '@keelson/core/internal';
import type { RequestView } from './request-view.ts';

/** Supported versions of AdmissionReview. The webhook determines the order of preference. */
const versions: ReadonlySet<string> = new Set(['v1', 'v1beta1']);

/** The AdmissionReview version for calling a webhook; undefined when the webhook accepts no supported version. */
export function reviewVersion(accepted: readonly string[]): string | undefined {
  return accepted.find((version) => versions.has(version));
}

/** The options of the API request, such as CreateOptions, as an object of meta.k8s.io/v1. */
function optionsObject(options: OperationOptions): Record<string, unknown> {
  const { kind, parameters } = options;
  const head = { kind, apiVersion: 'meta.k8s.io/v1' };
  const dryRun = parameters.dryRun ? { dryRun: ['All'] } : {};
  if (kind === 'DeleteOptions') {
    const { dryRun: _, uid, resourceVersion, ...others } = options.parameters;
    const preconditions = { ...(uid ? { uid } : {}), ...(resourceVersion ? { resourceVersion } : {}) };
    return { ...head, ...others, ...(uid || resourceVersion ? { preconditions } : {}), ...dryRun };
  }
  const { dryRun: _, ...others } = options.parameters;
  return { ...head, ...dryRun, ...others };
}

/** The fields of `request` without the uid and the objects. */
export function requestFields(request: AdmissionRequest, { target, kind }: RequestView): Record<string, unknown> {
  const { operation, name, namespace, subresource, dryRun, options, context } = request;
  const { group, version } = request.kind;
  const requestSubResource = subresource === undefined ? {} : { requestSubResource: subresource };
  const isNamespace = group === '' && request.kind.kind === 'Namespace';
  const { name: username, uid, groups, extra } = context.user;
  return {
    kind: { group: kind.group, version: kind.version, kind: kind.kind },
    resource: { group: target.group, version: target.version, resource: target.names.plural },
    ...(subresource === undefined ? {} : { subResource: subresource }),
    requestKind: target === request.kind ? kind : { group, version, kind: request.kind.kind },
    requestResource: { group, version, resource: request.kind.names.plural },
    ...requestSubResource,
    ...(name === '' ? {} : { name }),
    ...(namespace === undefined && !isNamespace ? {} : { namespace: namespace ?? name }),
    operation: operation.toUpperCase(),
    userInfo: { username, ...(uid === undefined ? {} : { uid }), groups, ...(extra === undefined ? {} : { extra }) },
    dryRun,
    options: options === undefined ? null : optionsObject(options),
  };
}

/**
 * The fields of `request` without the uid, as JSON text. The text is shared by all webhooks with the same request view.
 */
export function requestText(request: AdmissionRequest, view: RequestView): string {
  const { object = null, oldObject = null } = view;
  return jsonText({ ...requestFields(request, view), object, oldObject }).slice(1);
}

/** The body of a webhook call. */
export function reviewBody(version: string, uid: string, text: string): Buffer {
  const head = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/${version}","request":{"uid":"${uid}",`;
  return Buffer.from(`${head}${text}}`);
}

/** The decision of a webhook. */
export interface ReviewResponse {
  readonly allowed: boolean;
  /** The Status of a denial, as sent. */
  readonly status: Readonly<Record<string, unknown>>;
  /** JSON text of a patch; '' for none. */
  readonly patch: string;
  readonly patchType: string;
  readonly warnings: readonly string[];
  readonly annotations: Readonly<Record<string, string>>;
}

const typeOf = (value: unknown) => (value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value);

/**
 * Reads an optional field and checks its type.
 *
 * @throws Error
 */
function member<T>(response: object, name: string, wanted: 'string' | 'boolean' | 'object', absent: T): T {
  const value = (response as Record<string, unknown>)[name];
  if (value === undefined || value === null) return absent;
  if (typeof value === wanted && !Array.isArray(value)) return value as T;
  throw new Error(`response.${name} must be of type ${wanted}, not ${typeOf(value)}`);
}

/**
 * Verifies the answer of a webhook as Kubernetes does.
 *
 * @throws Error why the answer is invalid
 */
export function readResponse(answer: unknown, version: string, uid: string, mutating: boolean): ReviewResponse {
  const review = isJsonObject(answer) ? answer : {};
  const response = review['response'];
  if (!isJsonObject(response)) throw new Error('webhook response was absent');
  if (version === 'v1') {
    const sent = response['uid'] ?? '';
    if (sent !== uid) throw new Error(`expected response.uid=${JSON.stringify(uid)}, got ${JSON.stringify(sent)}`);
    const [group = '', given = ''] = String(review['apiVersion'] ?? '').split('/');
    const found = `${group}/${given}, Kind=${String(review['kind'] ?? '')}`;
    const expected = `admission.k8s.io/${version}, Kind=AdmissionReview`;
    if (found !== expected) throw new Error(`expected webhook response of ${expected}, got ${found}`);
  }
  const patch = Buffer.from(member(response, 'patch', 'string', ''), 'base64').toString('utf8');
  const sentType = member<string | undefined>(response, 'patchType', 'string', undefined);
  if (version === 'v1') checkPatch(patch, sentType, mutating);
  const warnings = response['warnings'] ?? [];
  const annotations = member<Record<string, unknown>>(response, 'auditAnnotations', 'object', {});
  if (!Array.isArray(warnings)) throw new Error(`response.warnings must be a list, not ${typeOf(warnings)}`);
  return {
    allowed: member(response, 'allowed', 'boolean', false),
    status: member(response, 'status', 'object', {}),
    patch: mutating ? patch : '',
    patchType: version === 'v1' ? (sentType ?? '') : 'JSONPatch',
    warnings: warnings.map(String),
    annotations: Object.fromEntries(Object.entries(annotations).map(([key, value]) => [key, String(value)])),
  };
}

function checkPatch(patch: string, type: string | undefined, mutating: boolean): void {
  if (!mutating) {
    if (patch !== '') throw new Error('validating webhook may not return response.patch');
    if (type !== undefined) throw new Error('validating webhook may not return response.patchType');
    return;
  }
  if (patch !== '' && type === undefined) throw new Error('webhook returned response.patch but not response.patchType');
  if (patch === '' && type !== undefined) throw new Error('webhook returned response.patchType but not response.patch');
  if (type === '') throw new Error('webhook returned invalid response.patchType of ""');
}
