import type { AccessAttributes, Status, UserInfo } from '@keelson/core';

const maxUserAgentLength = 1024;
const truncated = '...TRUNCATED';

/** A user as JSON. */
export function userText({ name, uid, groups, extra }: UserInfo): string {
  return JSON.stringify({ username: name, uid, groups, extra });
}

/** A User-Agent header, shortened as in Kubernetes. */
export function shortened(userAgent: string): string {
  return userAgent.length <= maxUserAgentLength ? userAgent : userAgent.slice(0, maxUserAgentLength) + truncated;
}

/**
 * Source addresses of a request. The last one is that of the connection; those before it are from headers that the
 * client or a proxy has sent.
 */
export function sourceIPs(sent: readonly (string | undefined)[], remoteAddress: string | undefined): string[] {
  const texts = sent.flatMap((each) => (each ?? '').split(',')).map((each) => each.trim());
  const addresses = texts.filter((each) => /^[0-9a-fA-F:.]{2,45}$/.test(each));
  if (remoteAddress !== undefined && addresses.at(-1) !== remoteAddress) addresses.push(remoteAddress);
  return addresses;
}

/** What identifies the object of a request, beside the attributes of the request. */
export interface ObjectIdentity {
  readonly name?: string | undefined;
  readonly namespace?: string | undefined;
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
}

/**
 * `,"requestURI":...,"verb":...,"objectRef":{...}`, `objectRef` only for a request on a resource. When the URL needs no
 * escapes in JSON, the group, resource and names need none, because they are parts of the URL.
 */
export function requestText(uri: string, attributes: AccessAttributes, identity: ObjectIdentity | undefined): string {
  const { isResourceRequest, verb, resource, namespace, name, apiGroup, apiVersion, subresource } = attributes;
  const text = mayNeedEscapes.test(uri) ? quoted : bare;
  const request = `,"requestURI":${text(withoutTokens(uri))},"verb":${text(verb)}`;
  if (!isResourceRequest) return request;
  const part = (field: string, value: string | undefined) => (value ? `,"${field}":${text(value)}` : '');
  const ref =
    `${request},"objectRef":{"resource":${text(resource)}${namespace ? part('namespace', namespace) : identityPart('namespace', identity?.namespace)}` +
    `${name ? part('name', name) : identityPart('name', identity?.name)}` +
    `${part('apiGroup', apiGroup)}${part('apiVersion', apiVersion)}${part('subresource', subresource)}`;
  if (identity === undefined) return `${ref}}`;
  const { uid, resourceVersion } = identity;
  return `${ref}${identityPart('uid', uid)}${identityPart('resourceVersion', resourceVersion)}}`;
}

function identityPart(field: string, value: string | undefined): string {
  return value ? `,"${field}":${quoted(value)}` : '';
}

/** `,"responseStatus":{...}`; code 0 stands for no response. */
export function responseStatus(code: number, status: Status | undefined): string {
  if (status === undefined) return code === 200 ? okStatus : plainStatus(code);
  const { metadata, status: outcome, message, reason, details } = status;
  return `,"responseStatus":${JSON.stringify({ metadata, status: outcome, message, reason, details, code })}`;
}

const plainStatus = (code: number) => `,"responseStatus":{"metadata":{}${code === 0 ? '' : `,"code":${code}`}}`;
export const okStatus = plainStatus(200);

/** Characters that may need escapes in JSON, including `%`, which begins an encoded character of a URL. */
const mayNeedEscapes = /[^\x20\x21\x23\x24\x26-\x5b\x5d-\x7e]/;
const mustBeEscaped = /[^\x20\x21\x23-\x5b\x5d-\x7e]/;

/** The text in JSON. Most texts contain nothing that has to be escaped. */
export function quoted(text: string): string {
  return mustBeEscaped.test(text) ? JSON.stringify(text) : `"${text}"`;
}

function bare(text: string): string {
  return `"${text}"`;
}

const tokenParameter = /([?&][^=&]*(?:token|password|secret)[^=&]*=)[^&]*/gi;

/**
 * A URL without the values of query parameters that contain credentials. Only proxied requests have such parameters.
 */
function withoutTokens(uri: string): string {
  return uri.includes('?') ? uri.replace(tokenParameter, '$1REDACTED') : uri;
}
